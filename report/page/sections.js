// SPDX-License-Identifier: Apache-2.0
// The sections about the run: each function fills its element or says what is missing.
'use strict';

(() => {
  const {element, button, paragraph, missing, stepWord} = report.dom;
  const {format, table, charts, columns: {text, number, whole}} = report;
  const kMostClocks = 8;  // So many clock charts are drawn before a button asks for the others.
  const kWords = {good: 'Good', bad: 'Problem', unknown: 'Unknown', info: 'Note'};

  // "0-3, 8": runs of numbers, each once.
  function ranges(numbers) {
    const runs = [];
    for (const value of [...new Set(numbers)].sort((a, b) => a - b)) {
      const last = runs[runs.length - 1];
      if (last && value === last[1] + 1) last[1] = value; else runs.push([value, value]);
    }
    return runs.map(([low, high]) => low === high ? `${low}` : `${low}-${high}`).join(', ');
  }

  function hostsText(hosts) {
    if (hosts.length <= 4) return hosts.join(', ') || format.kUnknown;
    return `${hosts.slice(0, 3).join(', ')} and ${hosts.length - 3} more`;
  }

  function heading(data, top) {
    const {title, run, created} = data;
    const spread = run.step_spread_ms === undefined ? '' :
        ` (spread ${format.milliseconds(run.step_spread_ms)})`;
    const facts = [['framework', run.framework || format.kUnknown],
      ['ranks', format.plain(run.ranks)], ['hosts', hostsText(run.hosts)],
      ['recorded', run.recorded || format.kUnknown], [`${stepWord()}s`, format.plain(run.steps)],
      [`time per ${stepWord()}`, format.milliseconds(run.step_ms) + spread],
      ['whole run', format.milliseconds(run.wall_ms)], ['events', format.plain(run.events)]];
    if (data.workload) {
      top.append(element('h1', {}, title));
      return;
    }
    top.append(element('h1', {}, title || 'A run without a name'),
        element('ul', {class: 'facts'}, ...facts.map(
            ([name, value]) => element('li', {}, `${name} `, element('b', {}, value)))));
    if (created) top.append(paragraph(`Report made ${created}.`, 'soft'));
  }

  function summary({findings}, section) {
    section.append(element('h2', {}, 'Findings'));
    if (!findings.length) section.append(missing('The data holds no findings about this run.'));
    for (const {verdict, headline, detail, rests_on: basis, section: proof} of findings) {
      const name = Object.hasOwn(kWords, verdict) ? verdict : 'info';
      const target = report.sectionTitles.find(([id]) => id === proof);
      section.append(element('article', {class: `verdict ${name}`},
          element('span', {class: 'word'}, kWords[name]), element('h3', {}, headline),
          detail ? paragraph(detail) : '', basis ? paragraph(basis, 'soft') : '',
          target ? element('a', {href: `#${target[0]}`}, `Shown in: ${target[1]}`) : ''));
    }
  }

  // The position of the step that takes longest, or undefined without steps.
  function slowest(steps) {
    const length = (at) => steps[at].end_ms - steps[at].start_ms;
    return [...steps.keys()].reduce((most, at) => most === undefined || length(at) > length(most) ?
        at : most, undefined);
  }

  function timeline({timeline: data, steps}, section) {
    section.append(element('h2', {}, 'Timeline'));
    if (!data || !data.lanes.length || !data.events.lane.length) {
      section.append(missing('The data holds no timeline of events.'));
      return;
    }
    section.append(paragraph('Every rank on the common clock. A strip along the foot of a lane ' +
        'stands for many events too short to draw; its height is how much of the time they fill.'));
    if (data.truncated) {
      section.append(paragraph('The run has more events than are drawn here.', 'soft'));
    }
    report.view = report.timeline(section, data, steps, slowest(steps));
  }

  const nodeName = (node) => `node ${node.node_id}${node.hostname ? ` (${node.hostname})` : ''}${
    node.ranks.length ? `, rank ${ranges(node.ranks)}` : ''}`;

  // Offsets are drawn from the node's own offset, because seconds of offset would hide the
  // microseconds of drift and uncertainty.
  function clockChart(node) {
    const {clock} = node;
    const base = node.offset_ms ?? 0;
    const largest = [...clock.low_ms, ...clock.high_ms, ...clock.offset_ms].filter(format.isKnown)
        .reduce((most, value) => Math.max(most, Math.abs(value - base)), 0);
    const [unit, scale] = largest >= 1 ? ['ms', 1] : ['µs', 1e3];
    const rows = clock.time_ms.map((time, at) => {
      const relative = (values) => values[at] === undefined ? undefined : (values[at] - base) * scale;
      return {time, offset: relative(clock.offset_ms), low: relative(clock.low_ms),
        high: relative(clock.high_ms)};
    });
    const points = (name) => rows.map((row) => ({x: row.time, y: row[name] ?? null}));
    const around = `around ${format.milliseconds(base)}`;
    return charts.figure({title: `${nodeName(node)}: ${around}`, height: () => 200,
      label: () => `Line chart of the clock offset of ${nodeName(node)} over the run, ${around}, ` +
          `with its band of uncertainty of ${format.milliseconds(node.uncertainty_ms)}.`,
      numbers: () => ({caption: `Offset ${around}`, name: 'clock', rows, columns: [
        number('time', 'ms', 'time'), number('offset', unit, 'offset'), number('low', unit, 'low'),
        number('high', unit, 'high')]}),
      config: (palette) => ({type: 'line', data: {datasets: clockLines(palette, points)},
        options: withoutLow(charts.options(palette, {scales: {
          x: charts.axis(palette, {type: 'linear', title: 'time of the run (ms)',
            min: clock.time_ms[0], max: clock.time_ms[clock.time_ms.length - 1]}),
          y: charts.axis(palette, {title: `offset (${unit})`})}}))})});
  }

  function clockLines(palette, points) {
    const edge = {borderColor: palette.host, borderWidth: 1, pointRadius: 0};
    return [{label: 'offset', data: points('offset'), borderColor: palette.transfer,
      backgroundColor: palette.transfer, borderWidth: 2, pointRadius: 2},
    {label: 'low', data: points('low'), ...edge},
    {label: 'uncertainty', data: points('high'), ...edge, fill: '-1',
      backgroundColor: `${palette.host}44`}];
  }

  function withoutLow(options) {
    options.plugins.legend.labels.filter = (item) => item.text !== 'low';
    return options;
  }

  function happensBefore(check) {
    if (!check) return 'It is not known whether the common clock keeps causes before effects.';
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
    text('ranks', (node) => ranges(node.ranks), {absent: 'none'}), text('method', 'method'),
    number('offset', 'ms', 'offset_ms', {digits: 4}),
    number('uncertainty', '± ms', 'uncertainty_ms', {digits: 4}),
    number('uncertainty at worst', '± ms', 'uncertainty_max_ms', {digits: 4}),
    number('drift', 'ppm', 'drift_ppm'),
    number('drift uncertainty', '± ppm', 'drift_uncertainty_ppm'),
    number('worst correction', 'ms', 'max_correction_ms'), whole('events', '', 'events')];

  function clocks({nodes, happens_before: check}, section) {
    section.append(element('h2', {}, 'Clocks'), paragraph(happensBefore(check)));
    if (!nodes.length) {
      section.append(missing('The data holds no nodes, so nothing is known about their clocks.'));
      return;
    }
    section.append(table({caption: 'Clock of each node against the common clock', name: 'clocks',
      rows: nodes, columns: kClockColumns}));
    const drawable = nodes.filter((node) => node.clock.offset_ms.some(format.isKnown));
    if (!drawable.length) section.append(missing('The data holds no clock offsets over time.'));
    const grid = element('div', {class: 'small'});
    const add = (some) => {
      const made = some.map(clockChart);
      grid.append(...made.map((chart) => chart.element));
      return made;
    };
    add(drawable.slice(0, kMostClocks));
    section.append(grid);
    if (drawable.length <= kMostClocks) return;
    const more = button(`Draw the clocks of all ${drawable.length} nodes`, () => {
      more.remove();
      add(drawable.slice(kMostClocks)).forEach((chart) => chart.redraw());
    });
    section.append(more);
  }

  function files({files: rows}, section) {
    section.append(element('h2', {}, 'Files'));
    section.append(rows.length ? table({caption: 'Files of this run', name: 'files', rows, columns: [
      text('kind', 'kind'), text('path', 'path', {wrap: true}), whole('size', 'bytes', 'bytes'),
      text('note', 'note', {wrap: true, absent: ''})]}) : missing('The data names no files.'));
  }

  function notes({notes: lines, stages, command, version}, section) {
    section.append(element('h2', {}, 'Notes and stages'));
    section.append(lines.length ? report.dom.list(lines) : missing('There are no notes.'));
    section.append(stages.length ? table({caption: 'Stages of the analysis', name: 'stages',
      rows: stages, columns: [text('stage', 'name'), text('state', 'state'),
        number('time', 's', 'seconds'), text('note', 'note', {wrap: true, absent: ''})]}) :
      missing('The data names no stages of the analysis.'));
    document.getElementById('made').append(paragraph(
        `Made by Meridian${version ? ` ${version}` : ''}${command ? ` with: ${command}` : ''}`));
  }

  report.heading = heading;
  report.sections = {summary, timeline, clocks, files, notes};
  report.sectionTitles = [['summary', 'Findings'], ['timeline', 'Timeline'], ['clocks', 'Clocks'],
    ['waiting', 'Waiting'], ['path', 'Critical path'], ['blame', 'Who is late'],
    ['what_if', 'What if'], ['simulation', 'Simulation'], ['files', 'Files'], ['notes', 'Notes']];
})();
