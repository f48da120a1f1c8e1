// SPDX-License-Identifier: Apache-2.0
// What the timeline shows and where: the time range, the rows in sight, what is selected, measured
// and searched for. timeline_paint.js and timeline_marks.js draw it.
'use strict';

(() => {
  const {clamp} = report;
  const kShortestRange_us = 0.05;
  const kSlack = 3;  // How many pixels beside an event still point at it.
  const kAxis = 40;

  function luminance(colour) {
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  }

  class View {
    constructor(model, steps, canvas, frame) {
      Object.assign(this, {model, steps, canvas, frame, first: model.first, last: model.last,
        rows: new report.TimelineRows(model)});
      this.context = canvas.getContext('2d', {alpha: false});
      this.axis = kAxis;
      this.labels = [];  // Of wide spans: event, x, y, width, height.
      this.matches = [];
      this.isMatch = undefined;
      this.current = -1;
      this.hovered = -1;
      this.selected = -1;
      this.measured = undefined;  // The time range that is measured, [from, to] in µs.
      this.cursor = 0;  // The row that keys act on.
      this.step = undefined;
      this.drawTimes = [];  // Of the last 600 frames, in ms; the browser test reads them.
      this.buckets = model.kinds.map(() => []);
      this.share = new Float64Array(model.kinds.length);
      this.onChange = () => {};  // Called when what is shown, selected or measured has changed.
      this.recolour();
    }

    recolour() {
      const palette = report.colours();
      this.palette = palette;
      this.fills = this.model.looks.map(({role, use}) => report.charts.fillOf(palette, role, use));
      this.inks = this.model.looks.map(({role}) =>
          luminance(role === 'gap' ? palette.panel : palette[role]) > 0.18 ? '#101418' : '#ffffff');
      this.request();
    }

    // Follows the size of the frame, which is as tall as its rows and no taller than the window lets.
    resize() {
      const range = this.scale ? this.range() : undefined;
      const all = this.rows.tall + this.axis + 4;
      this.height = Math.min(all, clamp(Math.round(window.innerHeight * 0.55), 260, 720));
      this.frame.style.height = `${this.height + 2}px`;
      this.frame.firstChild.style.height = `${all}px`;
      this.width = Math.max(200, this.frame.clientWidth);
      this.gutter = this.width < 600 ? 96 : 176;
      const ratio = window.devicePixelRatio || 1;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
      if (range) this.show(...range); else this.show(this.first, this.last);
      this.draw();
    }

    // After the rows have changed.
    relayout() {
      this.hovered = -1;
      this.cursor = clamp(this.cursor, 0, this.rows.list.length - 1);
      this.resize();
      this.onChange();
    }

    changed() {
      this.request();
      this.onChange();
    }

    plotWidth() { return this.width - this.gutter; }
    range() { return [this.from, this.from + this.plotWidth() / this.scale]; }
    timeAt(x) { return this.from + (x - this.gutter) / this.scale; }
    xOf(time) { return Math.round(time * this.scale) - this.shift + this.gutter; }
    yOf(top) { return top - this.scrolled + this.axis; }

    // Shows a time range in µs, kept inside the run and a margin of 2 %.
    show(from, to) {
      const whole = (this.last - this.first) * 1.04;
      const span = clamp(to - from, Math.min(kShortestRange_us, whole), whole);
      this.scale = this.plotWidth() / span;
      this.moveTo((from + to) / 2 - span / 2);
    }

    moveTo(from) {
      const margin = (this.last - this.first) * 0.02;
      const span = this.plotWidth() / this.scale;
      this.from = clamp(from, this.first - margin, this.last + margin - span);
      this.changed();
    }

    showWithMargin(from, to, margin = 0.02) {
      this.show(from - (to - from) * margin, to + (to - from) * margin);
    }

    showStep(step) {
      this.step = step;
      if (step) this.showWithMargin(step.start_ms * 1e3, step.end_ms * 1e3);
      else this.showWithMargin(this.first, this.last);
    }

    // The event that is selected, else what is measured, else the step.
    fit() {
      const {model, selected} = this;
      if (selected >= 0) this.showWithMargin(model.start[selected], model.end(selected), 0.5);
      else if (this.measured) this.showWithMargin(...this.measured, 0.1);
      else this.showStep(this.step);
    }

    panBy(pixels) { this.moveTo(this.from + pixels / this.scale); }

    zoomAt(x, factor) {
      const time = this.timeAt(clamp(x, this.gutter, this.width));
      const [from, to] = this.range();
      this.show(time - (time - from) / factor, time + (to - time) / factor);
    }

    zoomMiddle(factor) { this.zoomAt(this.gutter + this.plotWidth() / 2, factor); }

    stepAt(time) {
      return this.steps.find((one) => time >= one.start_ms * 1e3 && time < one.end_ms * 1e3);
    }

    // Brings an event into sight, at least a few pixels wide, in a row that draws it.
    reveal(position) {
      const {start, duration, inFront} = this.model;
      const [from, to] = this.range();
      const end = this.model.end(position);
      if (start[position] < from || end > to || duration[position] * this.scale < 4) {
        const half = Math.min(to - from, Math.max(duration[position] * 40, 1)) / 2;
        const middle = (start[position] + end) / 2;
        this.show(middle - half, middle + half);
      }
      const {rank} = this.model.laneOf(position) ?? {};
      const row = this.rows.list[this.rows.ofLane[this.model.lane[position]]];
      if (row?.type === 'block' || (row?.type === 'rank' && !inFront[position])) {
        this.rows.open([rank], !inFront[position]);
        this.relayout();
      }
      this.scrollTo(this.rows.placeOf(position));
    }

    scrollTo({top, high}) {
      this.frame.scrollTop = clamp(
          this.frame.scrollTop, top + high - (this.height - this.axis - 4), top - 4);
      this.request();
    }

    select(position) {
      this.selected = position;
      if (position >= 0) this.cursor = this.rows.ofLane[this.model.lane[position]];
      this.changed();
    }

    measure(range) {
      this.measured = range && [...range].sort((a, b) => a - b);
      this.changed();
    }

    clear() {
      this.select(-1);
      this.measure(undefined);
    }

    toggle(row) {
      this.rows.toggle(row);
      this.relayout();
    }

    moveCursor(by) {
      this.cursor = clamp(this.cursor + by, 0, this.rows.list.length - 1);
      this.scrollTo(this.rows.list[this.cursor]);
    }

    // The row that keys act on, for those who do not see it.
    cursorText() {
      const row = this.rows.list[this.cursor];
      return `${this.rows.nameOf(row)}${row.type === 'lane' ? '' : row.isOpen ? ', open' : ', closed'}`;
    }

    // Selects the next event (by = 1) of the row that keys act on, or the one before; at first the
    // first in sight.
    selectNext(by) {
      const [{spans} = {}] = this.rows.spansOf(this.rows.list[this.cursor]);
      if (!spans?.event.length) return;
      const at = spans.event.indexOf(this.selected);
      const next = at < 0 ? this.model.firstReaching(spans, this.from) : at + by;
      const event = spans.event[clamp(next, 0, spans.event.length - 1)];
      const cursor = this.cursor;
      this.reveal(event);
      this.select(event);
      this.cursor = cursor;
    }

    request() {
      if (this.pending) return;
      this.pending = true;
      requestAnimationFrame(() => {
        this.pending = false;
        const begin = performance.now();
        this.draw();
        this.drawTimes.push(performance.now() - begin);
        if (this.drawTimes.length > 600) this.drawTimes.shift();
      });
    }

    rowAt(y) {
      const inside = y - this.axis + this.scrolled;
      return y < this.axis ? undefined :
          this.rows.list.find(({top, high}) => inside >= top && inside < top + high);
    }

    // The event under a point: of those that hold it the one that starts last, else the nearest
    // within a few pixels; -1 if there is none.
    eventAt(x, y) {
      const row = this.rowAt(y);
      if (!row || x < this.gutter) return -1;
      const inside = y - this.yOf(row.top);
      const {spans} = this.rows.spansOf(row).find(
          ({top, high}) => inside >= top && inside < top + high) ?? {};
      const time = this.timeAt(x);
      const slack = kSlack / this.scale;
      let found = -1;
      let nearest = slack;
      if (!spans) return found;
      for (let k = this.model.firstReaching(spans, time - slack); k < spans.event.length; ++k) {
        if (spans.start[k] > time + slack) break;
        const away = Math.max(0, spans.start[k] - time, time - spans.end[k]);
        if (away <= nearest) { nearest = away; found = spans.event[k]; }
      }
      return found;
    }

    hover(position) {
      if (position === this.hovered) return;
      this.hovered = position;
      this.request();
    }

    // Finds the events whose names hold the text; the first to show is the first in sight.
    search(text) {
      const wanted = text.trim().toLowerCase();
      const {model} = this;
      this.current = -1;
      this.matches = [];
      this.isMatch = undefined;
      if (wanted) {
        this.isMatch = model.names.map((name) => name.toLowerCase().includes(wanted));
        for (let event = 0; event < model.count; ++event) {
          if (this.isMatch[model.name[event]] && model.laneOf(event)) this.matches.push(event);
        }
        this.matches.sort((a, b) => model.start[a] - model.start[b] || a - b);
      }
      this.request();
    }

    // Goes to the next match (by = 1) or the one before (-1), and around at the ends.
    nextMatch(by) {
      const {matches, model} = this;
      if (!matches.length) return;
      if (this.current < 0) {
        const seen = matches.findIndex((position) => model.start[position] >= this.from);
        this.current = Math.max(0, seen);
      } else {
        this.current = (this.current + by + matches.length) % matches.length;
      }
      this.reveal(matches[this.current]);
    }
  }

  Object.assign(View.prototype, report.timelinePaint, report.timelineMarks);
  report.TimelineView = View;
})();
