// SPDX-License-Identifier: Apache-2.0
// Charts: Chart.js with the page's colours and textures, a text alternative and a table each.
'use strict';

(() => {
  const {element, explain} = report.dom;
  // The roles of run_report.proto's PathKind.
  const kRoles = ['wait', 'transfer', 'computation', 'copy', 'host', 'gap'];
  const kTokens = ['ink', 'soft', 'rule', 'ground', 'panel', 'accent', 'good', 'bad', 'wait-line',
    ...kRoles];
  const kPointStyles = ['circle', 'triangle', 'rect', 'rectRot', 'star', 'cross'];
  const kSeries = ['transfer', 'wait', 'computation', 'copy', 'host'];

  function colours() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(
        kTokens.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // How kinds of these roles look: the role, and how many kinds before have the same.
  function looksOf(roles) {
    const uses = {};
    return roles.map((name) => {
      const role = kRoles.find((known) => known === name.toLowerCase()) ?? 'host';
      uses[role] = (uses[role] ?? -1) + 1;
      return {role, use: uses[role]};
    });
  }

  // An 8 by 8 tile: 'hatch' slants one way, 'cross' both, 'dots' neither.
  function texture(ground, line, shape) {
    const tile = element('canvas', {width: 8, height: 8});
    const context = tile.getContext('2d');
    context.fillStyle = ground;
    context.fillRect(0, 0, 8, 8);
    context.strokeStyle = context.fillStyle = line;
    context.lineWidth = 1.5;
    context.beginPath();
    if (shape === 'dots') context.arc(4, 4, 1.8, 0, 7);
    for (const at of shape === 'dots' ? [] : [-8, 0, 8]) {
      context.moveTo(at - 1, 9);
      context.lineTo(at + 9, -1);
      if (shape === 'cross') {
        context.moveTo(at - 1, -1);
        context.lineTo(at + 9, 9);
      }
    }
    if (shape === 'dots') context.fill(); else context.stroke();
    return context.createPattern(tile, 'repeat');
  }

  // The fill of a role. Its second and third use in one chart get a texture of their own.
  function fillOf(palette, role, use = 0) {
    if (use > 0) return texture(palette[role], palette.ground, use === 1 ? 'cross' : 'dots');
    if (role === 'wait') return texture(palette.wait, palette['wait-line'], 'hatch');
    return role === 'gap' ? palette.panel : palette[role];
  }

  const barStyle = (palette, role, use = 0) => ({backgroundColor: fillOf(palette, role, use),
    borderColor: role === 'gap' ? palette.gap : palette.ground, borderWidth: 1,
    borderSkipped: false, maxBarThickness: 44});

  // Marks of the series at a position, told apart by shape and colour.
  const pointStyle = (palette, at) => ({pointStyle: kPointStyles[at % kPointStyles.length],
    pointRadius: 5, pointHoverRadius: 7, backgroundColor: palette[kSeries[at % kSeries.length]],
    borderColor: palette[kSeries[at % kSeries.length]], borderWidth: 1.5});

  // Whole powers of the base over wide ranges; values between them too over narrow ones.
  function logTicks(low, high, base) {
    const powers = Math.log(high / low) / Math.log(base);
    const stride = Math.max(1, Math.ceil(powers / 8));
    const between = base !== 10 || powers >= 4 ? [1] : powers < 2 ? [1, 2, 5] : [1, 3];
    const ticks = [];
    const first = Math.floor(Math.log(low) / Math.log(base));
    for (let power = first; ticks.length < 40; power += stride) {
      const value = base ** power;
      if (!(value <= high)) break;
      ticks.push(...between.map((part) => part * value));
    }
    return ticks.filter((value) => value >= low && value <= high);
  }

  const withoutZeros = (text) => text.replace(/(\.\d*?)0+(?!\d)/, '$1').replace(/\.(?!\d)/, '');

  // An axis: {title, log: base of its ticks, text(value), labels: it has names, not numbers} and
  // what Chart.js knows.
  function axis(palette, {title, log, text = report.format.plain, labels, ...rest}) {
    const callback = labels ? {} : {callback: (value) => withoutZeros(text(value))};
    const made = {title: {display: true, text: title, color: palette.soft},
      grid: {color: palette.rule, borderColor: palette.soft},
      ticks: {color: palette.ink, maxRotation: 0, includeBounds: false, ...callback}, ...rest};
    if (!log) return made;
    made.type = 'logarithmic';
    made.afterBuildTicks = (scale) => {
      scale.ticks = logTicks(scale.min, scale.max, log).map((value) => ({value}));
    };
    return made;
  }

  // Draws the intervals of datasets that carry them: intervals[i] = [low, high] on the value axis.
  // They lie over bars but under points, whose shape they would hide.
  const kIntervals = {
    id: 'intervals',
    beforeDatasetsDraw(chart) { if (chart.config.type !== 'bar') this.draw(chart); },
    afterDatasetsDraw(chart) { if (chart.config.type === 'bar') this.draw(chart); },
    draw(chart) {
      const {ctx, chartArea, scales: {y}, data} = chart;
      for (const [at, {intervals, intervalColour}] of data.datasets.entries()) {
        if (!intervals || !chart.isDatasetVisible(at)) continue;
        ctx.save();
        ctx.beginPath();
        ctx.rect(chartArea.left, chartArea.top - 1, chartArea.width, chartArea.height + 2);
        ctx.clip();
        ctx.strokeStyle = intervalColour;
        ctx.lineWidth = 2;
        ctx.beginPath();
        chart.getDatasetMeta(at).data.forEach(({x}, index) => {
          const [low, high] = intervals[index] || [];
          if (low === undefined || high === undefined) return;
          const ends = [y.getPixelForValue(low), y.getPixelForValue(high)];
          ctx.moveTo(x, ends[0]);
          ctx.lineTo(x, ends[1]);
          for (const end of ends) {
            ctx.moveTo(x - 9, end);
            ctx.lineTo(x + 9, end);
          }
        });
        ctx.stroke();
        ctx.restore();
      }
    },
  };

  function options(palette, {scales, horizontal, points = false, tooltip}) {
    return {animation: false, responsive: true, maintainAspectRatio: false,
      indexAxis: horizontal ? 'y' : 'x', scales,
      interaction: {mode: horizontal ? 'y' : 'nearest', intersect: !horizontal},
      plugins: {legend: {position: 'top', align: 'start',
        labels: {color: palette.ink, boxWidth: 14, boxHeight: points ? 8 : 12,
          usePointStyle: points}},
      tooltip: {callbacks: tooltip ? {label: tooltip} : {}}}};
  }

  // The value axis holds the intervals of all series, whole.
  function holding(series, given) {
    const ends = series.flatMap(({intervals = []}) => intervals.flat())
        .filter((end) => report.format.isKnown(end) && (!given.log || end > 0));
    if (!ends.length) return given;
    const least = (a, b) => Math.min(a, b);
    const most = (a, b) => Math.max(a, b);
    const [low, high] = [ends.reduce(least), ends.reduce(most)];
    return {...given, suggestedMin: least(low, given.suggestedMin ?? low),
      suggestedMax: most(high, given.suggestedMax ?? high),
      ...(given.min === undefined ? {} : {min: least(low, given.min), max: most(high, given.max)})};
  }

  const short = (label) => label.length > 30 ? `${label.slice(0, 29)}…` : label;

  // Bars in ms. series: {label, role, use, data} and what Chart.js knows of a dataset.
  function bars(palette, {labels, series, stacked = false, horizontal = false, from = 0}) {
    const names = axis(palette, {title: '', stacked, labels: true});
    names.ticks.autoSkip = !horizontal;
    const times = axis(palette, holding(series, {title: 'time (ms)', stacked, min: from || undefined,
      beginAtZero: !from}));
    return {type: 'bar', data: {labels: labels.map(short),
      datasets: series.map(({label, role, use, ...rest}) =>
        ({label: short(label), ...barStyle(palette, role, use), ...rest}))},
    options: options(palette, {horizontal,
      scales: horizontal ? {x: times, y: names} : {x: names, y: times}})};
  }

  // Points on the axes x and y, which are as axis() takes them.
  function scatter(palette, {series, x, y}) {
    return {type: 'scatter', data: {datasets: series.map(({label, ...rest}, at) =>
      ({label: short(label), ...pointStyle(palette, at), ...rest}))},
    options: options(palette, {points: true, scales: {x: axis(palette, x), y: axis(palette, holding(series, y))},
      tooltip: ({dataset, parsed}) =>
        `${dataset.label}: ${x.title} ${x.text(parsed.x)}, ${y.title} ${y.text(parsed.y)}`})};
  }

  const drawn = [];
  let waiting = [];

  // A figure: a heading, a canvas that says in words what it shows, and the same numbers in a
  // table. label(), numbers() and config(palette) are asked again by redraw().
  function figure({title, label, height = () => 280, config, numbers}) {
    const canvas = element('canvas', {class: 'chart', role: 'img'});
    const box = element('div', {class: 'plot'}, canvas);
    const details = element('details', {}, element('summary', {}, 'The numbers of this chart'));
    const made = element('figure', {}, element('h3', {title: explain(title)}, title), box, details);
    let chart;
    const paint = () => {
      if (chart) chart.destroy();
      chart = new Chart(canvas, {...config(colours()), plugins: [kIntervals]});
    };
    const redraw = () => {
      canvas.setAttribute('aria-label', label());
      box.style.height = `${height()}px`;
      details.replaceChildren(details.firstChild, report.table(numbers()));
      paint();
    };
    waiting.push({redraw, paint});
    return {element: made, redraw};
  }

  // Draws the figures that were made since the last call: they are on the page now.
  function drawNew() {
    const made = waiting;
    waiting = [];
    drawn.push(...made);
    made.forEach((one) => one.redraw());
  }

  report.colours = colours;
  report.charts = {figure, bars, scatter, axis, options, fillOf, looksOf,
    drawNew, add: (picture) => waiting.push(picture),
    repaintAll: () => drawn.forEach((one) => one.paint())};
})();
