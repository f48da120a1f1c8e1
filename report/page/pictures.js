// SPDX-License-Identifier: Apache-2.0
// Pictures of all ranks at once, from 2 to thousands: cells on a canvas, which a pointer or the arrow
// keys read and a click or Enter shows in the timeline.
'use strict';

(() => {
  const {element, explain, folded, missing, paragraph, stepName, stepWord} = report.dom;
  const {format, clamp, charts, columns: {number, text, whole}} = report;
  const kLeft = 40;    // Pixels for the names of rows,
  const kBottom = 18;  // and for those of columns.
  const kLeast = 3;    // A cell has at least so many pixels each way.
  const kMostPairs = 3e7;  // So many pairs of ranks in groups are looked at.
  const kMostRanks = 2048;
  const kMostSteps = 4096;

  const partsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  // Cells by rows and columns, values[row * columns + column], of 0 (nothing to see) to 1; NaN is not
  // known. Where cells would be too small to see, one that is not shows the highest of several.
  class Cells {
    constructor({values, rows, columns, width, height}) {
      this.across = Math.min(columns, Math.floor(width / kLeast));
      this.down = Math.min(rows, Math.floor(height / kLeast));
      this.cell = new Int32Array(this.across * this.down).fill(-1);
      for (let at = 0; at < values.length; ++at) {
        const row = Math.floor(at / columns);
        const bin = Math.floor(row * this.down / rows) * this.across +
            Math.floor((at - row * columns) * this.across / columns);
        const best = this.cell[bin];
        if (best < 0 || Number.isNaN(values[best]) || values[at] > values[best]) this.cell[bin] = at;
      }
    }

    // A picture of one pixel for each bin.
    image(values, palette) {
      const canvas = element('canvas', {width: this.across, height: this.down});
      const context = canvas.getContext('2d');
      const image = context.createImageData(this.across, this.down);
      const [low, high, none] = [palette.rule, palette.bad, palette.ground].map(partsOf);
      this.cell.forEach((at, bin) => {
        const value = values[at];
        for (let part = 0; part < 3; ++part) {
          image.data[4 * bin + part] = Number.isNaN(value) ? none[part] :
              low[part] + (high[part] - low[part]) * value;
        }
        image.data[4 * bin + 3] = 255;
      });
      context.putImageData(image, 0, 0);
      return canvas;
    }
  }

  function paintNames(context, palette, {names, count, from, length, isRow, edge}) {
    context.fillStyle = palette.soft;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = isRow ? 'right' : 'center';
    context.textBaseline = isRow ? 'middle' : 'top';
    const stride = 2 ** Math.ceil(Math.log2(Math.max(1, count * (isRow ? 14 : 34) / length)));
    for (let at = 0; at < count; at += stride) {
      const middle = Math.max(6, from + (at + 0.5) * length / count);
      if (middle > from + length - (isRow ? 0 : 8)) break;
      context.fillText(names(at), ...(isRow ? [edge, middle] : [middle, edge]));
    }
  }

  // A figure of cells. given: {title, label, values, rows, columns: as Cells has them, rowName(row),
  // columnName(column), rowOf(rank): -1 for none, height, scale: what its two colours mean, numbers():
  // its table, say(row, column): a sentence about a cell, go(row, column): shows it elsewhere}.
  class CellFigure {
    constructor(given) {
      Object.assign(this, given);
      this.cursor = -1;
      this.canvas = element('canvas', {class: 'cells', role: 'application', tabindex: '0',
        'aria-label': `${this.label} Arrow keys read cells, Enter shows one in the timeline.`});
      this.told = element('output', {class: 'soft told', 'aria-live': 'polite'});
      const box = element('div', {class: 'plot'}, this.canvas);
      box.style.height = `${this.height}px`;
      this.details = folded('The numbers of this picture');
      this.element = element('figure', {},
          element('h3', {title: explain(this.title)}, this.title),
          element('p', {class: 'soft scale'}, this.scale[0], element('span'), this.scale[1]), box,
          this.told, this.details);
      this.follow();
      new ResizeObserver(() => this.paint()).observe(box);
      charts.add(this);
    }

    redraw() {
      this.details.replaceChildren(this.details.firstChild, report.table(this.numbers()));
      this.paint();
    }

    // Anew: the size or the colours are others.
    paint() {
      this.width = this.canvas.clientWidth - kLeft;
      this.tall = this.height - kBottom;
      if (this.width <= 0) return;
      this.palette = report.colours();
      this.cells = new Cells({...this, width: this.width, height: this.tall});
      this.image = this.cells.image(this.values, this.palette);
      this.draw();
    }

    draw() {
      if (!this.image) return;
      const {canvas, palette, width, tall, rows, columns, cursor} = this;
      const ratio = window.devicePixelRatio || 1;
      [canvas.width, canvas.height] = [canvas.clientWidth * ratio, this.height * ratio];
      const context = canvas.getContext('2d');
      context.scale(ratio, ratio);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.image, kLeft, 0, width, tall);
      paintNames(context, palette, {names: this.rowName, count: rows, from: 0, length: tall,
        isRow: true, edge: kLeft - 4});
      paintNames(context, palette, {names: this.columnName, count: columns, from: kLeft,
        length: width, isRow: false, edge: tall + 4});
      const frame = (colour, row, column, across) => {
        context.strokeStyle = colour;
        context.lineWidth = 2;
        context.strokeRect(kLeft + column * width / columns, row * tall / rows,
            Math.max(2, across * width / columns), Math.max(2, tall / rows));
      };
      for (const row of (report.chosenRanks ?? []).map(this.rowOf).filter((at) => at >= 0)) {
        frame(palette.accent, row, 0, columns);
      }
      if (cursor >= 0) frame(palette.ink, Math.floor(cursor / columns), cursor % columns, 1);
    }

    point(at) {
      if (at === this.cursor) return;
      this.cursor = at;
      this.told.textContent = at < 0 ? '' : this.say(...this.placeOf(at));
      this.draw();
    }

    placeOf(at) { return [Math.floor(at / this.columns), at % this.columns]; }

    under({offsetX, offsetY}) {
      const [x, y] = [(offsetX - kLeft) / this.width, offsetY / this.tall];
      if (!this.cells || !(x >= 0 && x < 1 && y >= 0 && y < 1)) return -1;
      const {cell, across, down} = this.cells;
      return cell[Math.floor(y * down) * across + Math.floor(x * across)];
    }

    follow() {
      const {canvas} = this;
      canvas.addEventListener('pointermove', (event) => this.point(this.under(event)));
      canvas.addEventListener('pointerleave', () => this.point(-1));
      canvas.addEventListener('blur', () => this.point(-1));
      canvas.addEventListener('click', (event) => {
        const at = this.under(event);
        if (at >= 0) this.go(...this.placeOf(at));
      });
      const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
      canvas.addEventListener('keydown', (event) => {
        const move = moves[event.key];
        if (!move && event.key !== 'Enter') return;
        event.preventDefault();
        const [row, column] = this.placeOf(Math.max(0, this.cursor));
        if (!move) return this.go(row, column);
        this.point(clamp(row + move[0], 0, this.rows - 1) * this.columns +
            clamp(column + move[1], 0, this.columns - 1));
      });
    }
  }

  const inOrder = (values) => [...new Set(values)].sort((a, b) => a - b);
  const positions = (values) => new Map(values.map((value, at) => [value, at]));
  const heightFor = (rows) => clamp(15 * rows, 80, 220) + kBottom;

  // How much later than the first a rank came, by step: what the rank that waited longest waited
  // more than it.
  function lateness({combine: {step_waits: waits}, steps, evidence}) {
    const ranks = inOrder(waits.map(({rank}) => rank)).slice(0, kMostRanks);
    const numbers = inOrder(waits.map(({step}) => step ?? -1)).slice(0, kMostSteps);
    const [rowOf, columnOf] = [positions(ranks), positions(numbers)];
    const longest = new Map();
    for (const {step = -1, waited_ms: ms} of waits) longest.set(step, Math.max(ms ?? 0, longest.get(step) ?? 0));
    const late = waits.map((row) => ({...row, late_ms: longest.get(row.step ?? -1) - (row.waited_ms ?? 0)}));
    const most = late.reduce((a, {late_ms: ms}) => Math.max(a, ms), 0);
    const values = new Float32Array(ranks.length * numbers.length).fill(NaN);
    const cellOf = new Map();
    for (const row of late) {
      const at = rowOf.get(row.rank) * numbers.length + columnOf.get(row.step ?? -1);
      if (Number.isNaN(at)) continue;  // More than are drawn.
      values[at] = most > 0 ? row.late_ms / most : 0;
      cellOf.set(at, row);
    }
    const nameOf = (step) => step < 0 ? 'the run' : stepName(step);
    const doubt = evidence.clock_uncertainty_ms;
    const made = new CellFigure({title: `Lateness of ranks by ${stepWord()}`, values, rows: ranks.length,
      columns: numbers.length, height: heightFor(ranks.length), scale: ['0', format.milliseconds(most)],
      rowName: (row) => ranks[row], rowOf: (rank) => rowOf.get(rank) ?? -1,
      columnName: (column) => numbers[column] < 0 ? 'run' : numbers[column],
      label: `Cells of ${format.count(ranks.length, 'rank')} and ${format.count(numbers.length, stepWord())}: ` +
          `the latest is ${format.milliseconds(most)} later than the first.`,
      say: (row, column) => {
        const cell = cellOf.get(row * numbers.length + column);
        return `rank ${ranks[row]}, ${nameOf(numbers[column])}: ${!cell ? format.kUnknown :
          `${format.milliseconds(cell.late_ms)} late; it waited ${format.milliseconds(cell.waited_ms)}`}`;
      },
      go: (row, column) => {
        const step = steps.find((one) => one.step === numbers[column]);
        report.showInTimeline?.({ranks: [ranks[row]], step: step?.step, startMs: step?.start_ms,
          endMs: step?.end_ms});
      },
      numbers: () => ({caption: 'Lateness by rank and step', name: 'lateness', rows: late, columns: [
        whole('step', '', 'step'), whole('rank', '', 'rank'), number('lateness', 'ms', 'late_ms'),
        number('waiting', 'ms', 'waited_ms')]})}).element;
    if (doubt > most / 20) {
      made.append(paragraph(`The clocks are known within ${format.milliseconds(doubt)}: less than ` +
          'that cannot be told.', 'soft'));
    }
    return made;
  }

  // The best ratio of each pair of ranks: {values: 1 - ratio, group: of which group it is}.
  function pairsOf(groups, rowOf) {
    const count = rowOf.size;
    const values = new Float32Array(count * count).fill(NaN);
    const group = new Int32Array(count * count).fill(-1);
    let left = kMostPairs;
    groups.forEach(({ranks, ratio}, index) => {
      left -= ranks.length ** 2;
      if (left < 0) return;
      for (const a of ranks) {
        for (const b of ranks) {
          const at = rowOf.get(a) * count + rowOf.get(b);
          if (a === b || values[at] <= 1 - ratio) continue;
          values[at] = 1 - ratio;
          group[at] = index;
        }
      }
    });
    return {values, group, isCut: left < 0};
  }

  function speeds({combine: {groups: all}}) {
    const groups = all.map((group) => ({...group, ratio: group.relative_speed}));
    const ranks = inOrder(groups.flatMap((group) => group.ranks)).slice(0, kMostRanks);
    const rowOf = positions(ranks);
    const held = groups.map((group) => ({...group, ranks: group.ranks.filter((rank) => rowOf.has(rank))}));
    const {values, group, isCut} = pairsOf(held, rowOf);
    const worst = groups.reduce((a, b) => b.ratio < a.ratio ? b : a);
    const made = new CellFigure({title: 'Relative speed between ranks', values, rows: ranks.length,
      columns: ranks.length, height: clamp(15 * ranks.length, 100, 260) + kBottom,
      scale: ['as fast as the fastest', 'slower'],
      rowName: (row) => ranks[row], columnName: (column) => ranks[column],
      rowOf: (rank) => rowOf.get(rank) ?? -1,
      label: `Cells of ${format.count(ranks.length, 'rank')} by as many: the slowest group, of ranks ${
        format.ranges(worst.ranks.slice(0, 64))}, reaches ${format.percent(worst.ratio)} of the fastest like it.`,
      say: (row, column) => {
        const found = groups[group[row * ranks.length + column]];
        const pair = `ranks ${ranks[row]} and ${ranks[column]}: `;
        return !found ? `${pair}nothing to compare` : `${pair}${format.percent(found.ratio)} of the fastest (${
          found.kind} of ${format.bytes(found.bytes)}, ${format.rate(found.bus_gb_per_s)})`;
      },
      go: (row, column) => report.showInTimeline?.({ranks: [ranks[row], ranks[column]]}),
      numbers: () => ({caption: 'Groups of ranks that transfer alike', name: 'groups',
        rows: [...groups].sort((a, b) => a.ratio - b.ratio), columns: [
          text('ranks', ({ranks: own}) => format.ranges(own), {wrap: true}), text('kind', 'kind'),
          whole('size', 'bytes', 'bytes'), whole('count', '', 'count'),
          number('transfer', 'ms', 'transfer_ms'), number('bus bandwidth', 'GB/s', 'bus_gb_per_s'),
          number('relative speed', '%', (row) => 100 * row.ratio, {digits: 0, bar: true})]})}).element;
    if (isCut) made.append(paragraph('There are more groups than are drawn here.', 'soft'));
    return made;
  }

  function pictures(data, section) {
    const {combine} = data;
    const grid = element('div', {class: 'pair'});
    const empty = (title, why) => element('figure', {}, element('h3', {title: explain(title)}, title), missing(why));
    grid.append(combine.step_waits.length ? lateness(data) : empty(`Lateness of ranks by ${stepWord()}`,
        'Not known: no collective is there with all its ranks. Give the profiles of all ranks in one folder.'));
    const alone = 'no two groups of ranks transfer the same bytes in the same way, as far as bytes are known';
    grid.append(combine.groups.length ? speeds(data) : empty('Relative speed between ranks',
        `Not known: ${alone}, so there is nothing to compare a link with. Record transfers of the same bytes ` +
        'between pairs of ranks.'));
    grid.append(...report.timePictures(data, empty));
    section.append(grid);
  }

  report.sections.pictures = pictures;
})();
