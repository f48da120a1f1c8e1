// SPDX-License-Identifier: Apache-2.0
// The timeline's section: the canvas with its controls, legend, pointer, keys and texts.
'use strict';

(() => {
  const {element, button, stepChooser} = report.dom;
  const {format, clamp} = report;
  const kScroll = 54;  // How many pixels an arrow key moves the lanes.
  const kLongest = 50;

  function tipRows(view, position) {
    const {model, steps} = view;
    const start = model.start[position];
    const step = steps.find((one) => start >= one.start_ms * 1e3 && start < one.end_ms * 1e3);
    const lane = model.lanes[model.lane[position]];
    const rows = [['kind', model.kindOf(position)], ['rank', `${lane.rank}, ${lane.name}`],
      step ? [`start in step ${step.step}`, format.microseconds(start - step.start_ms * 1e3)] :
        ['start in run', format.microseconds(start)],
      ['duration', format.microseconds(model.duration[position])]];
    if (model.collectiveOf[position] >= 0) {
      rows.push(['this rank waited',
        format.microseconds(model.duration[model.waitOf[position]] ?? 0)]);
    }
    return rows;
  }

  function showTip(view, tip, position, x, y) {
    tip.hidden = position < 0;
    if (position < 0) return;
    tip.replaceChildren(element('strong', {}, view.model.nameOf(position) || 'no name'),
        element('dl', {}, ...tipRows(view, position).flatMap(
            ([name, value]) => [element('dt', {}, name), element('dd', {}, value)])));
    tip.style.left = `${clamp(x + 14, 4, Math.max(4, window.innerWidth - tip.offsetWidth - 8))}px`;
    const below = y + 16 + tip.offsetHeight < window.innerHeight;
    tip.style.top = `${below ? y + 16 : Math.max(4, y - 12 - tip.offsetHeight)}px`;
  }

  // Drag pans, two pointers zoom around their middle, a pointer at rest points at events.
  function followPointers(view, canvas, tip) {
    const held = new Map();
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const point = (event) => {
      const position = view.eventAt(...place(event));
      view.hover(position);
      showTip(view, tip, position, event.clientX, event.clientY);
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, place(event));
      point(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      const before = held.get(event.pointerId);
      if (!before) return point(event);
      const now = place(event);
      held.set(event.pointerId, now);
      tip.hidden = true;
      const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const apart = (a) => Math.max(10, Math.abs(a[0] - other[0]));
        view.zoomAt((now[0] + other[0]) / 2, apart(now) / apart(before));
      } else {
        view.panBy(before[0] - now[0]);
        if (event.pointerType === 'mouse') view.frame.scrollTop += before[1] - now[1];
      }
    });
    for (const name of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    }
    canvas.addEventListener('pointerleave', () => { view.hover(-1); tip.hidden = true; });
    // Out of the whole run the wheel scrolls the page, so that nobody is held on the canvas.
    canvas.addEventListener('wheel', (event) => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!sideways && event.deltaY > 0 && view.isWhole() && !event.ctrlKey) return;
      event.preventDefault();
      tip.hidden = true;
      const speed = event.ctrlKey ? 0.01 : 0.002;  // A pinch on a touchpad is a wheel with Ctrl.
      if (sideways) view.panBy(event.deltaX || event.deltaY);
      else view.zoomAt(place(event)[0], Math.exp(-clamp(event.deltaY, -200, 200) * speed));
    }, {passive: false});
  }

  function followKeys(view, canvas, input, goTo) {
    const part = () => view.plotWidth() / 8;
    const actions = {
      '+': () => view.zoomMiddle(1.5), '=': () => view.zoomMiddle(1.5),
      '-': () => view.zoomMiddle(1 / 1.5),
      ArrowLeft: () => view.panBy(-part()), ArrowRight: () => view.panBy(part()),
      ArrowUp: () => view.frame.scrollTop -= kScroll,
      ArrowDown: () => view.frame.scrollTop += kScroll,
      Home: () => view.showStep(view.step),
    };
    canvas.addEventListener('keydown', (event) => {
      const action = actions[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
    document.addEventListener('keydown', (event) => {
      const typing = event.target.closest?.('input, select, textarea');
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === '/') input.focus();
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
      const lane = view.model.lanes[view.model.lane[view.matches[view.current]]];
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
        whole('rank', '', (at) => model.lanes[model.lane[at]].rank),
        text('lane', (at) => model.lanes[model.lane[at]].name),
        number('start', 'µs', (at) => model.start[at] - origin, {digits: 1}),
        number('duration', 'µs', (at) => model.duration[at], {digits: 1})]});
  }

  // What the picture shows, for those who do not see it.
  function summaryText(view, positions) {
    const {model} = view;
    const sums = model.kinds.map(() => 0);
    for (const position of positions) sums[model.kind[position]] += model.duration[position];
    const parts = model.kinds.map((kind, at) => `${kind} ${format.microseconds(sums[at])}`);
    const ranks = new Set(model.lanes.map((lane) => lane.rank)).size;
    const what = view.step ? `Step ${view.step.step}` : 'The run';
    return `${what} has ${format.count(positions.length, 'event')} on ${
      format.count(ranks, 'rank')}. ` +
        `Time over all ranks: ${parts.join(', ')}. The table below lists the longest events.`;
  }

  function keysHelp() {
    const keys = [['wheel', 'zoom'], ['drag', 'move'], ['+ -', 'zoom'], ['arrows', 'move'],
      ['Home', 'whole step'], ['/', 'search'], ['n p', 'next and previous match']];
    return element('p', {class: 'soft keys'}, ...keys.flatMap(([key, what], at) =>
      [at ? ', ' : '', element('kbd', {}, key), ` ${what}`]),
    '. The canvas takes keys when it has the focus.');
  }

  // Builds the timeline into the section. chosen is the position in steps to show first.
  report.timeline = (section, timeline, steps, chosen) => {
    const canvas = element('canvas', {class: 'events', role: 'img', tabindex: '0',
      'aria-label': 'Timeline of all ranks', 'aria-describedby': 'timeline-summary'});
    const spacer = element('div', {}, canvas);
    const frame = element('div', {class: 'lanes'}, spacer);
    const tip = element('div', {class: 'tip', hidden: '', role: 'tooltip'});
    const summary = element('p', {class: 'hidden', id: 'timeline-summary'});
    const legend = element('ul', {class: 'legend', 'aria-label': 'Kinds'});
    const longest = element('details', {}, element('summary', {}, 'The longest events as a table'));
    const controls = element('div', {class: 'controls'});
    section.append(controls, legend, frame, tip, summary, keysHelp(), longest);
    const model = report.timelineModel(timeline);
    const view = new report.TimelineView(model, steps, canvas, frame);
    spacer.style.height = `${view.tall}px`;
    view.resize();
    frame.style.height = `${view.height + 2}px`;
    const choose = (at) => {
      view.showStep(steps[at]);
      const {start_ms, end_ms} = view.step ?? {start_ms: -Infinity, end_ms: Infinity};
      const positions = model.within(start_ms * 1e3, end_ms * 1e3);
      summary.textContent = summaryText(view, positions);
      longest.replaceChildren(longest.firstChild, longestTable(view, positions));
    };
    const search = searchBox(view);
    controls.append(stepChooser(steps, chosen, choose), search.element);
    choose(chosen);
    paintLegend(view, legend);
    followPointers(view, canvas, tip);
    followKeys(view, canvas, search.input, search.goTo);
    frame.addEventListener('scroll', () => view.request());
    new ResizeObserver(() => view.resize()).observe(frame);
    view.repaint = () => { view.recolour(); paintLegend(view, legend); };
    return view;
  };
})();
