// SPDX-License-Identifier: Apache-2.0
// The timeline's section: the canvas with its controls, legend, pointer, keys and texts.
'use strict';

(() => {
  const {element, button, stepChooser} = report.dom;
  const {format, clamp} = report;
  const kLongest = 50;
  const kClick = 4;  // A press that moves by more pixels is a drag.

  function tipRows(view, position) {
    const {model} = view;
    const lane = model.laneOf(position);
    const rows = [['kind', model.kindOf(position)], ['rank', `${lane.rank}, ${lane.name}`],
      ['duration', format.microseconds(model.duration[position])]];
    if (model.collectiveOf[position] >= 0) {
      rows.push(['this rank waited',
        format.microseconds(model.duration[model.waitOf[position]] ?? 0)]);
    }
    return rows;
  }

  // Of a block of ranks, what they do around a time.
  function blockRows({model, scale}, ranks, time) {
    const length = 4 / scale;
    const sums = model.timeByKind(ranks, time - length / 2, time + length / 2);
    return model.stack.filter((kind) => sums[kind] > 0)
        .map((kind) => [model.kinds[kind], format.percent(sums[kind] / length)]);
  }

  function showTip(tip, title, rows, x, y) {
    tip.hidden = false;
    tip.replaceChildren(element('strong', {}, title), element('dl', {}, ...rows.flatMap(
        ([name, value]) => [element('dt', {}, name), element('dd', {}, value)])));
    tip.style.left = `${clamp(x + 14, 4, Math.max(4, window.innerWidth - tip.offsetWidth - 8))}px`;
    const below = y + 16 + tip.offsetHeight < window.innerHeight;
    tip.style.top = `${below ? y + 16 : Math.max(4, y - 12 - tip.offsetHeight)}px`;
  }

  // What lies under a pointer: the event, or what the ranks of a block do.
  function point(view, tip, event, [x, y]) {
    const position = view.eventAt(x, y);
    const row = view.rowAt(y);
    view.hover(position);
    tip.hidden = true;
    if (position >= 0) {
      const name = view.model.shortNameOf(position) || 'no name';
      showTip(tip, name, tipRows(view, position), event.clientX, event.clientY);
    } else if (row?.type === 'block' && x >= view.gutter) {
      showTip(tip, view.rows.nameOf(row), blockRows(view, row.ranks, view.timeAt(x)),
          event.clientX, event.clientY);
    }
    view.canvas.style.cursor = row && (x < view.gutter || row.type === 'block') ? 'pointer' : '';
  }

  // A click selects an event, or opens a rank or block by its name; a block opens anywhere.
  function click(view, [x, y]) {
    const row = view.rowAt(y);
    if (row) view.cursor = view.rows.list.indexOf(row);
    if (row && (x < view.gutter || row.type === 'block')) view.toggle(row);
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
    // The wheel scrolls the lanes and the page as anywhere; with Ctrl, as of a pinch, it zooms.
    canvas.addEventListener('wheel', (event) => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      tip.hidden = true;
      if (!sideways && !event.ctrlKey) return;
      event.preventDefault();
      if (event.ctrlKey) {
        view.zoomAt(place(event)[0], Math.exp(-clamp(event.deltaY, -200, 200) * 0.005));
      } else {
        view.panBy(event.deltaX || event.deltaY);
      }
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
    const close = () => { view.select(-1); view.measure(undefined); };
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
      ['Escape', 'close what is selected and measured', ['escape'], close]];
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

  function searchBox(view) {
    const input = element('input', {type: 'search', placeholder: 'name of an operation',
      'aria-label': 'Search the timeline'});
    const found = element('output', {'aria-live': 'polite'});
    const say = () => {
      const count = format.count(view.matches.length, 'match', 'matches');
      const lane = view.model.laneOf(view.matches[view.current]);
      const place = `${format.fixed(view.current + 1, 0)} of ${count}`;
      found.textContent = !input.value.trim() ? '' : lane ? `${place}, rank ${lane.rank}` : count;
    };
    const goTo = (by) => { view.nextMatch(by); say(); };
    input.addEventListener('input', () => { view.search(input.value); say(); });
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') goTo(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') view.canvas.focus();
    });
    return {input, goTo, element: element('span', {class: 'search'}, input,
        button('‹', () => goTo(-1), {'aria-label': 'Previous match'}),
        button('›', () => goTo(1), {'aria-label': 'Next match'}), found)};
  }

  // Small pictures of the kinds, painted as the events are.
  function paintLegend(view, list) {
    const swatch = (paint) => {
      const canvas = element('canvas', {width: 22, height: 14, 'aria-hidden': 'true'});
      paint(canvas.getContext('2d'));
      return canvas;
    };
    const kinds = view.model.kinds.map((kind, at) => [kind, swatch((context) => {
      context.fillStyle = view.fills[at];
      context.fillRect(0, 0, 22, 14);
      context.strokeStyle = view.palette.gap;
      if (view.model.looks[at].role === 'gap') context.strokeRect(0.5, 0.5, 21, 13);
    })]);
    const line = (colour, dash) => swatch((context) => {
      context.strokeStyle = colour;
      context.lineWidth = 2.5;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, 10);
      context.lineTo(22, 10);
      context.stroke();
    });
    list.replaceChildren(...[...kinds, ['critical path', line(view.palette.ink, [])],
      ['one collective on all ranks', line(view.palette.accent, [5, 3])]]
        .map(([name, picture]) => element('li', {}, picture, name)));
  }

  function longestTable(view, positions) {
    const {model} = view;
    const {text, number, whole} = report.columns;
    const origin = view.step ? view.step.start_ms * 1e3 : 0;
    const rows = positions.sort((a, b) => model.duration[b] - model.duration[a]).slice(0, kLongest);
    const where = view.step ? `step ${view.step.step}` : 'the run';
    return report.table({caption: `The ${format.count(rows.length, 'longest event')} of ${where}`,
      name: 'longest_events', rows, columns: [text('name', model.nameOf, {absent: 'no name'}),
        text('kind', model.kindOf, {absent: 'no kind'}),
        whole('rank', '', (at) => model.laneOf(at).rank),
        text('lane', (at) => model.laneOf(at).name),
        number('start', 'µs', (at) => model.start[at] - origin, {digits: 1}),
        number('duration', 'µs', (at) => model.duration[at], {digits: 1})]});
  }

  // What the picture shows, for those who do not see it.
  function summaryText(view, positions) {
    const {model} = view;
    const sums = model.kinds.map(() => 0);
    for (const position of positions) sums[model.kind[position]] += model.duration[position];
    const parts = model.kinds.map((kind, at) => `${kind} ${format.microseconds(sums[at])}`);
    const what = view.step ? `Step ${view.step.step}` : 'The run';
    return `${what} has ${format.count(positions.length, 'event')} on ${
      format.count(model.ranks.length, 'rank')}. ` +
        `Time over all ranks: ${parts.join(', ')}. The table below lists the longest events.`;
  }

  // A button that stays pressed.
  function toggleButton(label, isPressed, onToggle, attributes = {}) {
    const made = button(label, () => {
      const pressed = made.ariaPressed !== 'true';
      made.ariaPressed = String(pressed);
      onToggle(pressed);
    }, {'aria-pressed': String(isPressed), ...attributes});
    return made;
  }

  function toolButtons(view, dialog) {
    const {rows} = view;
    const sort = toggleButton('Latest first', rows.byLateness, (isPressed) => {
      rows.sort(isPressed);
      view.relayout();
    }, rows.knowsLateness ? {title: 'The ranks that others waited for longest come first'} :
      {disabled: '', title: 'Not known: no collective of these profiles says who came last'});
    const measure = toggleButton('Measure', false, (isPressed) => view.isMeasuring = isPressed,
        {title: 'A drag measures a range of time; so does Shift+drag'});
    const png = element('a', {class: 'png', href: '#', download: 'timeline.png'}, 'Save as PNG');
    png.addEventListener('click', () => {
      view.draw();
      png.href = view.canvas.toDataURL('image/png');
    });
    return {sort, element: element('span', {class: 'buttons'}, sort, measure,
        button('Keys', () => dialog.showModal(), {title: '?'}), png)};
  }

  // The row that keys act on, or the event that they have selected, for those who do not see it.
  function cursorText({rows, cursor}) {
    const row = rows.list[cursor];
    if (!row) return '';
    return `${rows.nameOf(row)}${row.type === 'lane' ? '' : row.isOpen ? ', open' : ', closed'}`;
  }

  // The whole width of the window, and room for what sticks to its top.
  function followWindow(view, section, minimap) {
    const fit = () => {
      section.style.setProperty('--wide', `${document.documentElement.clientWidth}px`);
      section.style.setProperty('--nav', `${document.querySelector('nav')?.offsetHeight ?? 0}px`);
      view.resize();
      minimap.repaint();
    };
    fit();
    new ResizeObserver(fit).observe(document.documentElement);
    addEventListener('resize', fit);
  }

  // What other parts of the page call to show their evidence.
  function showInTimeline(view, section, chooseStep, {step, startMs, endMs, ranks = [], name}) {
    const at = view.steps.findIndex((one) => one.step === step);
    if (step !== undefined && at >= 0) chooseStep(at);
    const shown = view.step && step !== undefined ? view.step : {};
    const from = (startMs ?? shown.start_ms) * 1e3;
    const to = (endMs ?? shown.end_ms) * 1e3;
    if (from < to) view.showWithMargin(from, to, 0.05);
    view.rows.open(ranks, true);
    view.relayout();
    const {model} = view;
    const [left, right] = view.range();
    const found = name === undefined ? -1 : model.within(from < to ? from : left, from < to ? to : right)
        .filter((event) => model.nameOf(event) === name &&
            (!ranks.length || ranks.includes(model.laneOf(event).rank)))
        .sort((a, b) => model.start[a] - model.start[b])[0] ?? -1;
    const row = view.rows.list.find((one) => one.type === 'rank' && ranks.includes(one.ranks[0].rank));
    if (row) view.scrollTo({top: row.top, high: Math.min(view.height, row.high + 120)});
    if (found >= 0) view.scrollTo(view.rows.placeOf(found));
    view.select(found);
    section.scrollIntoView();
    view.canvas.focus({preventScroll: true});
  }

  // The parts of the section that data does not change.
  function layOut(section) {
    const canvas = element('canvas', {class: 'events', role: 'application', tabindex: '0',
      'aria-label': 'Timeline of all ranks. Arrow keys choose a rank, Enter opens it, ? lists all keys.',
      'aria-describedby': 'timeline-summary'});
    const parts = {canvas, controls: element('div', {class: 'controls'}),
      frame: element('div', {class: 'lanes'}, element('div', {}, canvas)),
      tip: element('div', {class: 'tip', hidden: '', role: 'tooltip'}),
      legend: element('ul', {class: 'legend', 'aria-label': 'Kinds'}),
      summary: element('p', {class: 'hidden', id: 'timeline-summary'}),
      said: element('output', {class: 'hidden', 'aria-live': 'polite'}),
      longest: element('details', {}, element('summary', {}, 'The longest events as a table')),
      workspace: element('div', {class: 'workspace'})};
    section.append(parts.workspace, parts.tip, parts.summary, parts.said,
        element('p', {class: 'soft'}, 'A rank’s row shows what its device does, or its host where ' +
            'it has none; computation hides what goes on behind it. Click a rank to see its lanes. ' +
            'More than 32 ranks share rows that show how many of them do what. ',
        element('kbd', {}, '?'), ' lists the keys.'), parts.longest);
    return parts;
  }

  // Builds the timeline into the section. chosen is the position in steps to show first.
  report.timeline = (section, data, chosen) => {
    const {timeline, steps, blame, evidence, combine} = data;
    const parts = layOut(section);
    const lateness = new Map(combine.ranks.map((rank) => [rank.rank, rank.caused_wait_ms]));
    const model = report.timelineModel(timeline, steps, lateness);
    const view = new report.TimelineView(model, steps, parts.canvas, parts.frame);
    const minimap = new report.TimelineMinimap(view);
    const details = report.timelineDetails(view, {blame, evidence, truncated: timeline.truncated});
    const search = searchBox(view);
    const keys = keysOf(view);
    const dialog = keysDialog(keys);
    const tools = toolButtons(view, dialog);
    const choose = (at) => {
      view.showStep(steps[at]);
      const {start_ms, end_ms} = view.step ?? {start_ms: -Infinity, end_ms: Infinity};
      const positions = model.within(start_ms * 1e3, end_ms * 1e3);
      parts.summary.textContent = summaryText(view, positions);
      parts.longest.replaceChildren(parts.longest.firstChild, longestTable(view, positions));
    };
    const chooser = stepChooser(steps, chosen, choose);
    const chooseStep = (at) => {
      chooser.querySelector('select').value = at === undefined ? '' : String(at);
      choose(at);
    };
    parts.controls.append(chooser, search.element, tools.element);
    parts.workspace.append(element('div', {class: 'sticky'}, parts.controls, minimap.canvas),
        parts.frame, details.panel, parts.legend, dialog);
    followWindow(view, section, minimap);
    choose(chosen);
    paintLegend(view, parts.legend);
    followPointers(view, parts.canvas, parts.tip);
    followKeys(view, keys, dialog, search, () => parts.said.textContent = cursorText(view));
    parts.frame.addEventListener('scroll', () => view.request());
    const changed = report.timelineLink(view, chooseStep);
    view.onChange = () => {
      minimap.draw();
      details.update();
      tools.sort.ariaPressed = String(view.rows.byLateness);
      changed();
    };
    view.onChange();
    view.repaint = () => { view.recolour(); minimap.repaint(); paintLegend(view, parts.legend); };
    report.showInTimeline = (what) => showInTimeline(view, section, chooseStep, what);
    return view;
  };
})();
