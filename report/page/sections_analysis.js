// SPDX-License-Identifier: Apache-2.0
// The sections about where the time goes: each function fills its element, or returns what is
// missing.
'use strict';

(() => {
  const {element, paragraph, missing, stepChooser, stepName, stepWord} = report.dom;
  const {format, table, charts, columns: {text, number, whole, times}} = report;

  const total = (rows, name) => rows.reduce((sum, row) => sum + row[name], 0);

  // Rows by the value of a field, in its order.
  function grouped(rows, name) {
    const groups = new Map();
    for (const row of rows) {
      if (!groups.has(row[name])) groups.set(row[name], []);
      groups.get(row[name]).push(row);
    }
    return new Map([...groups].sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));
  }

  // Waiting, transfer and the rest of the wall time of each rank, over the given rows.
  function byRank(rows) {
    return [...grouped(rows, 'rank')].map(([rank, own]) => {
      const [wait, transfer, wall] = ['waited_ms', 'transfer_ms', 'wall_ms'].map(
          (name) => total(own, name));
      return {rank, wait, transfer, wall, other: Math.max(0, wall - wait - transfer)};
    });
  }

  function waitingLabel(rows, where) {
    const most = rows.reduce((a, b) => b.wait > a.wait ? b : a);
    return `Stacked bars of each rank's wall time in ${where}. Rank ${most.rank} waits most, ${
      format.milliseconds(most.wait)}.`;
  }

  function waitingChart(waiting) {
    const groups = grouped(waiting, 'step');
    const steps = [...groups].map(([step, rows]) => ({step, start_ms: 0,
      end_ms: rows.reduce((most, row) => Math.max(most, row.wall_ms), 0)}));
    let where = `all ${stepWord()}s`;
    let shown = byRank(waiting);
    const chart = charts.figure({title: 'Wall time of each rank',
      height: () => Math.max(160, 80 + 24 * shown.length), label: () => waitingLabel(shown, where),
      numbers: () => ({caption: `Wall time of each rank in ${where}`, name: 'wall_by_rank',
        rows: shown, columns: [whole('rank', '', 'rank'), number('waiting', 'ms', 'wait'),
          number('transfer', 'ms', 'transfer'), number('other', 'ms', 'other'),
          number('wall', 'ms', 'wall')]}),
      config: (palette) => charts.bars(palette, {horizontal: true, stacked: true,
        labels: shown.map((row) => `rank ${row.rank}`), series: [
          {label: 'waiting', role: 'wait', data: shown.map((row) => row.wait)},
          {label: 'transfer', role: 'transfer', data: shown.map((row) => row.transfer)},
          {label: 'other', role: 'gap', data: shown.map((row) => row.other)}]})});
    const chooser = stepChooser(steps, undefined, (at) => {
      where = at === undefined ? `all ${stepWord()}s` : stepName(steps[at].step);
      shown = byRank(at === undefined ? waiting : groups.get(steps[at].step));
      chart.redraw();
    });
    chart.element.firstChild.after(element('div', {class: 'controls'}, chooser));
    return chart.element;
  }

  function kindsChart(kinds) {
    return charts.figure({title: 'Waiting for the last rank against transfer, by kind',
      label: () => `Bars of ${format.count(kinds.length, 'kind')} of collectives: waiting ${
        format.milliseconds(total(kinds, 'wait_ms'))}, transfer ${
        format.milliseconds(total(kinds, 'transfer_ms'))} in all.`,
      numbers: () => ({caption: 'Collectives by kind', name: 'kinds', rows: kinds, columns: [
        text('kind', 'kind'), whole('instances', '', 'instances'),
        whole('size', 'bytes', 'operand_bytes'),
        number('waiting', 'ms', 'wait_ms'), number('transfer', 'ms', 'transfer_ms')]}),
      config: (palette) => charts.bars(palette, {labels: kinds.map((row) => row.kind), series: [
        {label: 'waiting', role: 'wait', data: kinds.map((row) => row.wait_ms)},
        {label: 'transfer', role: 'transfer', data: kinds.map((row) => row.transfer_ms)}]}),
    }).element;
  }

  // Only what is above 0 has a place on logarithmic axes.
  const hasBandwidth = (row) => row.bytes > 0 && row.bus_gb_per_s > 0;
  const hasTimes = (cell) => cell.measured_ns > 0 && cell.simulated_ns > 0;

  function bandwidthChart(transfers) {
    const drawable = transfers.filter(hasBandwidth);
    const best = drawable.reduce((most, row) => Math.max(most, row.bus_gb_per_s), 0);
    return charts.figure({title: 'Size against bus bandwidth',
      label: () => `Scatter of ${format.count(drawable.length, 'size')} of collectives; the ` +
          `highest bus bandwidth is ${format.rate(best)}.`,
      numbers: () => ({caption: 'Transfers by kind and size', name: 'transfers', rows: transfers,
        columns: [text('kind', 'kind'), whole('size', 'bytes', 'bytes'), whole('ranks', '', 'ranks'),
          whole('count', '', 'count'), number('median transfer', 'ms', 'transfer_ms'),
          number('wait', 'ms', 'wait_ms'), number('bus bandwidth', 'GB/s', 'bus_gb_per_s')]}),
      config: (palette) => charts.scatter(palette, {
        x: {title: 'size', log: 4, text: format.bytes},
        y: {title: 'bus bandwidth', log: 10, text: format.rate},
        series: [...grouped(drawable, 'kind')].map(([kind, rows]) => ({label: kind,
          data: rows.map((row) => ({x: row.bytes, y: row.bus_gb_per_s}))}))})}).element;
  }

  const kRankColumns = [whole('rank', '', 'rank'), text('host', ({rank}) => report.hosts.get(rank)),
    whole('last', 'collectives', 'last'), whole('of', 'collectives', 'collectives'),
    number('made others wait', 'ms', 'caused_wait_ms', {bar: true}),
    number('waited', 'ms', 'waited_ms'), number('transfer', 'ms', 'transfer_ms')];
  const kWaitingColumns = [whole('step', '', 'step'), whole('rank', '', 'rank'),
    number('wall', 'ms', 'wall_ms'), number('waited', 'ms', 'waited_ms'),
    number('transfer', 'ms', 'transfer_ms'), text('longest wait in', 'worst_op', {absent: 'none'}),
    number('of it', 'ms', 'worst_ms')];

  function waiting({combine: {step_waits: waits, kinds, transfers, ranks}}, section) {
    const rows = waits.map((row) => ({...row, wall_ms: row.end_ms - row.start_ms}));
    section.append(rows.length ? waitingChart(rows) :
      missing('The data holds no waiting times of ranks and steps.'));
    if (ranks.length) {
      section.append(table({caption: 'Who is last in collectives, and who waits', name: 'ranks',
        rows: ranks, columns: kRankColumns}));
    }
    const pair = element('div', {class: 'pair'});
    if (kinds.length) pair.append(kindsChart(kinds));
    if (transfers.some(hasBandwidth)) pair.append(bandwidthChart(transfers));
    section.append(pair.firstChild ? pair : missing('The data holds no kinds of collectives.'));
    if (!rows.length) return;
    section.append(element('details', {}, element('summary', {}, 'Waiting of each rank and step'),
        table({caption: 'Waiting by step and rank', name: 'waiting', rows,
          columns: kWaitingColumns})));
  }

  function pathKinds(kinds) {
    const looks = charts.looksOf(kinds.map(({role}) => role));
    return kinds.map(({kind, label}, at) => ({kind, label: label.slice(0, 40), ...looks[at]}));
  }

  // The time of the path by the values of a field: {value, all, of: time by kind}.
  function pathBy(path, name) {
    return [...grouped(path, name)].map(([value, rows]) => ({value, all: total(rows, 'ms'),
      of: new Map([...grouped(rows, 'kind')].map(([kind, own]) => [kind, total(own, 'ms')]))}));
  }

  function path(data, section) {
    if (!data.path.length) return 'The data holds no critical path.';
    const kinds = pathKinds(data.path_kinds);
    const all = total(data.path, 'ms');
    const share = (ms) => all > 0 ? ms / all : undefined;
    const steps = pathBy(data.path.filter(({step}) => step !== undefined), 'step');
    const kindColumns = kinds.map(
        ({kind, label}) => number(label, 'ms', (row) => row.of.get(kind) ?? 0));
    const shares = pathBy(data.path, 'kind').map(({value, all: ms}) =>
      `${kinds.find(({kind}) => kind === value)?.label ?? value} ${format.percent(share(ms))}`);
    section.append(
        paragraph('The chain of events that sets how long a step takes: where its time goes, and ' +
            'on which rank it lies.'),
        charts.figure({title: 'Critical path of each step, by kind',
          label: () => `Stacked bars of the critical path of ${format.count(steps.length, 'step')}: ${
            shares.join(', ')}.`,
          numbers: () => ({caption: 'Critical path by step', name: 'path_by_step', rows: steps,
            columns: [whole('step', '', 'value'), number('in all', 'ms', 'all'), ...kindColumns]}),
          config: (palette) => charts.bars(palette, {stacked: true,
            labels: steps.map(({value}) => stepName(value)), series: kinds.map(({kind, ...look}) =>
              ({...look, data: steps.map((step) => step.of.get(kind) ?? 0)}))})}).element,
        table({caption: 'Critical path by rank, over all steps', name: 'path_by_rank',
          rows: pathBy(data.path, 'rank'), columns: [whole('rank', '', 'value'),
            number('in all', 'ms', 'all'),
            number('share', '%', (row) => share(100 * row.all), {digits: 0, bar: true}),
            ...kindColumns]}));
  }

  function blame({blame: rows}, section) {
    if (!rows.length) return 'The data names no rank that makes the others wait.';
    section.append(table({caption: 'Delay that a rank causes, by step', name: 'blame',
      rows, columns: [whole('step', '', 'step'), whole('rank', '', 'rank'), text('host', 'hostname'),
        number('delay caused', 'ms', 'caused_ms', {bar: true}),
        number('of the step', '%', times('share', 100), {digits: 1}),
        text('operation', 'op', {wrap: true}), text('reason', 'reason', {wrap: true})]}));
  }

  // A slider over some values, in ascending order, that begins at 1.
  function slider(label, values, onChange) {
    const shown = element('output', {}, '1x');
    const input = element('input', {type: 'range', min: 0, max: values.length - 1, step: 1,
      'aria-label': label, value: values.indexOf(1)});
    input.addEventListener('input', () => {
      shown.textContent = `${values[input.value]}x`;
      onChange(values[input.value]);
    });
    return element('label', {class: 'chooser'}, `${label} `, input, shown);
  }

  // What a step takes with other links and other compute, of what was asked in advance.
  function forecastSliders(forecasts) {
    const grid = forecasts.filter((row) => row.bandwidth !== undefined);
    const values = (name) => [...new Set(grid.map((row) => row[name]))].sort((a, b) => a - b);
    const chosen = {bandwidth: 1, compute: 1};
    const answer = element('p', {role: 'status'});
    const say = () => {
      const row = grid.find((candidate) => candidate.bandwidth === chosen.bandwidth &&
          candidate.compute === chosen.compute);
      const text = (ns) => format.milliseconds(ns * 1e-6);
      answer.textContent = row === undefined ? 'Not known.' :
          `A ${stepWord()} would take ${text(row.step_ns)} (90 % interval ${text(row.low_ns)} to ${
            text(row.high_ns)}) in place of ${text(row.measured_step_ns)}, the median.`;
    };
    say();
    const choose = (label, name) => element('p', {}, slider(label, values(name),
        (value) => { chosen[name] = value; say(); }));
    return element('div', {}, choose('Bandwidth of the links', 'bandwidth'),
        choose('Time of computation', 'compute'), answer);
  }

  const forecastTime = (title, name) => number(title, 'ms', times(name, 1e-6));
  const forecastColumns = [text('asked', 'question'), whole('ranks', '', 'ranks'),
    forecastTime('step then', 'step_ns'), forecastTime('low', 'low_ns'),
    forecastTime('high', 'high_ns')];

  // What a step takes against the bandwidth of the links, a line for each time of computation.
  function forecastCurve(forecasts) {
    const grid = forecasts.filter((row) => row.bandwidth !== undefined);
    const ms = (ns) => ns * 1e-6;
    return charts.figure({title: 'A step against the bandwidth of the links',
      label: () => `Lines of what a step would take: ${grid.map((row) =>
        `${row.question} ${format.milliseconds(ms(row.step_ns))}`).join(', ')}.`,
      numbers: () => ({caption: 'Forecasts by bandwidth', name: 'forecast_curve', rows: grid,
        columns: forecastColumns}),
      config: (palette) => charts.scatter(palette, {
        x: {title: 'bandwidth', log: 2, text: (value) => `${value}x`,
          min: Math.min(...grid.map((row) => row.bandwidth)) / 1.2,
          max: Math.max(...grid.map((row) => row.bandwidth)) * 1.2},
        y: {title: 'step (ms)', text: format.plain, beginAtZero: true,
          suggestedMax: Math.max(...grid.map((row) => ms(row.high_ns)))},
        series: [...grouped(grid, 'compute')].map(([compute, rows]) => ({
          label: compute === 1 ? 'computation as it is' : `computation ${compute}x`,
          showLine: true, intervalColour: palette.soft,
          data: rows.map((row) => ({x: row.bandwidth, y: ms(row.step_ns)})),
          intervals: rows.map((row) => [ms(row.low_ns), ms(row.high_ns)])}))})}).element;
  }

  function whatIf({what_if: rows, forecasts, run}, section) {
    if (!rows.length && !forecasts.length) {
      return 'The data holds no estimates of what a change would save.';
    }
    if (forecasts.length) {
      section.append(forecastSliders(forecasts), forecastCurve(forecasts),
          table({caption: 'Forecasts: other links, other compute, more ranks', name: 'forecasts',
            rows: forecasts, columns: forecastColumns}),
          paragraph(`Rests on ${forecasts[0].rests_on.join('; ')}.`, 'soft'));
    }
    if (!rows.length) return undefined;
    const article = stepWord() === 'execution' ? 'An' : 'A';
    const now = run.step_mean_ms === undefined ?
        `The run takes ${format.milliseconds(run.wall_ms)} now.` :
        `${article} ${stepWord()} takes ${format.milliseconds(run.step_mean_ms)} now, in the mean.`;
    section.append(paragraph(now), table({caption: `Time per ${stepWord()} after a change`, name: 'what_if', rows, columns: [
      text('change', 'what', {wrap: true}),
      number('step', 'ms', 'step_ms', {bar: true}), number('saved', 'ms', 'saved_ms')]}));
  }

  const microseconds = (title, name) => number(title, 'µs', times(name, 1e-3));
  const milliseconds = (title, name) => number(title, 'ms', times(name, 1e-6));
  const error = number('error', '%', times('signed_error', 100), {digits: 1});
  const kCellColumns = [text('kind', 'kind'), whole('size', 'bytes', 'bytes'),
    text('group', 'group', {absent: 'all'}), microseconds('measured', 'measured_ns'),
    microseconds('simulated', 'simulated_ns'), microseconds('low', 'simulated_low_ns'),
    microseconds('high', 'simulated_high_ns'), error, whole('count', '', 'repeats')];

  // A scatter of measured and simulated times.
  function cellsChart(cells) {
    const drawable = cells.filter(hasTimes);
    const ends = drawable.flatMap((cell) => [cell.measured_ns, cell.simulated_ns]);
    const [min, max] = [Math.min(...ends) * 0.8, Math.max(...ends) * 1.25];
    const axis = (title) => ({title, log: 10, text: format.nanoseconds, min, max});
    return charts.figure({title: 'Measured against simulated time of collectives', height: () => 340,
      label: () => `Scatter of ${
        format.count(drawable.length, 'cell')}. On the diagonal both times are equal.`,
      numbers: () => ({caption: 'Cells of the simulation',
        name: 'simulation_cells', rows: cells, columns: kCellColumns}),
      config: (palette) => charts.scatter(palette, {x: axis('measured'), y: axis('simulated'),
        series: [{label: 'simulated', intervalColour: palette.soft,
          data: drawable.map((cell) => ({x: cell.measured_ns, y: cell.simulated_ns})),
          intervals: drawable.map((cell) => [cell.simulated_low_ns, cell.simulated_high_ns])},
        {label: 'equal', type: 'line', pointRadius: 0, pointStyle: 'line',
          borderColor: palette.soft, borderDash: [6, 4],
          data: [{x: min, y: min}, {x: max, y: max}]}]})}).element;
  }

  function simulatedSteps(steps) {
    return charts.figure({title: 'Measured against simulated steps', height: () => 340,
      label: () => `Bars of the measured and the simulated time of ${
        format.count(steps.length, 'step')}, with the interval of the simulation.`,
      numbers: () => ({caption: 'Steps of the simulation', name: 'simulation_steps', rows: steps,
        columns: [whole('step', '', 'step'), milliseconds('measured', 'measured_ns'),
          milliseconds('simulated', 'simulated_ns'), milliseconds('low', 'simulated_low_ns'),
          milliseconds('high', 'simulated_high_ns')]}),
      config: (palette) => charts.bars(palette, {labels: steps.map((row) => stepName(row.step)),
        series: [{label: 'measured', role: 'transfer', data: steps.map(times('measured_ns', 1e-6))},
          {label: 'simulated', role: 'host', use: 1, data: steps.map(times('simulated_ns', 1e-6)),
            intervals: steps.map((row) => [times('simulated_low_ns', 1e-6)(row),
              times('simulated_high_ns', 1e-6)(row)]), intervalColour: palette.ink}]})}).element;
  }

  function simulation({simulation: data}, section) {
    if (!data) return 'There is no simulation: no network was calibrated for this run.';
    section.append(paragraph(`Network: ${data.network || format.kUnknown}, calibrated from ${
      data.calibrated_from || format.kUnknown}. Error of the simulated collectives: ${
      format.percent(data.mean_error)} on average. Error of the simulated steps: ${
      format.percent(data.step_error)}.`));
    const pair = element('div', {class: 'pair'});
    pair.append(data.cells.some(hasTimes) ? cellsChart(data.cells) :
      missing('The data holds no simulated collectives with a time.'));
    pair.append(data.steps.length ? simulatedSteps(data.steps) :
      missing('The data holds no simulated steps.'));
    section.append(pair);
    if (data.parameters.length) {
      section.append(table({caption: 'Parameters of the network', name: 'parameters',
        rows: data.parameters, columns: [text('parameter', 'name'), number('value', '', 'value'),
          number('low', '', 'low'), number('high', '', 'high'),
          text('identified', ({kept, identifiable}) => identifiable ? 'yes' : kept ?
            'no: kept as given, the transfers do not tell it' :
            'no: the transfers do not vouch for it', {wrap: true})]}));
    }
    section.append(report.dom.list(data.notes));
  }

  Object.assign(report.sections, {waiting, path, blame, what_if: whatIf, simulation});
})();
