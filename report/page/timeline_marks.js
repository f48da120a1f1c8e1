// SPDX-License-Identifier: Apache-2.0
// What the timeline draws around its events: the part of TimelineView that has the critical path,
// matches, a collective's members, what is selected and measured, the names of rows and the axis.
'use strict';

(() => {
  const {format, clamp} = report;
  const kShown = 4;  // Parts of the path narrower than this many pixels are left out.
  const kUnits = [[1e6, 's'], [1e3, 'ms'], [1, 'µs']];

  report.timelineMarks = {
    // Lanes of open ranks stand on a ground of their own.
    drawBands() {
      const {context, palette, width} = this;
      context.fillStyle = palette.panel;
      for (const {type, top, high} of this.visible) {
        if (type === 'lane') context.fillRect(0, this.yOf(top), width, high);
      }
    },

    // The critical path: a line under its events that steps from row to row.
    drawPath() {
      const {context, model: {path, firstReaching, lanes}, palette} = this;
      const [from, to] = this.range();
      const xOf = (time) => clamp(this.xOf(time), this.gutter - 9, this.width + 9);
      const corners = [];  // x and y of each; rectangles draw several times as fast as a stroke.
      for (let k = Math.max(0, firstReaching(path, from) - 1); k < path.lane.length; ++k) {
        if (!(path.lane[k] in lanes)) continue;
        const {top, high} = this.rows.list[this.rows.ofLane[path.lane[k]]];
        const y = clamp(this.yOf(top) + high - 0.5, 0, this.height + 9);
        const x = xOf(path.start[k]);
        if (corners.length && xOf(path.end[k]) - x < kShown) continue;
        if (corners.length) corners.push(x, corners.at(-1));
        corners.push(x, y, xOf(path.end[k]), y);
        if (path.start[k] > to) break;
      }
      for (const [colour, wide] of [[palette.ground, 5], [palette.ink, 2.5]]) {
        context.fillStyle = colour;
        for (let at = 0; at + 3 < corners.length; at += 2) {
          const [x, y, toX, toY] = corners.slice(at, at + 4);
          context.fillRect(Math.min(x, toX) - wide / 2, Math.min(y, toY) - wide / 2,
              Math.abs(toX - x) + wide, Math.abs(toY - y) + wide);
        }
      }
    },

    boxOf(position) {
      const left = this.xOf(this.model.start[position]);
      const wide = Math.max(2, this.xOf(this.model.end(position)) - left);
      const {top, high} = this.rows.placeOf(position);
      return [left, this.yOf(top) + 1, wide, high - 2];
    },

    isInSight([x, y, wide, tall]) {
      return x < this.width && x + wide > this.gutter && y < this.height && y + tall > this.axis;
    },

    drawMatches() {
      if (!this.isMatch) return;
      const {context, model, palette, fills, matches} = this;
      const drawn = new Float64Array(this.rows.list.length).fill(NaN);  // By row the last x.
      const [from, to] = this.range();
      const current = matches[this.current];
      context.strokeStyle = palette.accent;
      for (const position of matches) {
        if (model.start[position] >= to) break;
        if (model.end(position) <= from) continue;
        const box = this.boxOf(position);
        const row = this.rows.ofLane[model.lane[position]];
        if (!this.isInSight(box) || (drawn[row] === box[0] && box[2] <= 2)) continue;
        drawn[row] = box[0];
        context.fillStyle = fills[model.kind[position]] ?? palette.host;
        context.fillRect(...box);
        context.lineWidth = position === current ? 4 : 1.5;
        context.strokeRect(...box);
      }
    },

    // Outlines the event that is selected and the one pointed at, with the members of its collective,
    // and joins the ranks' arrivals: their slant is the skew.
    drawCollective() {
      const {context, model, palette, hovered, selected} = this;
      const shown = hovered >= 0 ? hovered : selected;
      if (shown < 0) return;
      const members = model.membersOf(shown);
      context.strokeStyle = palette.accent;
      context.lineWidth = 2;
      for (const one of new Set([shown, ...members])) {
        const box = this.boxOf(one);
        if (this.isInSight(box)) context.strokeRect(...box);
      }
      context.beginPath();
      members.map((member) => this.boxOf(model.arrivalOf(member))).sort((a, b) => a[1] - b[1])
          .forEach(([x, y, , tall]) => { context.lineTo(x, y); context.lineTo(x, y + tall); });
      context.setLineDash([5, 3]);
      context.stroke();
      context.setLineDash([]);
      if (selected < 0) return;
      context.strokeStyle = palette.ink;
      context.lineWidth = 3;
      context.strokeRect(...this.boxOf(selected));
    },

    drawMeasured() {
      if (!this.measured) return;
      const {context, palette, height, axis} = this;
      const [left, right] = this.measured.map((time) =>
        clamp(this.xOf(time), this.gutter - 9, this.width + 9));
      context.fillStyle = palette.accent;
      context.globalAlpha = 0.12;
      context.fillRect(left, axis, right - left, height);
      context.globalAlpha = 1;
      for (const x of [left, right]) context.fillRect(x - 0.5, axis, 1.5, height);
    },

    drawGutter() {
      const {context, palette, gutter, height, axis, rows} = this;
      context.fillStyle = palette.panel;
      context.fillRect(0, axis, gutter, height - axis);
      context.textBaseline = 'middle';
      for (const row of this.visible) this.drawRowName(row, this.yOf(row.top));
      const cursor = rows.list[this.cursor];
      if (cursor && document.activeElement === this.canvas) {
        context.strokeStyle = palette.accent;
        context.lineWidth = 2;
        context.strokeRect(1, this.yOf(cursor.top) + 1, gutter - 2, cursor.high - 2);
      }
    },

    // A triangle, the row's name and on the right its host or, of ranks sorted by lateness, how much
    // of the time others wait for it.
    drawRowName(row, y) {
      const {context, palette, gutter, rows} = this;
      const isNarrow = gutter < 120;
      const middle = y + row.high / 2;
      context.font = '11px system-ui, sans-serif';
      context.fillStyle = palette.soft;
      if (row.type === 'lane') {
        this.clipText(rows.nameOf(row), isNarrow ? 16 : 30, y + 8, gutter - (isNarrow ? 20 : 36));
        return;
      }
      const {indent = 0} = row;
      context.fillText(row.isOpen ? '▾' : '▸', 5 + indent, middle);
      const {late, rank} = row.ranks[0];
      const side = row.type === 'block' || isNarrow ? '' :
          rows.byLateness ? late > 0 ? format.percent(late) : '' :
            report.hosts.get(rank) ?? '';
      const wide = side ? Math.min(72, context.measureText(side.slice(0, 40)).width + 2) : 0;
      if (side) this.clipText(side, gutter - 6 - wide, middle, wide);
      context.font = '600 12px system-ui, sans-serif';
      context.fillStyle = palette.ink;
      this.clipText(rows.nameOf(row), 18 + indent, middle, gutter - 30 - indent - wide);
    },

    // Writes the text, cut where it does not fit. Names may be of any length, so they are cut
    // before they are measured too.
    clipText(text, x, y, wide) {
      let shown = text.slice(0, 40);
      const isWide = () => this.context.measureText(shown).width > wide;
      while (shown.length > 1 && isWide()) shown = shown.slice(0, -1);
      this.context.fillText(shown === text ? text : `${shown.slice(0, -1)}…`, x, y);
    },

    // The ruled lines behind the events, or (top) the axis with its texts over them.
    drawTicks(top) {
      const {context, palette, width, height, axis} = this;
      const [from, to] = this.range();
      const origin = this.step ? this.step.start_ms * 1e3 : 0;
      const rough = (to - from) / Math.max(2, this.plotWidth() / 110);
      const power = 10 ** Math.floor(Math.log10(rough));
      const apart = power * [1, 2, 5, 10].find((part) => part * power >= rough * 0.999);
      const farthest = Math.max(Math.abs(from - origin), Math.abs(to - origin));
      const [unit, name] = kUnits.find(([size]) => farthest >= size) ?? [1e-3, 'ns'];
      const digits = clamp(Math.ceil(-Math.log10(apart / unit) - 1e-9), 0, 6);
      if (top) {
        context.fillStyle = palette.ground;
        context.fillRect(0, 0, width, axis);
        this.drawSteps(from, to);
      }
      context.strokeStyle = palette.rule;
      context.lineWidth = 1;
      context.font = '12px system-ui, sans-serif';
      context.textBaseline = 'middle';
      context.fillStyle = palette.soft;
      const first = Math.ceil((from - origin) / apart);
      for (let at = first; at < first + 60 && at * apart + origin <= to; ++at) {
        const x = this.xOf(at * apart + origin) + 0.5;
        context.beginPath();
        context.moveTo(x, top ? axis - 5 : axis);
        context.lineTo(x, top ? axis : height);
        context.stroke();
        const text = `${format.fixed(at * apart / unit, digits)} ${name}`;
        if (top && x < width - 7 * text.length) context.fillText(text, x + 3, axis - 10);
      }
      if (top) this.drawCorner();
    },

    drawCorner() {
      const {context, palette, gutter, axis} = this;
      context.fillStyle = palette.ground;
      context.fillRect(0, 0, gutter, axis);
      context.fillStyle = palette.soft;
      context.font = '11px system-ui, sans-serif';
      if (this.rows.byLateness && gutter >= 120) this.clipText('others wait', gutter - 84, 12, 82);
      const {step} = this;
      const text = step ? `time in ${report.dom.stepName(step.step)}` : 'time in the run';
      this.clipText(text, 6, axis - 10, gutter - 10);
    },

    drawSteps(from, to) {
      const {context, palette, gutter, width, height} = this;
      context.font = '600 12px system-ui, sans-serif';
      context.textBaseline = 'middle';
      context.fillStyle = palette.ink;
      context.strokeStyle = palette.soft;
      context.lineWidth = 1;
      context.setLineDash([2, 3]);
      let free = gutter;
      for (const step of this.steps) {
        if (step.end_ms * 1e3 < from || step.start_ms * 1e3 > to) continue;
        const x = this.xOf(step.start_ms * 1e3);
        context.beginPath();
        context.moveTo(x + 0.5, 0);
        context.lineTo(x + 0.5, height);
        context.stroke();
        const left = Math.max(x, gutter) + 4;
        if (left < free || Math.min(width, this.xOf(step.end_ms * 1e3)) - left < 50) continue;
        context.fillText(report.dom.stepName(step.step), left, 10);
        free = left + 56;
      }
      context.setLineDash([]);
    },
  };
})();
