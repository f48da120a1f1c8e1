// SPDX-License-Identifier: Apache-2.0
// The sections about the run: each function fills its element, or returns what is missing.
'use strict';

(() => {
  const {element, button, paragraph, missing, stepWord} = report.dom;
  const {format, table, charts, columns: {text, number, whole, times}} = report;
  const kMostClocks = 8;  // So many clock charts are drawn before a button asks for the others.
  const kWords = {good: 'Good', bad: 'Problem', unknown: 'Unknown', info: 'Note'};

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
    top.append(element('h1', {}, title || 'A run without a name'));
    top.append(element('ul', {class: 'facts'}, ...facts.map(
        ([name, value]) => element('li', {}, `${name} `, element('b', {}, value)))));
    if (created) top.append(paragraph(`Report made ${created}.`, 'soft'));
  }

  function summary({findings}, section) {
    if (!findings.length) return 'The data holds no findings about this run.';
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

  function timeline(all, section) {
    const {timeline: data, steps} = all;
    if (!data?.lanes.length || !data.events.lane.length) return 'The data holds no timeline of events.';
    section.append(paragraph('Every rank on the common clock. A strip along the foot of a lane ' +
        'stands for many events too short to draw; its height is how much of the time they fill.'));
    if (data.truncated) {
      section.append(paragraph('The run has more events than are drawn here.', 'soft'));
    }
    report.view = report.timeline(section, all, slowest(steps));
  }

  const nodeName = (node) => `node ${node.node_id}${node.hostname ? ` (${node.hostname})` : ''}${
    node.ranks.length ? `, rank ${format.ranges(node.ranks)}` : ''}`;

  // Offsets are drawn from the node's own offset, because seconds of offset would hide the
  // microseconds of drift and uncertainty. The largest uncertainty holds at every moment.
  function clockChart(node) {
    const base = node.offset_ns ?? 0;
    const band = node.uncertainty_max_ns;
    const offsets = node.clock_offset_ns.map((offset) => offset - base);
    const largest = offsets.reduce((most, offset) => Math.max(most, Math.abs(offset)), band ?? 0);
    const [unit, scale] = largest >= 1e6 ? ['ms', 1e-6] : ['µs', 1e-3];
    const rows = node.clock_at_ms.map((time, at) => ({time, offset: offsets[at] * scale,
      low: band === undefined ? undefined : (offsets[at] - band) * scale,
      high: band === undefined ? undefined : (offsets[at] + band) * scale}));
    const points = (name) => rows.map((row) => ({x: row.time, y: row[name] ?? null}));
    const around = `around ${format.nanoseconds(base)}`;
    return charts.figure({title: `${nodeName(node)}: ${around}`, height: () => 200,
      label: () => `Line chart of the clock offset of ${nodeName(node)} over the run, ${around}, ` +
          `with its band of uncertainty of ${format.nanoseconds(node.uncertainty_ns)}.`,
      numbers: () => ({caption: `Offset ${around}`, name: 'clock', rows, columns: [
        number('time', 'ms', 'time'), number('offset', unit, 'offset'), number('low', unit, 'low'),
        number('high', unit, 'high')]}),
      config: (palette) => ({type: 'line', data: {datasets: clockLines(palette, points)},
        options: withoutLow(charts.options(palette, {scales: {
          x: charts.axis(palette, {type: 'linear', title: 'time of the run (ms)',
            min: node.clock_at_ms[0], max: node.clock_at_ms.at(-1)}),
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
    number('worst correction', 'ms', times('max_correction_ns', 1e-6)),
    whole('events', '', 'events')];

  function clocks({combine: {nodes, happens_before: check}}, section) {
    section.append(paragraph(happensBefore(check)));
    if (!nodes.length) return 'The data holds no nodes, so nothing is known about their clocks.';
    section.append(table({caption: 'Clock of each node against the common clock', name: 'clocks',
      rows: nodes, columns: kClockColumns}));
    const drawable = nodes.filter((node) => node.clock_offset_ns.length);
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
    if (!rows.length) return 'The data names no files.';
    section.append(table({caption: 'Files of this run', name: 'files', rows, columns: [
      text('kind', 'kind'), text('path', 'path', {wrap: true}), whole('size', 'bytes', 'bytes'),
      text('note', 'note', {wrap: true, absent: ''})]}));
  }

  function notes({notes: lines, stages, command, version}, section) {
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
  // In the order of the page: id, title and, where it says more, heading.
  report.sectionTitles = [['summary', 'Findings'], ['timeline', 'Timeline'], ['clocks', 'Clocks'],
    ['waiting', 'Waiting', 'Waiting and transfer'], ['path', 'Critical path'],
    ['blame', 'Who is late', 'Who makes the others wait'], ['what_if', 'What if'],
    ['simulation', 'Simulation', 'Simulation of the network'], ['files', 'Files'],
    ['notes', 'Notes', 'Notes and stages']];
})();
