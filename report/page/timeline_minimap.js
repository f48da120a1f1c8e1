// SPDX-License-Identifier: Apache-2.0
// The whole run above the timeline: the shares of all ranks' time by kind, and the window that the
// timeline shows, which can be dragged.
'use strict';

(() => {
  const {element} = report.dom;
  const kHeight = 34;
  const kEdge = 6;  // How many pixels beside an edge of the window take hold of it.

  class Minimap {
    constructor(view) {
      this.view = view;
      this.canvas = element('canvas', {class: 'minimap', role: 'img', 'aria-label':
          'The whole run, with the part that the timeline shows; drag to show another'});
      this.context = this.canvas.getContext('2d');
      this.follow();
    }

    xOf(time) {
      const {first, last} = this.view;
      return (time - first) / (last - first) * this.wide;
    }

    timeAt(x) {
      const {first, last} = this.view;
      return first + x / this.wide * (last - first);
    }

    // Paints the run anew, after the size or the colours have changed.
    repaint() {
      const {view, canvas} = this;
      this.wide = Math.max(100, canvas.clientWidth);
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(this.wide * ratio);
      canvas.height = Math.round(kHeight * ratio);
      this.picture = element('canvas', {width: canvas.width, height: canvas.height});
      const context = this.picture.getContext('2d');
      context.scale(ratio, ratio);
      const {model, palette} = view;
      const count = Math.ceil(this.wide / 2);
      const shares = model.columns(model.ranks, view.first, view.last, count);
      for (let column = 0; column < count; ++column) {
        let foot = kHeight;
        for (const kind of model.stack) {
          const tall = shares[column * model.kinds.length + kind] * kHeight;
          context.fillStyle = palette[model.looks[kind].role];
          if (model.looks[kind].role !== 'gap') context.fillRect(column * 2, foot - tall, 2, tall);
          foot -= tall;
        }
      }
      context.fillStyle = palette.ink;
      for (const step of view.steps) context.fillRect(this.xOf(step.start_ms * 1e3), 0, 1, 5);
      this.draw();
    }

    draw() {
      if (!this.picture) return;
      const {context, picture, view: {palette, measured}, view} = this;
      const ratio = picture.width / this.wide;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, this.wide, kHeight);
      context.drawImage(picture, 0, 0, this.wide, kHeight);
      const [left, right] = view.range().map((time) => this.xOf(time));
      context.fillStyle = palette.ground;
      context.globalAlpha = 0.6;
      context.fillRect(0, 0, left, kHeight);
      context.fillRect(right, 0, this.wide, kHeight);
      context.globalAlpha = 1;
      if (measured) {
        context.fillStyle = palette.accent;
        const [from, to] = measured.map((time) => this.xOf(time));
        context.fillRect(from, kHeight - 3, Math.max(1, to - from), 3);
      }
      context.strokeStyle = palette.ink;
      context.lineWidth = 2;
      context.strokeRect(Math.max(1, left), 1, Math.max(2, Math.min(right, this.wide) - left - 2),
          kHeight - 2);
    }

    // A drag of the window moves it, one of an edge moves the edge; elsewhere the window comes to
    // the pointer first.
    follow() {
      const {canvas, view} = this;
      let held;
      const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
      canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        const x = place(event);
        const edges = view.range().map((time) => this.xOf(time));
        const edge = edges.findIndex((at) => Math.abs(at - x) <= kEdge);
        if (edge < 0 && (x < edges[0] || x > edges[1])) {
          view.moveTo(this.timeAt(x) - (view.range()[1] - view.range()[0]) / 2);
        }
        held = {edge, x, range: view.range()};
      });
      canvas.addEventListener('pointermove', (event) => {
        if (!held) return;
        const by = this.timeAt(place(event)) - this.timeAt(held.x);
        if (held.edge < 0) return view.moveTo(held.range[0] + by);
        const range = [...held.range];
        range[held.edge] += by;
        if (range[0] < range[1]) view.show(...range);
      });
      for (const name of ['pointerup', 'pointercancel']) {
        canvas.addEventListener(name, () => held = undefined);
      }
    }
  }

  report.TimelineMinimap = Minimap;
})();
