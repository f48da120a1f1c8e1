// SPDX-License-Identifier: Apache-2.0
// The section about another run: what is different, and whether that is more than noise.
'use strict';

(() => {
  const {element, button, folded, list, missing, paragraph, stepWord} = report.dom;
  const {format, table, charts, columns: {text, number, whole, times}} = report;
  const kWords = {SAME: 'no difference', LONGER: 'longer', SHORTER: 'shorter', NEW: 'new',
    GONE: 'gone', UNKNOWN: 'not known'};
  const kLooks = {SAME: 'info', LONGER: 'bad', SHORTER: 'good'};

  const wordOf = ({verdict}) => kWords[verdict] ?? kWords.UNKNOWN;
  const signed = (ms) => ms === 0 ? 'unchanged' : `${ms > 0 ? '+' : ''}${format.milliseconds(ms)}`;

  const columns = (what, about = what) => [text(what, 'name', {wrap: true, shorten: true, about}),
    text('verdict', wordOf), number('before', 'ms', 'before_ms', {absent: 'none'}),
    number('after', 'ms', 'after_ms', {absent: 'none'}), number('change', 'ms', 'change_ms'),
    number('noise', '± ms', 'noise_ms')];

  // The bars from what was before to what is after: {label, ends, role}. What the parts do not add up
  // to is a bar of its own.
  function waterfall({step, parts}) {
    let level = step.before_ms;
    const rows = parts.map(({name, change_ms: change, role}) => {
      const ends = [level, level + change];
      level += change;
      return {label: `${name} ${signed(change)}`, name, change, ends, role};
    });
    const rest = step.after_ms - level;
    if (Math.abs(rest) > 0.005 * Math.max(step.before_ms, step.after_ms)) {
      rows.push({label: `in no part ${signed(rest)}`, name: 'in no part', change: rest,
        ends: [level, step.after_ms], role: 'gap'});
    }
    const bar = (name, ms) => ({label: `${name} ${format.milliseconds(ms)}`, name, ends: [0, ms], change: ms});
    return [bar('before', step.before_ms), ...rows, bar('after', step.after_ms)];
  }

  // Where the axis begins: changes that are small beside the step are seen when not at 0.
  function floorOf(rows) {
    const ends = rows.flatMap((row) => row.ends).filter((end) => end > 0);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const from = low - (high - low);
    return from > 0.5 * high ? Number(from.toPrecision(2)) : 0;
  }

  function waterfallChart(data) {
    const rows = waterfall(data);
    const from = floorOf(rows);
    const toneOf = (row) => row.ends[0] === 0 ? 'host' : row.change > 0 ? 'bad' : 'good';
    return charts.figure({title: `A ${stepWord()} before and after${from ? ` (the axis begins at ${
      format.milliseconds(from)})` : ''}`, height: () => 60 + 26 * rows.length,
    label: () => `Bars that add up: ${rows.map(({label}) => label).join(', ')}.`,
    numbers: () => ({caption: 'Parts of the change', name: 'comparison_parts',
      rows: [data.step, ...data.parts], columns: columns('part', 'critical path')}),
    config: (palette) => {
      const made = charts.bars(palette, {labels: rows.map(({label}) => label), horizontal: true, from,
        series: [{label: 'time', role: 'host', data: rows.map(({ends: [a, b]}) =>
          [Math.max(from, Math.min(a, b)), Math.max(a, b)]),
        backgroundColor: rows.map((row) => palette[toneOf(row)])}]});
      made.options.plugins.legend.display = false;
      made.options.plugins.tooltip.callbacks.label = ({dataIndex}) => rows[dataIndex].label;
      return made;
    }}).element;
  }

  function stepsChart({before_steps_ms: before, after_steps_ms: after, before: one, after: other}) {
    let isSorted = false;
    const ordered = (steps) => isSorted ? [...steps].sort((a, b) => a - b) : steps;
    const points = (steps) => ordered(steps).map((ms, at) => ({x: at + 1, y: ms}));
    const rows = () => [...Array(Math.max(before.length, after.length)).keys()].map((at) =>
      ({step: at + 1, before: ordered(before)[at], after: ordered(after)[at]}));
    const chart = charts.figure({title: `Length of each ${stepWord()} of both runs`,
      label: () => `Lines of ${before.length} and ${after.length} ${stepWord()}s${
        isSorted ? ', sorted by length' : ''}.`,
      numbers: () => ({caption: `Length of each ${stepWord()}`, name: 'comparison_steps', rows: rows(),
        columns: [whole('step', '', 'step'), number('before', 'ms', 'before', {absent: 'none'}),
          number('after', 'ms', 'after', {absent: 'none'})]}),
      config: (palette) => charts.scatter(palette, {
        x: {title: isSorted ? 'sorted by length' : stepWord(), text: format.plain},
        y: {title: 'time', text: format.milliseconds},
        series: [[one || 'before', before], [other || 'after', after]].map(([label, steps]) =>
          ({label, data: points(steps), showLine: true}))})});
    const toggle = button('Sort by length', () => {
      isSorted = !isSorted;
      toggle.setAttribute('aria-pressed', String(isSorted));
      chart.redraw();
    }, {'aria-pressed': 'false'});
    chart.element.firstChild.after(element('div', {class: 'controls'}, toggle));
    return chart.element;
  }

  // "3 longer, 1 new, 40 no difference".
  function countsOf(rows) {
    const counts = Object.values(kWords).map((word) => [word, rows.filter((row) => wordOf(row) === word).length]);
    return counts.filter(([, count]) => count).map(([word, count]) => `${format.fixed(count, 0)} ${word}`).join(', ');
  }

  // The row with its times in milliseconds.
  const inMs = (row) => ({...row, ...Object.fromEntries(['before', 'after', 'change', 'noise'].map(
      (name) => [`${name}_ms`, times(`${name}_ns`, 1e-6)(row)]))});

  function inMilliseconds(data) {
    const lists = ['parts', 'operations', 'collectives', 'ranks', 'clocks'];
    return {...data, step: inMs(data.step), before_steps_ms: data.before_steps_ns.map((ns) => ns * 1e-6),
      after_steps_ms: data.after_steps_ns.map((ns) => ns * 1e-6),
      ...Object.fromEntries(lists.map((name) => [name, data[name].map(inMs)]))};
  }

  function comparison({comparison: raw, findings}, section) {
    const data = inMilliseconds(raw);
    const {step, before, after, headline, detail, verdict} = data;
    const runs = `${before || 'before'} → ${after || 'after'}: ${wordOf(data)}`;
    // The answer above has said it.
    section.append(findings[0]?.topic === 'comparison' ? paragraph(runs) :
      element('article', {class: `verdict ${kLooks[verdict] ?? 'unknown'}`},
          element('span', {class: 'word'}, runs),
          element('h3', {}, headline || 'What is different is not known.'), detail ? paragraph(detail) : ''));
    const pair = element('div', {class: 'pair'});
    pair.append(step.before_ms > 0 && step.after_ms > 0 ? waterfallChart(data) :
      missing(`A run has no ${stepWord()}s, so their parts cannot be compared. Record some ${stepWord()}s of both.`));
    if (data.before_steps_ms.length || data.after_steps_ms.length) pair.append(stepsChart(data));
    section.append(pair);
    for (const [name, title, what] of [['operations', 'Operations', 'operation'],
      ['collectives', 'Collectives', 'collective'], ['ranks', 'Waiting for ranks', 'rank'],
      ['clocks', 'Clocks', 'node']]) {
      section.append(data[name].length ? folded(`${title}: ${countsOf(data[name])}`,
          table({caption: `${title} of both runs`, name: `comparison_${name}`, rows: data[name],
            columns: columns(what)})) : missing(`${title}: nothing that both runs can be compared by.`));
    }
    if (data.notes.length) section.append(list(data.notes));
  }

  report.sections.comparison = comparison;
})();
