// SPDX-License-Identifier: Apache-2.0
// The sections about the run: each function fills its element, or returns what is missing.
'use strict';

(() => {
  const {element, button, explain, paragraph, missing, stepWord} = report.dom;
  const {format, table, charts, columns: {text, number, whole, times}} = report;
  const kWords = {good: 'Good', bad: 'Problem', unknown: 'Unknown', info: 'Note'};

  function hostsText(hosts) {
    if (hosts.length <= 4) return hosts.join(', ') || format.kUnknown;
    return `${hosts.slice(0, 3).join(', ')} and ${hosts.length - 3} more`;
  }

  // Themes: the scheme of the system, or one that is chosen, which the address keeps.
  function themeChooser() {
    const select = element('select', {'aria-label': 'Theme'},
        ...['auto', 'light', 'dark'].map((name) => element('option', {value: name}, name)));
    select.value = report.theme.chosen();
    select.addEventListener('change', () => report.theme.choose(select.value));
    return element('label', {}, 'theme ', select);
  }

  function jsonLink(name) {
    const link = element('a', {href: '#', class: 'json', download: `${name || 'report'}.json`},
        'Save all data as JSON');
    link.addEventListener('click', () => {
      URL.revokeObjectURL(link.href);
      link.href = URL.createObjectURL(new Blob([document.getElementById('data').textContent],
          {type: 'application/json'}));
    });
    return link;
  }

  function heading(data, top) {
    const {title, run} = data;
    const spread = !(run.steps > 2) || run.step_spread_ms === undefined ? '' :
        ` (spread ${format.milliseconds(run.step_spread_ms)})`;
    const facts = [['framework', run.framework || format.kUnknown],
      ['ranks', format.plain(run.ranks)], ['hosts', hostsText(run.hosts)],
      ['recorded', run.recorded || format.kUnknown], [`${stepWord()}s`, format.plain(run.steps) +
          (run.reported_steps ? ` (${format.plain(run.reported_steps)} shown)` : '')],
      [`median ${stepWord()}`, format.milliseconds(run.step_ms) + spread],
      ['whole run', format.milliseconds(run.wall_ms)], ['events', format.plain(run.events)]];
    top.append(element('div', {class: 'title'},
        element('h1', {}, title || 'A run without a name'),
        element('p', {class: 'tools'}, jsonLink(title), themeChooser())));
    top.append(element('ul', {class: 'facts'}, ...facts.map(([name, value]) =>
      element('li', {title: explain(name)}, `${name} `, element('b', {}, value)))));
  }

  const kRoleLabels = {computation: 'computation', transfer: 'exposed communication', wait: 'waiting',
    copy: 'copies', host: 'host', gap: 'gaps and what is not in the trace'};

  // What a step's critical path is spent on, in the mean of the steps that step_mean_ms is of, or that
  // of the whole run where there are no steps: [{role, ms, kinds: text}].
  function spentOn({path, path_kinds: kinds, run, steps}) {
    const counted = steps.slice(run.first_step_is_cut ? 1 : 0).map(({step}) => step);
    const all = new Set(counted);
    const rows = counted.length ? path.filter(({step}) => all.has(step)) : path;
    const known = new Map(kinds.map((kind) => [kind.kind, kind]));
    const parts = new Map();
    for (const {kind, ms} of rows) {
      const role = charts.looksOf([known.get(kind)?.role ?? 'gap'])[0].role;
      const part = parts.get(role) ?? parts.set(role, {role, ms: 0, of: new Map()}).get(role);
      const label = known.get(kind)?.label ?? kind;
      const share = (ms ?? 0) / Math.max(1, counted.length);
      part.ms += share;
      part.of.set(label, (part.of.get(label) ?? 0) + share);
    }
    return Object.keys(kRoleLabels).map((role) => parts.get(role)).filter((part) => part?.ms > 0)
        .map(({role, ms, of}) => ({role, ms, kinds: [...of].map(([label, own]) =>
          `${label} ${format.milliseconds(own)}`).join(', ')}));
  }

  const segment = (role, share) => {
    const made = element('span', {class: `segment ${role}`});
    made.style.width = `${Math.max(0, Math.min(100, 100 * share))}%`;
    return made;
  };

  // The bar of a step now and that of one without what the finding is about.
  function stepBars(data, {at_stake_ms: stake, at_stake_if: condition}) {
    const parts = spentOn(data);
    const whole = data.run.step_mean_ms ?? data.run.wall_ms;
    if (!parts.length) return missing(report.lacks(data, 'path', 'What a step is spent on'));
    const sum = parts.reduce((total, {ms}) => total + ms, 0);
    const longest = Math.max(sum, whole ?? 0);
    const noun = data.run.step_mean_ms === undefined ? 'run' : stepWord();
    const row = (name, text, segments) => [element('dt', {}, name),
      element('dd', {class: 'stack', 'aria-hidden': 'true'}, ...segments),
      element('dd', {}, element('b', {}, text))];
    const mean = data.run.step_mean_ms === undefined ? '' : 'mean ';
    const bars = element('dl', {class: 'bars'}, ...row(`${mean}${noun} now`, format.milliseconds(whole),
        parts.map(({role, ms}) => segment(role, ms / longest))));
    if (stake > 0 && whole > 0) {
      bars.append(...row(condition || 'without that', `${format.milliseconds(Math.max(0, whole - stake))} (${
        format.percent(Math.min(1, stake / whole))} less)`, [segment('then', (whole - stake) / longest)]));
    }
    return element('div', {}, bars, element('ul', {class: 'legend'}, ...parts.map(({role, ms, kinds}) =>
      element('li', {title: kinds}, element('span', {class: `swatch ${role}`, 'aria-hidden': 'true'}),
          `${kRoleLabels[role]} ${format.milliseconds(ms)} (${format.percent(ms / sum)})`))));
  }

  // Shows what a finding rests on: its section with the rows of its ranks, and its part of the
  // timeline, which is where the page goes when it is known.
  function showEvidence(finding) {
    const {ranks, step, start_ms: startMs, end_ms: endMs, section: id} = finding;
    report.chosenRanks = ranks;
    const section = report.openSection(id);
    if (section) report.selectRows(section, {ranks, step});
    report.charts.repaintAll();
    if (report.showInTimeline && startMs !== undefined && endMs !== undefined) {
      report.showInTimeline({step, startMs, endMs, ranks});
    } else {
      section?.scrollIntoView();
    }
  }

  // Buttons that go to the evidence: the timeline where its part is known, and the section.
  function evidenceButtons(finding) {
    const title = report.sectionTitles.find(([id]) => id === finding.section)?.[1];
    return [finding.start_ms !== undefined && report.showInTimeline ?
      button('Show in the timeline', () => showEvidence(finding), {class: 'go'}) : '',
    title ? button(`Show in: ${title}`,
        () => showEvidence({...finding, start_ms: undefined}), {class: 'go'}) : ''];
  }

  const verdictOf = ({verdict}) => Object.hasOwn(kWords, verdict) ? verdict : 'info';

  function answer(data) {
    const [finding] = data.findings;
    const {headline, detail, rests_on: basis} = finding;
    const name = verdictOf(finding);
    return element('article', {class: `answer verdict ${name}`},
        element('span', {class: 'word'}, kWords[name]), element('h3', {}, headline),
        detail ? paragraph(detail) : '', stepBars(data, finding),
        paragraph(basis || 'The data does not say what this rests on.', 'soft'),
        element('p', {class: 'gos'}, ...evidenceButtons(finding)));
  }

  function findingRow(finding) {
    const {headline, detail, rests_on: basis, at_stake_ms: stake, at_stake_if: condition, ranks} = finding;
    const name = verdictOf(finding);
    return element('details', {class: 'finding'},
        element('summary', {}, element('span', {class: `word ${name}`}, kWords[name]),
            element('span', {class: 'headline'}, headline,
                detail && (stake > 0 || ranks?.length) ? element('span', {class: 'soft clipped'}, detail) : ''),
            element('span', {class: 'stake', title: explain('at stake')},
                ...(stake > 0 ? [`saves ${format.milliseconds(stake)}`,
                  element('span', {class: 'soft'}, condition)] : []))),
        detail ? paragraph(detail) : '', basis ? paragraph(basis, 'soft') : '',
        element('p', {class: 'gos'}, ...evidenceButtons(finding)));
  }

  function summary(data, section) {
    if (!data.findings.length) return 'The data holds no findings about this run.';
    section.append(answer(data), ...data.findings.slice(1).map(findingRow));
    // A click on a row opens it, and its evidence is marked when the reader gets there.
    section.querySelectorAll('details.finding').forEach((row, at) => row.addEventListener('toggle', () => {
      if (!row.open) return;
      report.chosenRanks = data.findings[at + 1].ranks;
      report.charts.repaintAll();
    }));
  }

  // The position of the step that takes longest, or undefined without steps.
  function slowest(steps) {
    const length = (at) => steps[at].end_ms - steps[at].start_ms;
    return [...steps.keys()].reduce((most, at) => most === undefined || length(at) > length(most) ?
        at : most, undefined);
  }

  function timeline(all, section) {
    const {timeline: data, steps} = all;
    if (!data?.lanes.length || !data.events.lane.length) return 'The data holds no timeline of events.';
    section.append(paragraph('Every rank on the common clock. A strip along the foot of a lane ' +
        'stands for many events too short to draw; its height is how much of the time they fill.', 'soft lead'));
    if (data.truncated) {
      section.append(paragraph('The run has more events than are drawn here.', 'soft'));
    }
    const told = steps.findIndex(({step}) => step === all.findings[0]?.step);
    report.view = report.timeline(section, all, told >= 0 ? told : slowest(steps));
  }

  const nodeName = (node) => `node ${node.node_id}${node.hostname ? ` (${node.hostname})` : ''}${
    node.ranks.length ? `, rank ${format.ranges(node.ranks)}` : ''}`;

  // The offset of every node's clock, with how far it may be off.
  function clockChart(nodes) {
    const known = nodes.filter(({offset_ns: offset}) => offset !== undefined);
    const bandOf = (node) => node.uncertainty_max_ns ?? node.uncertainty_ns;
    const most = known.reduce((a, node) => Math.max(a, bandOf(node) ?? 0), 0);
    return charts.figure({title: "Offset of each node's clock, with its uncertainty",
      label: () => `Dots of the offsets of ${format.count(known.length, 'clock')}; they are known within ${
        format.nanoseconds(most)} at worst.`,
      numbers: () => ({caption: 'Offsets of the clocks', name: 'clock_offsets', rows: known,
        columns: kClockColumns.slice(0, 7)}),
      config: (palette) => charts.scatter(palette, {
        x: {title: 'node', text: (at) => Number.isInteger(at) && known[at] ? `${known[at].node_id}` : '',
          min: -0.5, max: known.length - 0.5},
        y: {title: 'offset', text: format.nanoseconds},
        series: [{label: 'offset', data: known.map((node, x) => ({x, y: node.offset_ns})),
          pointRadius: known.length > 64 ? 2 : 5, intervalColour: palette.host,
          intervals: known.map((node) => bandOf(node) === undefined ? undefined :
            [node.offset_ns - bandOf(node), node.offset_ns + bandOf(node)])},
        {label: 'known within', data: [], backgroundColor: palette.host, borderColor: palette.host,
          pointStyle: 'line'}]})}).element;
  }

  // Nothing is wrong when no collective contradicts the clocks and none is off by more than is known.
  const clocksAgree = ({nodes, happens_before: check}) => check.violations_after === 0 &&
      nodes.every(({offset_ns: offset, uncertainty_ns: band}) => Math.abs(offset) <= band);

  function happensBefore(check) {
    if (check.checked === undefined) {
      return 'It is not known whether the common clock keeps causes before effects.';
    }
    const where = check.checked_on ? ` in the ${check.checked_on}` : '';
    const after = check.violations_after === 0 ? 'none does' :
        `${format.fixed(check.violations_after, 0)} still do`;
    const unchecked = check.incomplete ? ` ${format.count(check.incomplete, 'collective')} could ` +
        'not be checked, because a rank is missing.' : '';
    return `Of ${format.count(check.checked, 'collective')} checked${where}, ${
      format.fixed(check.violations_before, 0)} ended on one rank before they began on another by ` +
      `the nodes' own clocks, and ${after} on the common clock.${unchecked}`;
  }

  const kClockColumns = [whole('node', '', 'node_id'), text('host', 'hostname'),
    text('ranks', (node) => format.ranges(node.ranks), {absent: 'none'}), text('method', 'method'),
    number('offset', 'ms', times('offset_ns', 1e-6), {digits: 4}),
    number('uncertainty', '± ms', times('uncertainty_ns', 1e-6), {digits: 4}),
    number('uncertainty at worst', '± ms', times('uncertainty_max_ns', 1e-6), {digits: 4}),
    number('drift', 'ppm', 'drift_ppm'),
    number('drift uncertainty', '± ppm', 'drift_uncertainty_ppm'),
    number('largest offset removed', 'ms', times('max_correction_ns', 1e-6)),
    whole('events', '', 'events')];

  function clocks({combine: {nodes, happens_before: check}}, section) {
    section.append(paragraph(happensBefore(check)));
    if (!nodes.length) return 'The data holds no nodes, so nothing is known about their clocks.';
    section.append(table({caption: 'Clock of each node against the common clock', name: 'clocks',
      rows: nodes, columns: kClockColumns}));
    section.append(nodes.some(({offset_ns: offset}) => offset !== undefined) ? clockChart(nodes) :
      missing('No offset is known. Give clock offsets or probes, or profiles with collectives between nodes.'));
  }

  function files({files: rows}, section) {
    if (!rows.length) return 'The data names no files.';
    section.append(table({caption: 'Files of this run', name: 'files', rows, columns: [
      text('kind', 'kind'), text('file', 'path', {wrap: true}), whole('size', 'bytes', 'bytes'),
      text('note', 'note', {wrap: true, absent: ''})]}));
  }

  function notes({notes: lines, stages}, section) {
    section.append(lines.length ? report.dom.list(lines) : missing('There are no notes.'));
    section.append(stages.length ? table({caption: 'Stages of the analysis', name: 'stages',
      rows: stages, columns: [text('stage', 'name'), text('state', 'state', {about: 'stage'}),
        number('time', 's', 'seconds', {about: 'stage'}), text('note', 'note', {wrap: true, absent: ''})]}) :
      missing('The data names no stages of the analysis.'));
  }

  report.made = ({version, created, command}) => paragraph(
      `Made by Meridian${version ? ` ${version}` : ''}${created ? `, ${created},` : ''}${command ? ` with: ${command}` : ''}`);
  // Why something is not known, by the stage that would have found it, and what to do.
  report.lacks = ({stages, evidence}, name, what) => {
    const stage = stages.find((one) => one.name === name && one.state !== 'done');
    const why = stage ? `the stage "${name}" ${stage.state === 'failed' ? 'failed' : 'did not run'}${
      stage.note ? `: ${stage.note}` : ''}` : evidence.communication_only ?
      'the profiles hold communication alone. Record the kernels of the devices, too' :
      'the data of this report does not hold it. Make the report anew with combine, from the profiles';
    return `${what} is not known: ${why.replace(/\.$/, '')}.`;
  };
  report.clocksAgree = clocksAgree;
  report.heading = heading;
  report.sections = {summary, timeline, clocks, files, notes};
  // In the order of the page: id, title and, where it says more, heading.
  report.sectionTitles = [['summary', 'Findings'], ['comparison', 'Comparison', 'Against another run'],
    ['timeline', 'Timeline'], ['pictures', 'Ranks', 'All ranks at a glance'],
    ['operations', 'Operations'], ['waiting', 'Waiting', 'Waiting and transfer'],
    ['path', 'Critical path'], ['blame', 'Who is late', 'Who makes the others wait'],
    ['what_if', 'What if'], ['clocks', 'Clocks'],
    ['simulation', 'Simulation', 'Simulation of the network'], ['files', 'Files'],
    ['notes', 'Notes', 'Notes and stages']];
})();
