// SPDX-License-Identifier: Apache-2.0
// How a reader acts on the timeline: the pointer with its tooltip, the wheel and the keys.
'use strict';

(() => {
  const {element, button} = report.dom;
  const {format, clamp} = report;
  const kClick = 4;  // A press that moves by more pixels is a drag.

  function tipRows({model}, position) {
    const {rank, name} = model.laneOf(position);
    const waited = format.microseconds(model.duration[model.waitOf[position]] ?? 0);
    return [['kind', model.kindOf(position)], ['rank', `${rank}, ${name}`],
      ['duration', format.microseconds(model.duration[position])],
      ...(model.collectiveOf[position] >= 0 ? [['this rank waited', waited]] : [])];
  }

  // Of a block of ranks, what they do around a time.
  function blockRows({model, scale}, ranks, time) {
    const shares = model.sharesOf(ranks, time - 2 / scale, time + 2 / scale);
    return model.stack.filter((kind) => shares[kind] > 0)
        .map((kind) => [model.kinds[kind], format.percent(shares[kind])]);
  }

  function showTip(tip, title, rows, {clientX: x, clientY: y}) {
    tip.hidden = false;
    tip.replaceChildren(element('strong', {}, title), element('dl', {}, ...rows.flatMap(
        ([name, value]) => [element('dt', {}, name), element('dd', {}, value)])));
    tip.style.left = `${clamp(x + 14, 4, Math.max(4, window.innerWidth - tip.offsetWidth - 8))}px`;
    const below = y + 16 + tip.offsetHeight < window.innerHeight;
    tip.style.top = `${below ? y + 16 : Math.max(4, y - 12 - tip.offsetHeight)}px`;
  }

  const opensAt = (view, row, x) => row && (x < view.gutter || row.type === 'block');

  // What lies under a pointer: the event, or what the ranks of a block do.
  function point(view, tip, event, [x, y]) {
    const position = view.eventAt(x, y);
    const row = view.rowAt(y);
    view.hover(position);
    tip.hidden = true;
    if (position >= 0) {
      showTip(tip, view.model.shortNameOf(position) || 'no name', tipRows(view, position), event);
    } else if (row?.type === 'block' && x >= view.gutter) {
      showTip(tip, view.rows.nameOf(row), blockRows(view, row.ranks, view.timeAt(x)), event);
    }
    view.canvas.style.cursor = opensAt(view, row, x) ? 'pointer' : '';
  }

  // A click selects an event, or opens a rank or block by its name; a block opens anywhere.
  function click(view, [x, y]) {
    const row = view.rowAt(y);
    if (row) view.cursor = view.rows.list.indexOf(row);
    if (opensAt(view, row, x)) view.toggle(row);
    else view.select(view.eventAt(x, y));
  }

  // Drag pans, with Shift or the button it measures, two pointers zoom around their middle, a
  // pointer at rest points at events.
  function followPointers(view, canvas, tip) {
    const held = new Map();
    let pressed;  // Where the pointer went down, until it leaves that place.
    let measuresFrom;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      const at = place(event);
      held.set(event.pointerId, at);
      pressed = held.size === 1 ? at : undefined;
      const measures = (event.shiftKey || view.isMeasuring) && at[0] >= view.gutter;
      measuresFrom = measures ? view.timeAt(at[0]) : undefined;
    });
    canvas.addEventListener('pointermove', (event) => {
      const before = held.get(event.pointerId);
      const now = place(event);
      if (!before) return point(view, tip, event, now);
      if (pressed && Math.hypot(now[0] - pressed[0], now[1] - pressed[1]) <= kClick) return;
      pressed = undefined;
      held.set(event.pointerId, now);
      tip.hidden = true;
      const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const apart = (a) => Math.max(10, Math.abs(a[0] - other[0]));
        view.zoomAt((now[0] + other[0]) / 2, apart(now) / apart(before));
      } else if (measuresFrom !== undefined) {
        view.measure([measuresFrom, view.timeAt(clamp(now[0], view.gutter, view.width))]);
      } else {
        view.panBy(before[0] - now[0]);
        if (event.pointerType === 'mouse') view.frame.scrollTop += before[1] - now[1];
      }
    });
    canvas.addEventListener('pointerup', (event) => {
      if (pressed && event.button === 0) click(view, pressed);
      pressed = undefined;
    });
    for (const name of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    }
    canvas.addEventListener('pointerleave', () => { view.hover(-1); tip.hidden = true; });
  }

  // The wheel scrolls the lanes and the page as anywhere; with Ctrl, as of a pinch, it zooms.
  function followWheel(view, canvas, tip) {
    canvas.addEventListener('wheel', (event) => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      tip.hidden = true;
      if (!sideways && !event.ctrlKey) return;
      event.preventDefault();
      const x = event.clientX - canvas.getBoundingClientRect().left;
      if (event.ctrlKey) view.zoomAt(x, Math.exp(-clamp(event.deltaY, -200, 200) * 0.005));
      else view.panBy(event.deltaX || event.deltaY);
    }, {passive: false});
  }

  // The keys that act when the timeline has the focus, each with what it does.
  function keysOf(view) {
    const part = () => view.plotWidth() / 8;
    const row = () => view.rows.list[view.cursor];
    const mark = () => {
      const {selected, model} = view;
      view.measure(selected < 0 ? view.range() : [model.start[selected], model.end(selected)]);
    };
    return [
      ['W +', 'zoom in', ['w', '+', '='], () => view.zoomMiddle(1.5)],
      ['S -', 'zoom out', ['s', '-'], () => view.zoomMiddle(1 / 1.5)],
      ['A ←', 'move left', ['a', 'arrowleft'], () => view.panBy(-part())],
      ['D →', 'move right', ['d', 'arrowright'], () => view.panBy(part())],
      ['↑', 'the row above', ['arrowup'], () => view.moveCursor(-1)],
      ['↓', 'the row below', ['arrowdown'], () => view.moveCursor(1)],
      ['Enter', 'open or close the row', ['enter'], () => view.toggle(row())],
      ['.', 'select the next event of the row', ['.'], () => view.selectNext(1)],
      [',', 'select the event before', [','], () => view.selectNext(-1)],
      ['F', 'fit what is selected or measured', ['f'], () => view.fit()],
      ['M', 'measure the selected event, or what is in sight', ['m'], mark],
      ['Home', 'the whole step', ['home'], () => view.showStep(view.step)],
      ['Escape', 'close what is selected and measured', ['escape'], () => view.clear()]];
  }

  const kOtherKeys = [['/', 'search'], ['N P', 'next and previous match'], ['?', 'these keys'],
    ['Ctrl+wheel, pinch', 'zoom'], ['drag', 'move'], ['Shift+drag', 'measure'],
    ['click', 'select an event, open a rank or a block of ranks']];

  function keysDialog(keys) {
    const dialog = element('dialog', {'aria-label': 'Keys of the timeline'});
    dialog.append(element('h3', {}, 'Keys of the timeline'), element('dl', {class: 'keys'},
        ...[...keys, ...kOtherKeys].flatMap(([key, what]) =>
          [element('dt', {}, element('kbd', {}, key)), element('dd', {}, what)])),
    button('Close', () => dialog.close()));
    return dialog;
  }

  function followKeys(view, keys, dialog, {input, goTo}, say) {
    const actions = new Map(keys.flatMap(([, , names, act]) => names.map((name) => [name, act])));
    const isOther = (event) => event.ctrlKey || event.metaKey || event.altKey;
    view.canvas.addEventListener('keydown', (event) => {
      const action = actions.get(event.key.toLowerCase());
      if (!action || isOther(event)) return;
      event.preventDefault();
      action();
      say();
    });
    for (const name of ['focus', 'blur']) view.canvas.addEventListener(name, () => view.request());
    document.addEventListener('keydown', (event) => {
      const typing = event.target.closest?.('input, select, textarea');
      if (typing || isOther(event)) return;
      if (event.key === '/') input.focus();
      else if (event.key === '?') dialog.showModal();
      else if (event.key === 'n' && view.matches.length) goTo(1);
      else if (event.key === 'p' && view.matches.length) goTo(-1);
      else return;
      event.preventDefault();
    });
  }

  // Returns the dialog that lists the keys.
  report.timelineInput = (view, tip, search, say) => {
    const keys = keysOf(view);
    const dialog = keysDialog(keys);
    followPointers(view, view.canvas, tip);
    followWheel(view, view.canvas, tip);
    followKeys(view, keys, dialog, search, say);
    return dialog;
  };
})();
