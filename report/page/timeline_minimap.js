// SPDX-License-Identifier: Apache-2.0
// The whole run above the timeline: the shares of all ranks' time by kind, and the window that the
// timeline shows, which can be dragged.
'use strict';

(() => {
  const {element} = report.dom;
  const kHeight = 34;
  const kColumn = 2;

  class Minimap {
    constructor(view) {
      this.view = view;
      this.canvas = element('canvas', {class: 'minimap', role: 'img', 'aria-label':
          'The whole run, with the part that the timeline shows; drag to show another'});
      this.context = this.canvas.getContext('2d');
      this.follow();
    }

    xOf(time) {
      const {first, last} = this.view.model;
      return (time - first) / (last - first) * this.wide;
    }

    // Takes so many pixels as time.
    timeOf(pixels) { return pixels / this.wide * (this.view.model.last - this.view.model.first); }

    // Paints the run anew, after the size or the colours have changed.
    repaint() {
      const {view: {model, palette, steps}, canvas} = this;
      this.wide = Math.max(100, canvas.clientWidth);
      this.ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(this.wide * this.ratio);
      canvas.height = Math.round(kHeight * this.ratio);
      this.picture = element('canvas', {width: canvas.width, height: canvas.height});
      const context = this.picture.getContext('2d');
      context.scale(this.ratio, this.ratio);
      const count = Math.ceil(this.wide / kColumn);
      const shares = model.sharesOf(model.ranks, model.first, model.last, count);
      for (let column = 0; column < count; ++column) {
        let foot = kHeight;
        for (const kind of model.stack.filter((one) => model.looks[one].role !== 'gap')) {
          const tall = shares[column * model.kinds.length + kind] * kHeight;
          context.fillStyle = palette[model.looks[kind].role];
          context.fillRect(column * kColumn, foot -= tall, kColumn, tall);
        }
      }
      context.fillStyle = palette.ink;
      for (const step of steps) context.fillRect(this.xOf(step.start_ms * 1e3), 0, 1, 5);
      this.draw();
    }

    draw() {
      const {context, picture, wide, ratio, view: {palette, measured}} = this;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, wide, kHeight);
      context.drawImage(picture, 0, 0, wide, kHeight);
      const [left, right] = this.view.range().map((time) => this.xOf(time));
      context.fillStyle = palette.ground;
      context.globalAlpha = 0.6;
      context.fillRect(0, 0, left, kHeight);
      context.fillRect(right, 0, wide, kHeight);
      context.globalAlpha = 1;
      context.fillStyle = palette.accent;
      const [from, to] = (measured ?? []).map((time) => this.xOf(time));
      if (measured) context.fillRect(from, kHeight - 3, Math.max(1, to - from), 3);
      context.strokeStyle = palette.ink;
      context.lineWidth = 2;
      context.strokeRect(Math.max(1, left), 1, Math.max(2, Math.min(right, wide) - left - 2),
          kHeight - 2);
    }

    // A drag moves the window; one that begins beside it brings it to the pointer first.
    follow() {
      const {canvas, view} = this;
      let held;
      canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        const x = event.clientX - canvas.getBoundingClientRect().left;
        const [left, right] = view.range().map((time) => this.xOf(time));
        if (x < left || x > right) view.moveTo(view.from + this.timeOf(x - (left + right) / 2));
        held = {x: event.clientX, from: view.from};
      });
      canvas.addEventListener('pointermove', (event) => {
        if (held) view.moveTo(held.from + this.timeOf(event.clientX - held.x));
      });
      for (const name of ['pointerup', 'pointercancel']) {
        canvas.addEventListener(name, () => held = undefined);
      }
    }
  }

  report.TimelineMinimap = Minimap;
})();
