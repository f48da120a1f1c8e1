// SPDX-License-Identifier: Apache-2.0
// How the timeline draws its events: a part of TimelineView.
//
// Spans narrower than four pixels are merged into strips whose height is how much of the time they
// fill. A frame visits only the rows in sight and, in each, only the spans of the visible range.
'use strict';

(() => {
  const {clamp} = report;
  const kStrip = 4;  // Spans narrower than this many pixels are merged into strips as wide.
  const kColumn = 6;  // How many pixels wide the columns of a block's shares are,
  const kTall = 2;  // and of how many pixels their heights are multiples, so that equal ones join.
  const kLabelFrom = 48;  // Spans this many pixels wide carry their name.
  const kTextured = 7;  // Spans narrower than this show no texture, and plain colours draw faster.

  // Fills the rectangles of a bucket whose widths are in [from, to), all at once: browsers take
  // longer for each fill than for the rectangles in it.
  function fillRects(context, rects, style, from, to) {
    context.fillStyle = style;
    context.beginPath();
    for (let at = 0; at < rects.length; at += 4) {
      const wide = rects[at + 2];
      if (wide >= from && wide < to) context.rect(rects[at], rects[at + 1], wide, rects[at + 3]);
    }
    context.fill();
  }

  function outlineRects(context, rects, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    for (let at = 0; at < rects.length; at += 4) {
      const [x, y, wide, tall] = rects.slice(at, at + 4);
      if (wide >= 3) context.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    }
  }

  // Adds a rectangle, or makes the last one wider where it ends here and is as high. A bucket may
  // hold rectangles of several rows, those of a row in order.
  function pushRect(rects, x, y, wide, tall) {
    const last = rects.length - 4;
    if (last >= 0 && rects[last + 1] === y && rects[last + 3] === tall &&
        rects[last] + rects[last + 2] === x) rects[last + 2] += wide;
    else rects.push(x, y, wide, tall);
  }

  report.timelinePaint = {
    draw() {
      const {context, palette, width, height} = this;
      const ratio = this.canvas.width / width;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = palette.ground;
      context.fillRect(0, 0, width, height);
      this.shift = Math.round(this.from * this.scale);
      this.scrolled = this.frame.scrollTop;
      this.visible = this.rows.list.filter(({top, high}) =>
        this.yOf(top) + high > this.axis && this.yOf(top) < height);
      this.drawBands();
      this.drawTicks(false);
      this.drawEvents();
      this.drawPath();
      this.drawMatches();
      this.drawCollective();
      this.drawMeasured();
      this.drawGutter();
      this.drawTicks(true);
    },

    drawEvents() {
      const {context, buckets, fills, palette, height, axis} = this;
      this.labels.length = 0;
      for (const bucket of buckets) bucket.length = 0;
      for (const row of this.visible) {
        const y = this.yOf(row.top);
        if (row.type === 'block') this.collectBlock(row, y + 1);
        for (const {spans, top, high} of this.rows.spansOf(row)) {
          if (y + top < height && y + top + high > axis) this.collect(spans, y + top + 1, high - 2);
        }
      }
      context.globalAlpha = this.isMatch ? 0.35 : 1;
      buckets.forEach((rects, kind) => {
        if (fills[kind] instanceof CanvasPattern) {
          fills[kind].setTransform(new DOMMatrix().translate(-(this.shift % 8), 0));
        }
        const {role} = this.model.looks[kind];
        fillRects(context, rects, fills[kind], kTextured, Infinity);
        fillRects(context, rects, palette[role === 'gap' ? 'rule' : role], 0, kTextured);
        if (role === 'gap') outlineRects(context, rects, palette.gap);
      });
      this.drawLabels();
      context.globalAlpha = 1;
    },

    // What the ranks of a block do: in each column the shares of their time by kind, one on another.
    collectBlock({ranks, high}, y) {
      const {model, scale, buckets, shift} = this;
      const size = model.kinds.length;
      const left = Math.floor(shift / kColumn) * kColumn;
      const count = Math.ceil((shift + this.plotWidth() - left) / kColumn);
      const shares = model.sharesOf(ranks, left / scale, (left + count * kColumn) / scale, count);
      for (let column = 0; column < count; ++column) {
        let filled = 0;
        for (const kind of model.stack) {
          const from = Math.round(filled * (high - 2) / kTall) * kTall;
          filled = Math.min(1, filled + shares[column * size + kind]);
          const tall = Math.round(filled * (high - 2) / kTall) * kTall - from;
          if (tall > 0) {
            pushRect(buckets[kind], left - shift + this.gutter + column * kColumn,
                y + high - 2 - from - tall, kColumn, tall);
          }
        }
      }
    },

    // Sorts what a row shows into the buckets of its kinds, as x, y, width, height.
    // Short spans gather in the pixels of their start until a span of other pixels comes.
    collect(spans, y, tall) {
      const {model, scale, buckets, share} = this;
      const [from, to] = this.range();
      let pixel = NaN;
      for (let k = model.firstReaching(spans, from); k < spans.event.length; ++k) {
        const begin = spans.start[k];
        if (begin >= to) break;
        const kind = model.kind[spans.event[k]];
        if (!buckets[kind] || spans.end[k] <= from) continue;
        const wide = (spans.end[k] - begin) * scale;
        const next = wide < kStrip ? Math.floor(begin * scale / kStrip) * kStrip : NaN;
        if (next !== pixel && !Number.isNaN(pixel)) this.pushStrip(pixel, y, tall);
        pixel = next;
        if (wide < kStrip) share[kind] += Math.max(wide / kStrip, 0.05);
        else this.pushSpan(buckets[kind], spans, k, y, tall);
      }
      if (!Number.isNaN(pixel)) this.pushStrip(pixel, y, tall);
    },

    // Adds the pixels of short spans in the colour of the kind that fills most of them.
    pushStrip(pixel, y, tall) {
      const {share, buckets} = this;
      let kind = 0;
      let filled = 0;
      for (let at = 0; at < share.length; ++at) {
        filled += share[at];
        if (share[at] > share[kind]) kind = at;
      }
      share.fill(0);
      const high = Math.ceil(clamp(filled, 0.15, 1) * 4) / 4 * tall;
      pushRect(buckets[kind], pixel - this.shift + this.gutter, y + tall - high, kStrip, high);
    },

    // Wide spans leave a pixel free on their right, so that equal neighbours stay apart.
    pushSpan(rects, spans, k, y, tall) {
      const left = Math.max(this.gutter - 2, this.xOf(spans.start[k]));
      const right = Math.min(this.width + 2, this.xOf(spans.end[k]));
      const wide = Math.max(1, right - left);
      rects.push(left, y, wide > 4 ? wide - 1 : wide, tall);
      if (wide >= kLabelFrom) this.labels.push(spans.event[k], left, y, wide, tall);
    },

    // Writes the names of wide spans into what is in sight of them.
    drawLabels() {
      const {context, model, labels, palette} = this;
      context.font = '11px ui-monospace, Menlo, Consolas, monospace';
      context.textBaseline = 'middle';
      this.letter ??= context.measureText('m').width;
      for (let at = 0; at < labels.length; at += 5) {
        const [position, begin, y, length, tall] = labels.slice(at, at + 5);
        const left = Math.max(this.gutter, begin);
        const wide = Math.min(this.width, begin + length) - left;
        const name = model.shortNameOf(position);
        const fits = Math.floor((wide - 10) / this.letter);
        const text = name.length <= fits ? name : `${name.slice(0, fits - 1)}…`;
        const kind = model.kind[position];
        const {role} = model.looks[kind];
        if (this.fills[kind] instanceof CanvasPattern) {
          context.fillStyle = palette[role];
          context.fillRect(left + 3, y + 1, text.length * this.letter + 4, tall - 2);
        }
        context.fillStyle = role === 'gap' ? palette.soft : this.inks[kind];
        context.fillText(text, left + 5, y + tall / 2 + 0.5);
      }
    },
  };
})();
