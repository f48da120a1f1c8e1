// SPDX-License-Identifier: Apache-2.0
// The panel below the timeline: what is known about the event that is selected, of a collective who
// came last and why, and what the time of a measured range went to.
'use strict';

(() => {
  const {element, button, stepName} = report.dom;
  const {format} = report;
  const kMostLinks = 16;  // So many members of a collective get a link.

  const fact = (name, ...value) => element('div', {}, element('dt', {}, name),
      element('dd', {}, ...value));

  // A time, from the start of its step where it lies in one.
  function timeText(view, time) {
    const step = view.stepAt(time);
    return step ? `${format.microseconds(time - step.start_ms * 1e3)} in ${stepName(step.step)}` :
        `${format.microseconds(time)} in the run`;
  }

  const rankOf = (view, position) => view.model.laneOf(position)?.rank;

  function link(view, position) {
    return button(`rank ${rankOf(view, position)}`, () => {
      view.reveal(position);
      view.select(position);
    }, {class: 'link'});
  }

  // Why it is not known which of the arrivals was the last; '' if it is known.
  function doubtOf({model}, arrivals, {unknown_clocks, clock_uncertainty_ms: within}) {
    const [before, last] = arrivals.slice(-2);
    const unknown = arrivals.map(({rank}) => rank).filter((rank) => unknown_clocks.includes(rank));
    if (!last || model.waitOf[last.member] >= 0) return 'not known: not all members are drawn';
    if (unknown.length) {
      return `not known: nothing ties the clock of rank ${format.ranges(unknown)} to the others`;
    }
    return last.time - before.time > (within ?? 0) * 1e3 ? '' :
        `not known: rank ${before.rank} and rank ${last.rank} came ${
          format.microseconds(last.time - before.time)} apart, and the clocks agree within ${
          format.milliseconds(within)}`;
  }

  // Why a rank was late in the step of a time, as the findings say.
  function reasonOf(view, {rank, time}, {blame}) {
    const step = view.stepAt(time)?.step;
    return blame.filter((part) => part.rank === rank && part.step === step && part.reason)
        .sort((a, b) => b.caused_ms - a.caused_ms)[0]?.reason ??
        `not known: the analysis names no cause for rank ${rank}, ${stepName(step)}`;
  }

  function waitingFacts(view, position, facts) {
    const {model} = view;
    const arrivals = model.membersOf(position).map((member) => ({member, rank: rankOf(view, member),
      time: model.start[model.arrivalOf(member)]})).sort((a, b) => a.time - b.time);
    const doubt = doubtOf(view, arrivals, facts.evidence);
    const wait = model.waitOf[position];
    const waited = wait >= 0 ? format.microseconds(model.duration[wait]) : 'not at all';
    if (doubt) return [fact('came last', doubt), fact('this rank waited', waited)];
    const last = arrivals.at(-1);
    const after = (at) => format.microseconds(last.time - arrivals.at(at).time);
    const isTrusted = facts.evidence.clock_uncertainty_ms !== undefined;
    return [
      fact('came last', link(view, last.member), ` ${after(-2)} after the one before it, ${
        after(0)} after the first (rank ${arrivals[0].rank})${
        isTrusted ? '' : '; how well the clocks agree is not known'}`),
      fact('why', reasonOf(view, last, facts)),
      wait >= 0 ? fact('this rank waited', `${waited} for `, link(view, last.member)) :
        fact('this rank waited', 'not at all: it came last')];
  }

  function collectiveFacts(view, position, facts) {
    const collective = view.model.collectives[view.model.collectiveOf[position]];
    if (!collective) return [];
    const members = view.model.membersOf(position);
    const more = members.length - kMostLinks;
    const {bytes, bus_gb_per_s: rate} = collective;
    return [...waitingFacts(view, position, facts),
      fact('bytes of one rank', bytes === undefined ?
          'not known: the profiles do not say how much it moves' : format.bytes(bytes)),
      fact('achieved bus bandwidth', format.rate(rate)),
      fact(`members${facts.truncated ? ' that are drawn' : ''}`,
          ...members.slice(0, kMostLinks).map((member) => link(view, member)),
          more > 0 ? ` and ${format.fixed(more, 0)} more` : '')];
  }

  function eventPart(view, position, facts) {
    const {model} = view;
    const name = model.nameOf(position);
    const lane = model.laneOf(position);
    const host = report.hosts.get(lane.rank);
    return element('div', {}, element('h3', {}, model.shortNameOf(position) || 'no name'),
        model.shortNameOf(position) === name ? '' : element('p', {class: 'full'}, name),
        element('dl', {}, fact('kind', model.kindOf(position) || 'no kind'),
            fact('rank', `${lane.rank}${host ? `, ${host}` : ''}, ${lane.name}`),
            fact('start', timeText(view, model.start[position])),
            fact('duration', format.microseconds(model.duration[position])),
            ...collectiveFacts(view, position, facts)));
  }

  function rangePart(view, facts) {
    const {model, measured: [from, to]} = view;
    const shares = model.sharesOf(model.ranks, from, to);
    const rest = 1 - shares.reduce((sum, one) => sum + one, 0);
    const nothing = facts.truncated ? 'nothing that is drawn' : 'nothing that the profiles show';
    const parts = [...model.stack.map((kind) => [model.kinds[kind], shares[kind]]), [nothing, rest]];
    return element('div', {},
        element('h3', {}, `${format.microseconds(to - from)} measured`),
        element('dl', {}, fact('from', timeText(view, from)), fact('to', timeText(view, to)),
            ...parts.filter(([, share]) => share >= 5e-4).map(([name, share]) => fact(name,
                `${format.microseconds(share * (to - from))}, ${format.percent(share)}`))),
        element('p', {class: 'soft'}, `In the mean of ${format.count(model.ranks.length, 'rank')}. ` +
            'Where a rank does several things at once, computation counts first.'));
  }

  // The panel; update shows what the view has selected and measured now.
  report.timelineDetails = (view, facts) => {
    const panel = element('aside', {class: 'details', hidden: '', 'aria-live': 'polite',
      'aria-label': 'What is selected'});
    let shown = '';
    const update = () => {
      const {selected, measured} = view;
      if (shown === `${selected} ${measured}`) return;
      shown = `${selected} ${measured}`;
      panel.hidden = selected < 0 && !measured;
      panel.replaceChildren(button('Close', () => { view.clear(); view.canvas.focus(); },
          {class: 'close', title: 'Escape'}),
      ...(selected >= 0 ? [eventPart(view, selected, facts)] : []),
      ...(measured ? [rangePart(view, facts)] : []));
    };
    return {panel, update};
  };
})();
