// SPDX-License-Identifier: Apache-2.0
// The timeline's section: the canvas with its controls, legend and texts.
'use strict';

(() => {
  const {element, button, stepChooser} = report.dom;
  const {format, clamp} = report;
  const kLongest = 50;

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
  function paintLegend({model, fills, palette}, list) {
    const item = (name, paint) => {
      const canvas = element('canvas', {width: 22, height: 14, 'aria-hidden': 'true'});
      paint(canvas.getContext('2d'));
      return element('li', {}, canvas, name);
    };
    const kinds = model.kinds.map((kind, at) => item(kind, (context) => {
      context.fillStyle = fills[at];
      context.fillRect(0, 0, 22, 14);
      context.strokeStyle = palette.gap;
      if (model.looks[at].role === 'gap') context.strokeRect(0.5, 0.5, 21, 13);
    }));
    const line = (name, colour, dash) => item(name, (context) => {
      context.strokeStyle = colour;
      context.lineWidth = 2.5;
      context.setLineDash(dash);
      context.strokeRect(-9, -9, 40, 19);  // Only its foot is in sight.
    });
    list.replaceChildren(...kinds, line('critical path', palette.ink, []),
        line('one collective on all ranks', palette.accent, [5, 3]));
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
  function toggleButton(label, isPressed, onToggle, attributes) {
    const made = button(label, () => {
      made.ariaPressed = String(made.ariaPressed !== 'true');
      onToggle(made.ariaPressed === 'true');
    }, {'aria-pressed': String(isPressed), ...attributes});
    return made;
  }

  function sortButton(view) {
    const {rows} = view;
    return toggleButton('Latest first', rows.byLateness, (isPressed) => {
      rows.sort(isPressed);
      view.relayout();
    }, rows.knowsLateness ? {title: 'The ranks of the answer come first, then those that others wait for longest'} :
      {disabled: '', title: 'Not known: no collective of these profiles says who came last'});
  }

  function imageLink(view) {
    const link = element('a', {class: 'png', href: '#', download: 'timeline.png'}, 'Save as PNG');
    link.addEventListener('click', () => {
      view.draw();
      link.href = view.canvas.toDataURL('image/png');
    });
    return link;
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

  // What other parts of the page call to show their evidence: a step, or a part of it, with these
  // ranks open and the first event of that name selected. All may be absent.
  function showInTimeline(view, section, chooseStep, {step, startMs, endMs, ranks = [], name}) {
    const at = step === undefined ? -1 : view.steps.findIndex((one) => one.step === step);
    if (at >= 0) chooseStep(at);
    const from = (startMs ?? view.steps[at]?.start_ms) * 1e3;
    const to = (endMs ?? view.steps[at]?.end_ms) * 1e3;
    if (from < to) view.showWithMargin(from, to, 0.05);
    view.rows.open(ranks, true);
    view.relayout();
    const {model} = view;
    const found = name === undefined ? -1 : model.within(...(from < to ? [from, to] : view.range()))
        .filter((event) => model.nameOf(event) === name &&
            (!ranks.length || ranks.includes(model.laneOf(event).rank)))
        .sort((a, b) => model.start[a] - model.start[b])[0] ?? -1;
    const row = view.rows.list.find(({ranks: [{rank}]}) => ranks.includes(rank));
    if (found >= 0) view.reveal(found); else if (row) view.scrollTo(row);
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

  // By rank, which share of the time others wait for it by its own doing; where nobody recorded why
  // ranks come late, at all.
  function latenessOf({run, steps, path, blame, combine: {ranks}}) {
    const whole = run.step_mean_ms > 0 ? run.step_mean_ms * steps.length : run.wall_ms;
    if (!path.length) {
      return new Map(ranks.map((row) => [row.rank, row.caused_wait_ms / whole / Math.max(1, ranks.length - 1)]));
    }
    const late = new Map(ranks.map(({rank}) => [rank, 0]));
    for (const {rank, step, caused_ms: ms} of blame) {
      if (step !== undefined || !steps.length) late.set(rank, (late.get(rank) ?? 0) + ms / whole);
    }
    return late;
  }

  // Builds the timeline into the section. chosen is the position in steps to show first.
  report.timeline = (section, data, chosen) => {
    const {timeline, steps, blame, evidence, findings} = data;
    const parts = layOut(section);
    const model = report.timelineModel(timeline, steps, latenessOf(data), findings[0]?.ranks ?? []);
    const view = new report.TimelineView(model, steps, parts.canvas, parts.frame);
    const minimap = new report.TimelineMinimap(view);
    const details = report.timelineDetails(view, {blame, evidence, truncated: timeline.truncated});
    const search = searchBox(view);
    const dialog = report.timelineInput(view, parts.tip, search,
        () => parts.said.textContent = view.cursorText());
    const choose = (at) => {
      view.showStep(steps[at]);
      const {start_ms, end_ms} = view.step ?? {start_ms: -Infinity, end_ms: Infinity};
      const positions = model.within(start_ms * 1e3, end_ms * 1e3);
      parts.summary.textContent = summaryText(view, positions);
      parts.longest.replaceChildren(parts.longest.firstChild, longestTable(view, positions));
    };
    const chooser = stepChooser(steps, chosen, choose);
    const chooseStep = (at) => {
      chooser.querySelector('select').value = at ?? '';
      choose(at);
    };
    const sort = sortButton(view);
    parts.controls.append(chooser, search.element, element('span', {class: 'buttons'}, sort,
        toggleButton('Measure', false, (isPressed) => view.isMeasuring = isPressed,
            {title: 'A drag measures a range of time; so does Shift+drag'}),
        button('Keys', () => dialog.showModal(), {title: '?'}), imageLink(view)));
    parts.workspace.append(element('div', {class: 'sticky'}, parts.controls, minimap.canvas),
        parts.frame, details.panel, parts.legend, dialog);
    followWindow(view, section, minimap);
    choose(chosen);
    paintLegend(view, parts.legend);
    parts.frame.addEventListener('scroll', () => view.request());
    const changed = report.timelineLink(view, chooseStep);
    view.onChange = () => {
      minimap.draw();
      details.update();
      sort.ariaPressed = String(view.rows.byLateness);
      changed();
    };
    view.onChange();
    view.repaint = () => { view.recolour(); minimap.repaint(); paintLegend(view, parts.legend); };
    report.showInTimeline = (what) => showInTimeline(view, section, chooseStep, what);
    return view;
  };
})();
