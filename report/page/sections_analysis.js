// SPDX-License-Identifier: Apache-2.0
// The sections about where the time goes: each function fills its element, or returns what is
// missing.
'use strict';

(() => {
  const {element, folded, paragraph, missing, stepChooser, stepName, stepWord} = report.dom;
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

  const kMostBars = 128;

  // Ranks by how long they wait; of very many, neighbours in that order as one, in the mean.
  function sortedByWait(rows) {
    const sorted = [...rows].sort((a, b) => b.wait - a.wait);
    const each = Math.ceil(sorted.length / kMostBars);
    if (each <= 1) return sorted.map((row) => ({...row, name: `rank ${row.rank}`}));
    return [...Array(Math.ceil(sorted.length / each)).keys()].map((at) => {
      const some = sorted.slice(at * each, (at + 1) * each);
      const mean = (name) => total(some, name) / some.length;
      return {name: `${some.length} ranks, e.g. ${some[0].rank}`, wait: mean('wait'),
        transfer: mean('transfer'), other: mean('other')};
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
    const isFew = () => shown.length <= 12;
    const chart = charts.figure({title: 'Wall time of each rank, by waiting',
      height: () => isFew() ? Math.max(140, 76 + 16 * shown.length) : 204, label: () => waitingLabel(shown, where),
      numbers: () => ({caption: `Wall time of each rank in ${where}`, name: 'wall_by_rank',
        rows: shown, columns: [whole('rank', '', 'rank'), number('waiting', 'ms', 'wait'),
          number('transfer', 'ms', 'transfer'), number('rest of wall time', 'ms', 'other'),
          number('wall time', 'ms', 'wall')]}),
      config: (palette) => {
        const bars = sortedByWait(shown);
        const look = isFew() ? {} : {categoryPercentage: 1, barPercentage: 1, borderWidth: 0};
        return charts.bars(palette, {horizontal: isFew(), stacked: true,
          labels: bars.map((row) => row.name), series: [['waiting', 'wait', 'wait'],
            ['transfer', 'transfer', 'transfer'], ['rest', 'gap', 'other']].map(([label, role, name]) =>
            ({label, role, data: bars.map((row) => row[name]), ...look,
              ...(role === 'gap' ? {borderWidth: 1} : {})}))});
      }});
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

  // The bus bandwidth of the calibrated network, where a cell has the kind, bytes and ranks of
  // transfers: these tell what bus bandwidth a time stands for. {label: points}, by kind and ranks.
  function networkLines(transfers, cells) {
    const rows = cells.filter(hasTimes).flatMap((cell) => {
      const size = /^\{([^}]*)\}/.exec(cell.group)?.[1].split(',').length;
      const like = transfers.find((row) => hasBandwidth(row) && row.kind === cell.kind &&
          row.bytes === cell.bytes && row.ranks === size);
      return like ? [{label: `network: ${cell.kind}, ${like.ranks} ranks`, x: cell.bytes,
        y: like.bus_gb_per_s * like.transfer_ms * 1e6 / cell.simulated_ns}] : [];
    });
    return [...grouped(rows, 'label')].map(([label, own]) => ({label,
      data: [...grouped(own, 'x')].map(([x, same]) => ({x, y: total(same, 'y') / same.length}))}));
  }

  function bandwidthChart(transfers, cells) {
    const lines = networkLines(transfers, cells);
    const drawable = transfers.filter(hasBandwidth);
    const best = drawable.reduce((most, row) => Math.max(most, row.bus_gb_per_s), 0);
    return charts.figure({title: 'Size against bus bandwidth', height: () => 214,
      label: () => `Scatter of ${format.count(drawable.length, 'size')} of collectives; the ` +
          `highest bus bandwidth is ${format.rate(best)}.`,
      numbers: () => ({caption: 'Transfers by kind and size', name: 'transfers', rows: transfers,
        columns: [text('kind', 'kind'), whole('size', 'bytes', 'bytes'), whole('ranks', '', 'ranks'),
          whole('count', '', 'count'), number('median transfer', 'ms', 'transfer_ms'),
          number('waiting', 'ms', 'wait_ms'), number('bus bandwidth', 'GB/s', 'bus_gb_per_s')]}),
      config: (palette) => charts.scatter(palette, {
        x: {title: 'size', log: 4, text: format.bytes},
        y: {title: 'bus bandwidth', log: 10, text: format.rate},
        series: [...[...grouped(drawable, 'kind')].map(([kind, rows]) => ({label: kind,
          data: rows.map((row) => ({x: row.bytes, y: row.bus_gb_per_s}))})),
        ...lines.map((line) => ({...line, showLine: true, pointRadius: 0, pointStyle: 'line',
          borderColor: palette.soft, borderDash: [6, 4]}))]})}).element;
  }

  const kRankColumns = [whole('rank', '', 'rank'), text('host', ({rank}) => report.hosts.get(rank)),
    whole('collectives where last', '', 'last'), whole('collectives', '', 'collectives'),
    number('waiting caused', 'ms', 'caused_wait_ms', {bar: true}),
    number('waiting', 'ms', 'waited_ms'), number('transfer', 'ms', 'transfer_ms')];
  const kWaitingColumns = [whole('step', '', 'step'), whole('rank', '', 'rank'),
    number('wall time', 'ms', 'wall_ms'), number('waiting', 'ms', 'waited_ms'),
    number('transfer', 'ms', 'transfer_ms'), text('longest waiting in', 'worst_op', {absent: 'none', shorten: true}),
    number('longest waiting', 'ms', 'worst_ms')];
  const kLinkColumns = [whole('rank', '', 'rank'), text('or ranks', ({or_ranks: others}) => format.ranges(others), {absent: 'none'}),
    number('times slower', '', 'times_slower', {about: 'link of a rank'}),
    number('cost in a step', 'ms', 'cost_ms'), whole('transfers', '', 'transfers'),
    whole('transfers compared with', '', 'compared_with')];
  const withWall = (waits) => waits.map((row) => ({...row, wall_ms: row.end_ms - row.start_ms}));

  // Where each rank's time goes, and what the network gives.
  report.timePictures = ({combine: {step_waits: waits, transfers}, simulation: sim}, empty) => [
    waits.length ? waitingChart(withWall(waits)) : empty('Wall time of each rank, by waiting',
        'Not known: no collective is there with all its ranks.'),
    transfers.some(hasBandwidth) ? bandwidthChart(transfers, sim?.cells ?? []) : empty('Size against bus bandwidth',
        'Not known: no profile says how many bytes its collectives move.')];

  function waiting({combine: {step_waits: waits, kinds, ranks}, slow_links: links}, section) {
    const rows = withWall(waits);
    if (links.length) {
      section.append(table({caption: 'Links that are slower than others', name: 'slow_links', rows: links,
        columns: kLinkColumns}));
    }
    if (ranks.length) {
      section.append(table({caption: 'Who is last in collectives, and who waits', name: 'ranks',
        rows: ranks, columns: kRankColumns}));
    }
    section.append(kinds.length ? kindsChart(kinds) :
      missing('The profiles hold no collectives, so nothing waits for another rank.'));
    if (!rows.length) return;
    section.append(folded('Waiting of each rank and step', table({caption: 'Waiting by step and rank', name: 'waiting', rows,
          columns: kWaitingColumns})));
  }

  // What collectives do and move stands by their names.
  const operationName = ({name, kind, bytes}) => kind && !name.includes(kind) ?
      `${name} (${kind}${bytes === undefined ? '' : ` of ${format.bytes(bytes)}`})` : name;

  const withoutFolders = (place) => place.replace(/^.*\/(?=[^/]*:\d+$)/, '');

  function operations(data, section) {
    const {operations: rows, path} = data;
    if (!rows.length) return report.lacks(data, 'path', 'What ranks spend their time on');
    const all = total(path, 'ms');
    section.append(table({caption: 'What ranks spend their time on, the longest first', name: 'operations',
      rows: rows.map((row) => ({...row, rank: row.most_rank})), first: 6, columns: [
        text('operation', operationName, {wrap: true, shorten: true}),
        text('role', ({role}) => role.toLowerCase().replace('transfer', 'communication')),
        whole('count', '', 'count'), number('total', 'ms', 'total_ms'),
        number('mean', 'ms', ({total_ms: ms, count}) => count > 0 ? ms / count : undefined),
        number('per step', 'ms', 'step_ms'), number('spread', '± ms', 'step_spread_ms'),
        number('on path', '%', ({path_ms: ms}) => all > 0 ? 100 * ms / all : undefined, {about: 'critical path'}),
        number('imbalance', '%', ({most_ms: most, mean_of_ranks_ms: mean}) =>
          mean > 0 ? 100 * (most / mean - 1) : undefined, {digits: 0}),
        whole('on rank', '', 'most_rank'),
        text('source', (row) => row.source || row.framework_op, {wrap: true, absent: '', brief: withoutFolders})]}));
  }

  function pathKinds(kinds) {
    const looks = charts.looksOf(kinds.map(({role}) => role));
    return kinds.map(({kind, label}, at) => ({kind, label: label.slice(0, 40), ...looks[at]}));
  }

  // The time of the path by the values of a field: {value, all, of: time by kind}.
  function pathBy(path, name) {
    return [...grouped(path, name)].map(([value, rows]) => ({value, [name]: value, all: total(rows, 'ms'),
      of: new Map([...grouped(rows, 'kind')].map(([kind, own]) => [kind, total(own, 'ms')]))}));
  }

  function path(data, section) {
    if (!data.path.length) return report.lacks(data, 'path', 'The critical path');
    const kinds = pathKinds(data.path_kinds);
    const all = total(data.path, 'ms');
    const share = (ms) => all > 0 ? ms / all : undefined;
    const steps = pathBy(data.path.filter(({step}) => step !== undefined), 'step');
    const kindColumns = kinds.map(
        ({kind, label}) => number(label, 'ms', (row) => row.of.get(kind) ?? 0, {about: 'critical path'}));
    const shares = pathBy(data.path, 'kind').map(({value, all: ms}) =>
      `${kinds.find(({kind}) => kind === value)?.label ?? value} ${format.percent(share(ms))}`);
    section.append(
        paragraph('The chain of events that sets how long a step takes: where its time goes, and ' +
            'on which rank it lies.'),
        charts.figure({title: 'Critical path of each step, by kind',
          label: () => `Stacked bars of the critical path of ${format.count(steps.length, 'step')}: ${
            shares.join(', ')}.`,
          numbers: () => ({caption: 'Critical path by step', name: 'path_by_step', rows: steps,
            columns: [whole('step', '', 'value'), number('critical path', 'ms', 'all'), ...kindColumns]}),
          config: (palette) => charts.bars(palette, {stacked: true,
            labels: steps.map(({value}) => stepName(value)), series: kinds.map(({kind, ...look}) =>
              ({...look, data: steps.map((step) => step.of.get(kind) ?? 0)}))})}).element,
        table({caption: 'Critical path by rank, over all steps', name: 'path_by_rank',
          rows: pathBy(data.path, 'rank'), columns: [whole('rank', '', 'value'),
            number('critical path', 'ms', 'all'),
            number('share of the critical path', '%', (row) => share(100 * row.all), {digits: 0, bar: true}),
            ...kindColumns]}));
  }

  const kLeastShare = 0.001;  // Delays that are a smaller share of their step are not listed.

  function blame({blame: rows}, section) {
    if (!rows.length) return 'No rank makes the others wait by its own doing, as far as is known.';
    const shown = rows.filter(({share}) => share >= kLeastShare);
    if (shown.length < rows.length) {
      section.append(paragraph(`${format.count(rows.length - shown.length, 'delay')} of less than ${
        format.percent(kLeastShare)} of a ${stepWord()} ${rows.length - shown.length === 1 ? 'is' : 'are'} left out.`, 'soft'));
    }
    if (!shown.length) return;
    section.append(table({caption: 'Delay that a rank causes, by step', name: 'blame',
      rows: shown, columns: [whole('step', '', 'step'), whole('rank', '', 'rank'), text('host', 'hostname'),
        number('delay caused', 'ms', 'caused_ms', {bar: true, about: 'blame'}),
        number('share of the step', '%', times('share', 100), {digits: 1}),
        text('operation', 'op', {wrap: true, shorten: true}),
        text('reason', 'reason', {wrap: true, about: 'blame'})]}));
  }

  // What a forecast was asked, by the names of kAsked: {bandwidth: 2, rank: 5}; undefined where it was
  // asked something else.
  const askedOf = ({bandwidth, compute, latency, ranks, fix_rank: rank}) => bandwidth === undefined ?
    undefined : {bandwidth, compute, latency, ranks, rank};

  // What can be changed: name, label, and what it is when nothing is changed.
  const kAsked = [['bandwidth', 'Bandwidth of the links', 1], ['latency', 'Latency of the links', 1],
    ['compute', 'Time of computation', 1], ['ranks', 'Ranks', undefined], ['rank', 'Repaired rank', -1]];

  // A slider over some values, in ascending order, that begins at one of them.
  function slider(label, values, first, say, onChange) {
    const shown = element('output', {}, say(first));
    const input = element('input', {type: 'range', min: 0, max: values.length - 1, step: 1,
      'aria-label': label, value: values.indexOf(first)});
    input.addEventListener('input', () => {
      shown.textContent = say(values[input.value]);
      onChange(values[input.value]);
    });
    return element('label', {class: 'slider'}, element('span', {}, label), input, shown);
  }

  // The answer to what is chosen: a forecast, or the measured schedule run again with a rank repaired.
  function answerOf(grid, whatIfs, chosen, usual) {
    const isLike = (asked) => kAsked.every(([name]) => (asked[name] ?? usual[name]) === chosen[name]);
    const row = grid.find(({asked}) => isLike(asked));
    const ms = (ns) => format.milliseconds(ns * 1e-6);
    const now = grid[0].measured_step_ns;
    if (row) {
      return `A ${stepWord()} would take ${ms(row.step_ns)} (90 % interval ${ms(row.low_ns)} to ${
        ms(row.high_ns)}) in place of ${ms(row.measured_step_ns)}, the median.`;
    }
    if (isLike({})) return `A ${stepWord()} takes ${ms(now)}, the median, as it was recorded.`;
    const repaired = isLike({rank: chosen.rank}) && whatIfs.find(({change, rank}) => rank === chosen.rank &&
        (change === 'RANK_AS_FAST_AS_OTHERS' || change === 'LINK_AS_FAST_AS_OTHERS'));
    return repaired ? `A ${stepWord()} would take ${format.milliseconds(repaired.step_ms)} in the mean if ${
      repaired.what}: the measured schedule, run again, without an interval.` :
      'Not known: not asked. The program "forecast" answers other questions about the run.';
  }

  // What a step takes with other links, compute or ranks, of what was asked in advance.
  function forecastSliders(forecasts, whatIfs, run) {
    const grid = forecasts.map((row) => ({...row, asked: askedOf(row)})).filter(({asked}) => asked);
    if (!grid.length) return missing('No forecast is of one of these changes alone.');
    const usual = Object.fromEntries(kAsked.map(([name, , value]) => [name, value ?? run.ranks]));
    const chosen = {...usual};
    const status = element('p', {role: 'status'}, answerOf(grid, whatIfs, chosen, usual));
    const repairs = whatIfs.filter(({rank}) => rank !== undefined).map(({rank}) => ({rank}));
    const sayOf = {ranks: (value) => format.plain(value), rank: (value) => value < 0 ? 'none' : `rank ${value}`};
    const sliders = kAsked.map(([name, label]) => {
      const values = [...new Set([usual[name], ...[...grid.map(({asked}) => asked), ...repairs]
          .map((asked) => asked[name]).filter((value) => value !== undefined)])].sort((a, b) => a - b);
      return values.length < 2 ? missing(`${label}: not asked.`) : slider(label, values, usual[name],
          sayOf[name] ?? ((value) => `${value}x`), (value) => {
            chosen[name] = value;
            status.textContent = answerOf(grid, whatIfs, chosen, usual);
          });
    });
    return element('div', {class: 'sliders'}, ...sliders, status);
  }

  const forecastTime = (title, name) => number(title, 'ms', times(name, 1e-6));
  const forecastColumns = [text('question', 'question', {about: 'what-if'}), whole('ranks', '', 'ranks'),
    forecastTime('step then', 'step_ns'), forecastTime('90 % interval from', 'low_ns'),
    forecastTime('90 % interval to', 'high_ns')];

  // What a step takes against the bandwidth of the links, a line for what else is changed.
  function forecastCurve(forecasts) {
    const grid = forecasts.filter((row) => row.bandwidth !== undefined).map((row) =>
      ({...row, other: row.question.replace(/^bandwidth [\d.]+x(, )?/, '') || 'nothing else'}));
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
        series: [...grouped(grid, 'other')].map(([label, rows]) => ({label,
          showLine: true, intervalColour: palette.soft,
          data: rows.map((row) => ({x: row.bandwidth, y: ms(row.step_ns)})),
          intervals: rows.map((row) => [ms(row.low_ns), ms(row.high_ns)])}))})}).element;
  }

  function whatIf(data, section) {
    const {what_if: rows, forecasts, run} = data;
    if (!rows.length && !forecasts.length) {
      return report.lacks(data, 'path', 'What a change would save');
    }
    if (forecasts.length) {
      section.append(forecastSliders(forecasts, rows, run));
      if (forecasts.some(({bandwidth}) => bandwidth !== undefined)) section.append(forecastCurve(forecasts));
      section.append(
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
      text('change', 'what', {wrap: true, about: 'what-if'}), number('step', 'ms', 'step_ms', {bar: true}),
      number('saved', 'ms', 'saved_ms', {about: 'what-if'})]}));
  }

  const microseconds = (title, name) => number(title, 'µs', times(name, 1e-3));
  const milliseconds = (title, name) => number(title, 'ms', times(name, 1e-6));
  const error = number('error', '%', times('signed_error', 100), {digits: 1});
  const kCellColumns = [text('kind', 'kind'), whole('size', 'bytes', 'bytes'),
    text('group', 'group', {absent: 'all', about: 'collective'}), microseconds('measured', 'measured_ns'),
    microseconds('simulated', 'simulated_ns'), microseconds('90 % interval from', 'simulated_low_ns'),
    microseconds('90 % interval to', 'simulated_high_ns'), error, whole('count', '', 'repeats')];

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
          milliseconds('simulated', 'simulated_ns'), milliseconds('90 % interval from', 'simulated_low_ns'),
          milliseconds('90 % interval to', 'simulated_high_ns')]}),
      config: (palette) => charts.bars(palette, {labels: steps.map((row) => stepName(row.step)),
        series: [{label: 'measured', role: 'transfer', data: steps.map(times('measured_ns', 1e-6))},
          {label: 'simulated', role: 'host', use: 1, data: steps.map(times('simulated_ns', 1e-6)),
            intervals: steps.map((row) => [times('simulated_low_ns', 1e-6)(row),
              times('simulated_high_ns', 1e-6)(row)]), intervalColour: palette.ink}]})}).element;
  }

  function simulation(all, section) {
    const {simulation: data} = all;
    if (!data) return report.lacks(all, 'simulate', 'How well a simulated network gives this run');
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
        rows: data.parameters, columns: [text('parameter', 'name'),
          number('value', '', 'value', {about: 'parameter'}), number('95 % interval from', '', 'low'),
          number('95 % interval to', '', 'high'), text('parameter is identified', ({kept, identifiable}) => identifiable ? 'yes' : kept ?
            'no: kept as given, the transfers do not tell it' :
            'no: the transfers do not vouch for it', {wrap: true})]}));
    }
    section.append(report.dom.list(data.notes));
  }

  Object.assign(report.sections, {operations, waiting, path, blame, what_if: whatIf, simulation});
})();
