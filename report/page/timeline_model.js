// SPDX-License-Identifier: Apache-2.0
// The timeline's events in columns, with what a view needs to find those of a time range fast.
//
// Spans are parts of time by start, each with the event it belongs to. reach[k] is the latest end of
// the first k + 1 spans: it never falls, so binary search finds the first that reaches into a range.
// A lane has spans by level: an event that begins within another lies one level below it. A rank has
// spans without overlaps, which say what it does at a time:
//
//   stream 7    [ computation ]     [ computation ]
//   stream 24          [ transfer         ]
//   the rank    [ computation ][tran][ computation ]
'use strict';

(() => {
  report.clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  const kMostLevels = 40;  // What is nested deeper shares the last level.
  const kTouch_us = 2e-3;  // Starts and durations are rounded to ns: what overlaps by less touches.
  // What a rank does where several things go on at once: the first of these.
  const kFront = ['computation', 'copy', 'transfer', 'wait', 'host', 'gap'];

  // Of a list of [start, end, event].
  function spansOf(parts) {
    const spans = {start: new Float64Array(parts.length), end: new Float64Array(parts.length),
      reach: new Float64Array(parts.length), event: new Int32Array(parts.length)};
    let latest = -Infinity;
    parts.forEach(([start, end, event], k) => {
      spans.start[k] = start;
      spans.end[k] = end;
      spans.event[k] = event;
      spans.reach[k] = latest = Math.max(latest, end);
    });
    return spans;
  }

  // The first k whose spans may end after the time.
  function firstReaching(spans, time) {
    let low = 0;
    let high = spans.reach.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans.reach[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  // The spans of events that are sorted by start, by level.
  function levelsOf(model, events) {
    const open = [];
    const levels = [];
    for (const event of events) {
      while (open.length && open.at(-1) <= model.start[event] + kTouch_us) open.pop();
      const level = Math.min(open.length, kMostLevels - 1);
      open.push(model.end(event));
      (levels[level] ??= []).push([model.start[event], model.end(event), event]);
      model.level[event] = level;
    }
    return levels.map(spansOf);
  }

  // Parts of time that do not overlap; what begins first stays until it ends.
  function partsOf(model, events) {
    const parts = [];
    let reached = -Infinity;
    for (const event of events) {
      if (model.end(event) <= reached) continue;
      parts.push([Math.max(reached, model.start[event]), model.end(event), event]);
      reached = model.end(event);
    }
    return parts;
  }

  // The parts in front, and of those behind what is left free.
  function overlay(front, behind) {
    const parts = [];
    let at = 0;
    for (let [from, to, event] of behind) {
      while (front[at]?.[1] <= from) parts.push(front[at++]);
      while (front[at]?.[0] < to) {
        if (front[at][0] > from) parts.push([from, front[at][0], event]);
        from = front[at][1];
        if (from > to) break;
        parts.push(front[at++]);
      }
      if (from < to) parts.push([from, to, event]);
    }
    return parts.concat(front.slice(at));
  }

  // The ranks by number with their lanes. A rank's spans are those of its devices, or of all its
  // lanes where it has none.
  function ranksOf(model, sorted, lateness, named) {
    const ranks = new Map();
    model.lanes.forEach(({rank}, lane) => {
      if (!ranks.has(rank)) ranks.set(rank, {rank, lanes: [], late: lateness.get(rank), isNamed: named.includes(rank)});
      ranks.get(rank).lanes.push(lane);
    });
    const roleOf = (event) => model.looks[model.kind[event]]?.role;
    const isHost = (lane) => sorted[lane].some((event) => roleOf(event) === 'host');
    for (const rank of ranks.values()) {
      const devices = rank.lanes.filter((lane) => !isHost(lane));
      const events = (devices.length ? devices : rank.lanes).flatMap((lane) => sorted[lane])
          .sort((a, b) => model.start[a] - model.start[b] || model.end(b) - model.end(a));
      rank.spans = spansOf(kFront.map((role) => partsOf(model, events.filter(
          (event) => roleOf(event) === role))).reduce(overlay));
      for (const event of rank.spans.event) model.inFront[event] = 1;
    }
    return [...ranks.values()].sort((a, b) => a.rank - b.rank);
  }

  // By event: the collective that it, or the waiting that it shows, belongs to, and the event that
  // shows how long the rank waited in it; -1 for none. What is no position is not written.
  function addCollectives(model, collectives) {
    model.collectives = collectives;
    model.collectiveOf = new Int32Array(model.count).fill(-1);
    model.waitOf = new Int32Array(model.count).fill(-1);
    collectives.forEach(({events: members, waits}, at) => members.forEach((member, k) => {
      const wait = waits[k] < model.count ? waits[k] : -1;
      for (const position of [member, wait]) {
        model.collectiveOf[position] = at;
        model.waitOf[position] = wait;
      }
    }));
    // The members of the event's collective that are drawn; none if it belongs to no collective.
    model.membersOf = (position) => (collectives[model.collectiveOf[position]]?.events ?? [])
        .filter(model.laneOf);
    // The event whose start is when a member's rank arrived.
    model.arrivalOf = (member) => model.waitOf[member] < 0 ? member : model.waitOf[member];
  }

  // The first and the last time of steps and events, in µs.
  function setLimits(model, steps) {
    let [first, last] = [Infinity, -Infinity];
    const reach = (start, end) => [first, last] = [Math.min(first, start), Math.max(last, end)];
    for (const step of steps) reach(step.start_ms * 1e3, step.end_ms * 1e3);
    for (let at = 0; at < model.count; ++at) reach(model.start[at], model.end(at));
    model.first = Number.isFinite(first) ? first : 0;
    model.last = Number.isFinite(last) ? Math.max(last, model.first + 1) : model.first + 1;
  }

  // The share of each kind in the ranks' time, in so many equal columns of a time range:
  // [column * kinds + kind].
  function sharesOf({kind: kinds, kinds: {length: size}}, ranks, from, to, count) {
    const shares = new Float64Array(count * size);
    const wide = (to - from) / count;
    for (const {spans: {start, end, event, reach}} of ranks) {
      for (let k = firstReaching({reach}, from); k < event.length && start[k] < to; ++k) {
        const last = Math.min(count - 1, Math.floor((end[k] - from) / wide));
        for (let at = Math.max(0, Math.floor((start[k] - from) / wide)); at <= last; ++at) {
          const left = from + at * wide;
          shares[at * size + kinds[event[k]]] += (Math.min(end[k], left + wide) -
              Math.max(start[k], left)) / (wide * ranks.length);
        }
      }
    }
    return shares;
  }

  // lateness: by rank, which share of the time others wait for it; absent where that is not known.
  // named: the ranks that the answer names.
  report.timelineModel = ({lanes, names, kinds, events, path, collectives}, steps, lateness, named) => {
    const count = Math.min(...Object.values(events).map((column) => column.length));
    const model = {count, names, kinds, lanes, looks: report.charts.looksOf(kinds), firstReaching,
      lane: Int32Array.from(events.lane), name: Int32Array.from(events.name),
      kind: Int32Array.from(events.kind), start: Float64Array.from(events.start_us),
      duration: Float64Array.from(events.duration_us, (value) => Math.max(0, value)),
      level: new Uint8Array(count), inFront: new Uint8Array(count)};
    model.end = (position) => model.start[position] + model.duration[position];
    const sorted = lanes.map(() => []);
    for (let event = 0; event < count; ++event) sorted[model.lane[event]]?.push(event);
    for (const lane of sorted) {
      lane.sort((a, b) => model.start[a] - model.start[b] || model.end(b) - model.end(a) || a - b);
    }
    const levels = [];  // By lane, of those that were asked for.
    model.levelsOf = (lane) => levels[lane] ??= levelsOf(model, sorted[lane]);
    model.ranks = ranksOf(model, sorted, lateness, named);
    // The kinds from the foot of a column of shares to its top.
    model.stack = kFront.flatMap((role) => [...kinds.keys()].filter(
        (kind) => model.looks[kind].role === role));
    const onPath = [...path.lane.keys()].sort((a, b) => path.start_us[a] - path.start_us[b]);
    model.path = {...spansOf(onPath.map((at) => [path.start_us[at], path.end_us[at], at])),
      lane: onPath.map((at) => path.lane[at])};
    model.nameOf = (position) => names[model.name[position]] ?? '';
    const short = [];
    model.shortNameOf = (position) => short[model.name[position]] ??=
        report.format.shortName?.(model.nameOf(position)) || model.nameOf(position);
    model.kindOf = (position) => kinds[model.kind[position]] ?? '';
    model.laneOf = (position) => lanes[model.lane[position]];
    addCollectives(model, collectives);
    setLimits(model, steps);
    model.sharesOf = (ranks, from, to, columns = 1) => sharesOf(model, ranks, from, to, columns);
    // The positions of events that overlap a time range, of all lanes, those of a lane by start.
    model.within = (from, to) => sorted.flatMap((lane) => lane.filter(
        (event) => model.start[event] < to && model.end(event) > from));
    return model;
  };
})();
