// SPDX-License-Identifier: Apache-2.0
// The canvas of the timeline: what it shows, where, and how it is drawn.
//
// Events narrower than two pixels are merged into strips whose height is how much of the time they
// fill. A frame visits only the lanes in sight and, in each, only the events of the visible range.
'use strict';

(() => {
  const {format} = report;
  const kAxis = 40;
  const kLane = 18;
  const kEvent = kLane - 2;
  const kRankGap = 8;
  const kMostHeight = 560;  // More lanes than fit scroll.
  const kShortestRange_us = 0.05;
  const kStrip = 2;  // Events narrower than this many pixels are merged into strips as wide.
  const kUnits = [[1e6, 's'], [1e3, 'ms'], [1, 'µs']];
  const kSlack = 3;  // How many pixels beside an event still point at it.
  const kLabelFrom = 48;  // Events this many pixels wide carry their name.
  const kTextured = 5;  // Events narrower than this show no texture, and plain colours draw faster.

  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  function luminance(colour) {
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  }

  // The top of each lane, with a gap between ranks, and the height of all with the axis.
  function laneTops(lanes) {
    const tops = [];
    let top = 4;
    lanes.forEach((lane, at) => {
      if (at > 0 && lanes[at - 1].rank !== lane.rank) top += kRankGap;
      tops.push(top);
      top += kLane;
    });
    return {tops, tall: kAxis + top + 4};
  }

  // Fills the rectangles of a bucket whose widths are in [from, to).
  function fillRects(context, rects, style, from, to) {
    context.fillStyle = style;
    for (let at = 0; at < rects.length; at += 4) {
      const wide = rects[at + 2];
      if (wide < from || wide >= to) continue;
      context.fillRect(rects[at], rects[at + 1], wide, rects[at + 3]);
    }
  }

  function outlineRects(context, rects, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    for (let at = 0; at < rects.length; at += 4) {
      const [x, y, wide, tall] = rects.slice(at, at + 4);
      if (wide >= 3) context.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    }
  }

  class View {
    constructor(model, steps, canvas, frame) {
      Object.assign(this, {model, steps, canvas, frame, ...laneTops(model.lanes)});
      this.context = canvas.getContext('2d', {alpha: false});
      this.labels = [];  // Of the layer's wide events: position, x on the layer, y, width.
      this.matches = [];
      this.isMatch = undefined;
      this.current = -1;
      this.hovered = -1;
      this.step = undefined;
      this.drawTimes = [];  // Of the last 600 frames, in ms; the browser test reads them.
      this.buckets = model.kinds.map(() => []);
      this.share = new Float64Array(model.kinds.length);
      const times = steps.flatMap((step) => [step.start_ms * 1e3, step.end_ms * 1e3]);
      let first = Math.min(Infinity, ...times);
      let last = Math.max(-Infinity, ...times);
      for (let at = 0; at < model.count; ++at) {
        first = Math.min(first, model.start[at]);
        last = Math.max(last, model.end(at));
      }
      this.first = Number.isFinite(first) ? first : 0;
      this.last = Math.max(last, this.first + 1);
      this.recolour();
    }

    recolour() {
      const palette = report.colours();
      this.palette = palette;
      this.layer = undefined;
      this.fills = this.model.looks.map(({role, use}) => report.charts.fillOf(palette, role, use));
      this.inks = this.model.looks.map(({role}) =>
          luminance(role === 'gap' ? palette.panel : palette[role]) > 0.18 ? '#101418' : '#ffffff');
      this.request();
    }

    resize() {
      const range = this.scale ? this.range() : undefined;
      this.width = Math.max(200, this.frame.clientWidth);
      this.gutter = this.width < 600 ? 96 : 168;
      this.height = Math.min(kMostHeight, this.tall);
      const ratio = window.devicePixelRatio || 1;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
      if (range) this.show(...range); else this.show(this.first, this.last);
      this.draw();
    }

    plotWidth() { return this.width - this.gutter; }
    range() { return [this.from, this.from + this.plotWidth() / this.scale]; }
    timeAt(x) { return this.from + (x - this.gutter) / this.scale; }
    xOf(time) { return Math.round(time * this.scale) - this.shift + this.gutter; }
    yOf(lane) { return this.tops[lane] - this.frame.scrollTop + kAxis; }

    // Shows a time range in µs, kept inside the run and a margin of 2 %.
    show(from, to) {
      const whole = (this.last - this.first) * 1.04;
      const span = clamp(to - from, Math.min(kShortestRange_us, whole), whole);
      this.scale = this.plotWidth() / span;
      this.moveTo((from + to) / 2 - span / 2);
    }

    // Leaves the scale as it is, to the last bit, so that the layer of events stays good.
    moveTo(from) {
      const margin = (this.last - this.first) * 0.02;
      const span = this.plotWidth() / this.scale;
      this.from = clamp(from, this.first - margin, this.last + margin - span);
      this.request();
    }

    showStep(step) {
      this.step = step;
      const [from, to] = step ? [step.start_ms * 1e3, step.end_ms * 1e3] : [this.first, this.last];
      const margin = (to - from) * 0.02;
      this.show(from - margin, to + margin);
    }

    panBy(pixels) { this.moveTo(this.from + pixels / this.scale); }

    zoomAt(x, factor) {
      const time = this.timeAt(clamp(x, this.gutter, this.width));
      const [from, to] = this.range();
      this.show(time - (time - from) / factor, time + (to - time) / factor);
    }

    zoomMiddle(factor) { this.zoomAt(this.gutter + this.plotWidth() / 2, factor); }
    isWhole() { return this.plotWidth() / this.scale >= (this.last - this.first) * 1.039; }

    // Brings an event into sight, at least a few pixels wide.
    reveal(position) {
      const {start, duration, lane} = this.model;
      const [from, to] = this.range();
      const end = this.model.end(position);
      if (start[position] < from || end > to || duration[position] * this.scale < 4) {
        const half = Math.min(to - from, Math.max(duration[position] * 40, 1)) / 2;
        const middle = (start[position] + end) / 2;
        this.show(middle - half, middle + half);
      }
      const top = this.tops[lane[position]];
      this.frame.scrollTop = clamp(this.frame.scrollTop, top + kLane - (this.height - kAxis), top);
      this.request();
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

    draw() {
      const {context, palette, width, height} = this;
      const ratio = this.canvas.width / width;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = palette.ground;
      context.fillRect(0, 0, width, height);
      this.shift = Math.round(this.from * this.scale);
      this.visible = this.tops.map((_, lane) => lane)
          .filter((lane) => this.yOf(lane) + kLane > kAxis && this.yOf(lane) < height);
      this.drawTicks(false);
      this.drawEvents();
      this.drawPath();
      this.drawMatches();
      this.drawCollective();
      this.drawGutter();
      this.drawTicks(true);
    }

    // Events are painted on a layer of their own, which a pan only moves.
    drawEvents() {
      const {context, gutter, height} = this;
      const wide = this.plotWidth();
      const layer = this.layerInSight();
      const left = this.shift - layer.shift;
      context.globalAlpha = this.isMatch ? 0.35 : 1;
      context.drawImage(layer.canvas, left * layer.ratio, 0, wide * layer.ratio, layer.canvas.height,
          gutter, 0, wide, height);
      this.drawLabels(gutter - left);
      context.globalAlpha = 1;
    }

    // The layer that covers what is in sight. One that only a pan has left is painted anew with a
    // margin; a zoom changes every frame, so a margin would be painted for nothing.
    layerInSight() {
      const wide = this.plotWidth();
      const ratio = this.canvas.width / this.width;
      const key = [this.scale, this.frame.scrollTop, this.width, this.height, ratio].join();
      const same = this.layer?.key === key;
      const ahead = same ? this.shift - this.layer.shift : -1;
      if (ahead >= 0 && ahead + wide <= this.layer.wide) return this.layer;
      const margin = same ? Math.round(wide / 2) : 0;
      const canvas = this.layer?.canvas ?? document.createElement('canvas');
      this.layer = {canvas, key, ratio, shift: this.shift - margin, wide: wide + 2 * margin};
      this.paintLayer();
      return this.layer;
    }

    paintLayer() {
      const {buckets, fills, palette, layer: {canvas, ratio, shift, wide}} = this;
      canvas.width = Math.ceil(wide * ratio);
      canvas.height = Math.round(this.height * ratio);
      const context = canvas.getContext('2d');
      context.scale(ratio, ratio);
      this.labels.length = 0;
      for (const bucket of buckets) bucket.length = 0;
      for (const lane of this.visible) this.collect(this.model.lanes[lane], this.yOf(lane) + 1);
      buckets.forEach((rects, kind) => {
        if (fills[kind] instanceof CanvasPattern) {
          fills[kind].setTransform(new DOMMatrix().translate(-(shift % 8), 0));
        }
        const {role} = this.model.looks[kind];
        fillRects(context, rects, fills[kind], kTextured, Infinity);
        fillRects(context, rects, palette[role === 'gap' ? 'rule' : role], 0, kTextured);
        if (role === 'gap') outlineRects(context, rects, palette.gap);
      });
    }

    // Sorts what a lane shows into the buckets of its kinds, as x on the layer, y, width, height.
    // Short events gather in the pixels of their start until an event of other pixels comes.
    collect(lane, y) {
      const {model: {start, duration, kind: kinds}, scale, buckets, share, layer} = this;
      const from = layer.shift / scale;
      const to = (layer.shift + layer.wide) / scale;
      const {items} = lane;
      this.stripEnd = NaN;
      let pixel = NaN;
      for (let k = this.model.firstReaching(lane, from); k < items.length; ++k) {
        const position = items[k];
        const begin = start[position];
        if (begin >= to) break;
        const kind = kinds[position];
        if (!buckets[kind] || begin + duration[position] <= from) continue;
        const wide = duration[position] * scale;
        const next = wide < kStrip ? Math.floor(begin * scale / kStrip) * kStrip : NaN;
        if (next !== pixel && !Number.isNaN(pixel)) this.pushStrip(pixel, y);
        pixel = next;
        if (wide < kStrip) share[kind] += Math.max(wide / kStrip, 0.05);
        else this.pushEvent(buckets[kind], position, y);
      }
      if (!Number.isNaN(pixel)) this.pushStrip(pixel, y);
    }

    // Adds the pixels of short events in the colour of the kind that fills most of them. Equal
    // neighbours become one rectangle.
    pushStrip(pixel, y) {
      const {share, buckets} = this;
      let kind = 0;
      let filled = 0;
      for (let at = 0; at < share.length; ++at) {
        filled += share[at];
        if (share[at] > share[kind]) kind = at;
      }
      share.fill(0);
      const high = Math.ceil(clamp(filled, 0.15, 1) * 4) / 4 * kEvent;
      const x = pixel - this.layer.shift;
      const rects = buckets[kind];
      if (this.stripEnd === x && this.stripKind === kind && rects[rects.length - 1] === high) {
        rects[rects.length - 2] += kStrip;
      } else {
        rects.push(x, y + kEvent - high, kStrip, high);
      }
      this.stripKind = kind;
      this.stripEnd = x + kStrip;
    }

    // Wide events leave a pixel free on their right, so that equal neighbours stay apart.
    pushEvent(rects, position, y) {
      const {model, scale, layer} = this;
      const left = Math.max(-2, Math.round(model.start[position] * scale) - layer.shift);
      const right = Math.min(layer.wide + 2, Math.round(model.end(position) * scale) - layer.shift);
      const wide = Math.max(1, right - left);
      rects.push(left, y, wide > 4 ? wide - 1 : wide, kEvent);
      if (wide >= kLabelFrom) this.labels.push(position, left, y, wide);
    }

    // Writes the names of the layer's wide events, which lies at x, into what is in sight of them.
    drawLabels(x) {
      const {context, model, labels, palette} = this;
      context.font = '11px ui-monospace, Menlo, Consolas, monospace';
      context.textBaseline = 'middle';
      this.letter ??= context.measureText('m').width;
      for (let at = 0; at < labels.length; at += 4) {
        const [position, begin, y, length] = labels.slice(at, at + 4);
        const left = Math.max(this.gutter, x + begin);
        const wide = Math.min(this.width, x + begin + length) - left;
        if (wide < kLabelFrom) continue;
        const name = model.nameOf(position);
        const fits = Math.floor((wide - 10) / this.letter);
        const text = name.length <= fits ? name : `${name.slice(0, fits - 1)}…`;
        const kind = model.kind[position];
        const {role} = model.looks[kind];
        if (this.fills[kind] instanceof CanvasPattern) {
          context.fillStyle = palette[role];
          context.fillRect(left + 3, y + 2, text.length * this.letter + 4, kLane - 6);
        }
        context.fillStyle = role === 'gap' ? palette.soft : this.inks[kind];
        context.fillText(text, left + 5, y + kEvent / 2 + 0.5);
      }
    }

    // The critical path: a line under its events that steps from lane to lane.
    drawPath() {
      const {context, model: {path, firstReaching}, palette} = this;
      const [from, to] = this.range();
      const line = new Path2D();
      let before;
      for (let k = Math.max(0, firstReaching(path, from) - 1); k < path.items.length; ++k) {
        const at = path.items[k];
        if (!(path.lane[at] in this.tops)) continue;
        const y = clamp(this.yOf(path.lane[at]) + kLane - 1.5, 0, this.height + 9);
        const x = clamp(this.xOf(path.start_us[at]), this.gutter - 9, this.width + 9);
        if (before === undefined) line.moveTo(x, y); else line.lineTo(x, before);
        line.lineTo(x, y);
        line.lineTo(clamp(this.xOf(path.end_us[at]), this.gutter - 9, this.width + 9), y);
        before = y;
        if (path.start_us[at] > to) break;
      }
      for (const [colour, wide] of [[palette.ground, 5], [palette.ink, 2.5]]) {
        context.strokeStyle = colour;
        context.lineWidth = wide;
        context.stroke(line);
      }
    }

    boxOf(position) {
      const left = this.xOf(this.model.start[position]);
      const wide = Math.max(2, this.xOf(this.model.end(position)) - left);
      return [left, this.yOf(this.model.lane[position]) + 1, wide, kEvent];
    }

    drawMatches() {
      if (!this.isMatch) return;
      const {context, model, palette, fills} = this;
      const [from, to] = this.range();
      context.strokeStyle = palette.accent;
      for (const lane of this.visible) {
        const {items} = model.lanes[lane];
        let before = NaN;
        for (let k = model.firstReaching(model.lanes[lane], from); k < items.length; ++k) {
          const position = items[k];
          if (model.start[position] >= to) break;
          if (!this.isMatch[model.name[position]]) continue;
          const box = this.boxOf(position);
          if (box[0] === before && box[2] <= 2) continue;
          before = box[0];
          context.fillStyle = fills[model.kind[position]] ?? palette.host;
          context.fillRect(...box);
          context.lineWidth = position === this.matches[this.current] ? 4 : 1.5;
          context.strokeRect(...box);
        }
      }
    }

    // Outlines a collective's members and joins the ranks' arrivals: their slant is the skew.
    drawCollective() {
      if (this.hovered < 0) return;
      const {context, model, palette} = this;
      const members = model.membersOf(this.hovered);
      context.strokeStyle = palette.accent;
      context.lineWidth = 2;
      for (const one of [this.hovered, ...members]) context.strokeRect(...this.boxOf(one));
      context.beginPath();
      members.map((member) => this.boxOf(model.arrivalOf(member))).sort((a, b) => a[1] - b[1])
          .forEach(([x, y, , tall]) => { context.lineTo(x, y); context.lineTo(x, y + tall); });
      context.setLineDash([5, 3]);
      context.stroke();
      context.setLineDash([]);
    }

    drawGutter() {
      const {context, palette, gutter, height, model: {lanes}} = this;
      context.fillStyle = palette.panel;
      context.fillRect(0, kAxis, gutter, height - kAxis);
      context.textBaseline = 'middle';
      const split = gutter < 120 ? 34 : 74;
      for (const lane of this.visible) {
        const y = this.yOf(lane) + kLane / 2;
        const {rank, name} = lanes[lane];
        const row = lane - lanes.findIndex((other) => other.rank === rank);
        context.font = row === 0 ? '600 12px system-ui, sans-serif' : '11px system-ui, sans-serif';
        context.fillStyle = palette.ink;
        if (row === 0) this.clipText(gutter < 120 ? `r${rank}` : `rank ${rank}`, 6, y, split - 6);
        context.font = '11px system-ui, sans-serif';
        context.fillStyle = palette.soft;
        const host = report.hosts.get(rank);
        if (row === 1 && host && gutter >= 120) this.clipText(host, 6, y, split - 6);
        this.clipText(name, split + 4, y, gutter - split - 8);
      }
    }

    // Writes the text, cut where it does not fit. Names may be of any length, so they are cut
    // before they are measured too.
    clipText(text, x, y, wide) {
      let shown = text.slice(0, 40);
      const isWide = () => this.context.measureText(shown).width > wide;
      while (shown.length > 1 && isWide()) shown = shown.slice(0, -1);
      this.context.fillText(shown === text ? text : `${shown.slice(0, -1)}…`, x, y);
    }

    // The ruled lines behind the events, or (top) the axis with its texts over them.
    drawTicks(top) {
      const {context, palette, gutter, width, height} = this;
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
        context.fillRect(0, 0, width, kAxis);
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
        context.moveTo(x, top ? kAxis - 5 : kAxis);
        context.lineTo(x, top ? kAxis : height);
        context.stroke();
        const text = `${format.fixed(at * apart / unit, digits)} ${name}`;
        if (top && x < width - 7 * text.length) context.fillText(text, x + 3, kAxis - 10);
      }
      if (top) this.drawCorner();
    }

    drawCorner() {
      const {context, palette, gutter} = this;
      context.fillStyle = palette.ground;
      context.fillRect(0, 0, gutter, kAxis);
      context.fillStyle = palette.soft;
      const text = this.step ? `time in step ${this.step.step}` : 'time in the run';
      this.clipText(text, 6, kAxis - 10, gutter - 10);
    }

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
        context.fillText(`step ${step.step}`, left, 10);
        free = left + 56;
      }
      context.setLineDash([]);
    }

    laneAt(y) {
      const inside = y - kAxis + this.frame.scrollTop;
      return y < kAxis ? -1 : this.tops.findIndex((top) => inside >= top && inside < top + kLane);
    }

    // The event under a point: of those that hold it the one that starts last, else the nearest
    // within a few pixels; -1 if there is none.
    eventAt(x, y) {
      const lane = this.laneAt(y);
      if (lane < 0 || x < this.gutter) return -1;
      const {model} = this;
      const {items} = model.lanes[lane];
      const time = this.timeAt(x);
      const slack = kSlack / this.scale;
      let found = -1;
      let nearest = slack;
      for (let k = model.firstReaching(model.lanes[lane], time - slack); k < items.length; ++k) {
        const position = items[k];
        if (model.start[position] > time + slack) break;
        const away = Math.max(0, model.start[position] - time, time - model.end(position));
        if (away <= nearest) { nearest = away; found = position; }
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
        for (const lane of model.lanes) {
          for (const one of lane.items) if (this.isMatch[model.name[one]]) this.matches.push(one);
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

  report.clamp = clamp;
  report.TimelineView = View;
})();
