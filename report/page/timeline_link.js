// SPDX-License-Identifier: Apache-2.0
// What the timeline shows, in the address: #timeline&t=12.5-20&s=814&o=0-3,8. Times are ms in the
// run. An address comes from anywhere: what is not well formed, or not in this report, is ignored.
//
//   t  the time range    s  the event that is selected    m  the time range that is measured
//   o  the open ranks    b  the open blocks of ranks, by their first    by  number: not by lateness
//   step  the number of the step whose start the axis counts from; none: the run's
//
// Parts that are not the timeline's stay as they are: the section that was gone to, other settings.
'use strict';

(() => {
  const kOwn = ['t', 's', 'm', 'o', 'b', 'by', 'step'];
  const kRange = /^(-?\d{1,15}(?:\.\d{1,9})?)-(-?\d{1,15}(?:\.\d{1,9})?)$/;
  const kWait_ms = 250;  // Browsers bear few changes of the address a second.

  const parts = () => location.hash.slice(1).split('&').filter((part) => part);
  const nameOf = (part) => part.includes('=') ? part.slice(0, part.indexOf('=')) : '';

  function values() {
    const found = {};
    for (const part of parts()) {
      const name = nameOf(part);
      if (kOwn.includes(name)) found[name] = part.slice(name.length + 1);
    }
    return found;
  }

  function rangeOf(text) {
    const [, from, to] = kRange.exec(text) ?? [];
    return Number(from) < Number(to) ? [Number(from) * 1e3, Number(to) * 1e3] : undefined;
  }

  const rangeText = ([from, to]) => [from, to].map(
      (time) => Number((time / 1e3).toFixed(6))).join('-');

  // The ranks of "0-3,8" that the report has.
  function ranksOf(text, ranks) {
    const runs = (text ?? '').slice(0, 4000).split(',').map((run) => /^(\d+)(?:-(\d+))?$/.exec(run))
        .filter((run) => run).map(([, low, high]) => [Number(low), Number(high ?? low)]);
    return ranks.map(({rank}) => rank).filter(
        (rank) => runs.some(([low, high]) => rank >= low && rank <= high));
  }

  const ranksText = (ranks) => report.format.ranges(ranks).replaceAll(' ', '');

  // What the view shows, as parts of an address.
  function ownText(view) {
    const {rows} = view;
    const own = {t: rangeText(view.range()), step: view.step ? view.step.step : 'none'};
    if (view.selected >= 0) own.s = view.selected;
    if (view.measured) own.m = rangeText(view.measured);
    if (rows.openRanks.size) own.o = ranksText(rows.openRanks);
    if (rows.openBlocks.size) own.b = ranksText(rows.openBlocks);
    if (rows.knowsLateness && !rows.byLateness) own.by = 'number';
    return Object.entries(own).map(([name, value]) => `${name}=${value}`).join('&');
  }

  // Shows what the address says. chooseStep takes a position in the steps, undefined for none.
  function restore(view, chooseStep) {
    const {t, s, m, o, b, by, step} = values();
    const {rows, model} = view;
    const at = view.steps.findIndex((one) => String(one.step) === step);
    if (at >= 0 || step === 'none') chooseStep(at < 0 ? undefined : at);
    if (rows.knowsLateness) rows.sort(by !== 'number');
    rows.openRanks = new Set(ranksOf(o, model.ranks));
    const blocks = rows.units.filter((unit) => unit.length > 1).map((unit) => unit[0]);
    rows.openBlocks = new Set(ranksOf(b, blocks));
    rows.arrange();
    view.relayout();
    view.measure(rangeOf(m));
    const position = /^\d{1,9}$/.test(s) && model.laneOf(Number(s)) ? Number(s) : -1;
    if (position >= 0) view.reveal(position);
    view.select(position);
    if (rangeOf(t)) view.show(...rangeOf(t));
  }

  // Restores what the address says now, and later where the reader enters another; returns the
  // function to call when what is shown has changed. An address that says nothing stays as it is
  // until then.
  report.timelineLink = (view, chooseStep) => {
    const atFirst = ownText(view);
    let written;
    let timer;
    const write = () => {
      const own = ownText(view);
      const others = parts().filter((part) => !kOwn.includes(nameOf(part)));
      const text = [...others, ...(own === atFirst ? [] : [own])].join('&');
      written = text && `#${text}`;
      if (written === location.hash) return;
      // A page inside of another may not have an address of its own.
      try { history.replaceState(history.state, '', written); } catch { clearTimeout(timer); }
    };
    const changed = () => {
      clearTimeout(timer);
      timer = setTimeout(write, kWait_ms);
    };
    const enter = () => {
      if (location.hash === written) return;
      if (Object.keys(values()).length) restore(view, chooseStep);
      const id = parts().find((part) => !part.includes('='));
      if (!id || !location.hash.includes('&')) return;
      requestAnimationFrame(
          () => (report.openSection?.(id) ?? document.getElementById(id))?.scrollIntoView());
    };
    enter();
    addEventListener('hashchange', () => { enter(); changed(); });
    return changed;
  };
})();
