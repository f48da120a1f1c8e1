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
  const kMostLevels = 40;  // What is nested deeper shares the last level.
  const kTouch_us = 2e-3;  // Starts and durations are rounded to ns: what overlaps by less touches.
  const kBins = 8192;
  // What a rank does where several things go on at once: the first of these.
  const kFront = ['computation', 'copy', 'transfer', 'wait', 'host', 'gap'];

  function spansOf({start, end, event}) {
    const reach = new Float64Array(end);
    for (let k = 1; k < reach.length; ++k) reach[k] = Math.max(reach[k], reach[k - 1]);
    return {start: new Float64Array(start), end: new Float64Array(end),
      event: new Int32Array(event), reach};
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
      (levels[level] ??= []).push(event);
      model.level[event] = level;
    }
    return levels.map((members) => spansOf({start: members.map((event) => model.start[event]),
      end: members.map(model.end), event: members}));
  }

  // Parts of time that do not overlap; what begins first stays until it ends.
  function partsOf(model, events) {
    const parts = {start: [], end: [], event: []};
    let reached = -Infinity;
    for (const event of events) {
      if (model.end(event) <= reached) continue;
      pushPart(parts, Math.max(reached, model.start[event]), model.end(event), event);
      reached = model.end(event);
    }
    return parts;
  }

  function pushPart(parts, start, end, event) {
    parts.start.push(start);
    parts.end.push(end);
    parts.event.push(event);
  }

  // The parts in front, and of those behind what is left free.
  function overlay(front, behind) {
    const parts = {start: [], end: [], event: []};
    const pushFront = (at) => pushPart(parts, front.start[at], front.end[at], front.event[at]);
    let at = 0;
    behind.event.forEach((event, k) => {
      let from = behind.start[k];
      const to = behind.end[k];
      for (; at < front.event.length && front.end[at] <= from; ++at) pushFront(at);
      for (; at < front.event.length && front.start[at] < to; ++at) {
        if (front.start[at] > from) pushPart(parts, from, front.start[at], event);
        from = front.end[at];
        if (from > to) break;
        pushFront(at);
      }
      if (from < to) pushPart(parts, from, to, event);
    });
    for (; at < front.event.length; ++at) pushFront(at);
    return parts;
  }

  // The ranks by number with their lanes. A rank's spans are those of its devices, or of all its
  // lanes where it has none.
  function ranksOf(model, sorted, lateness) {
    const ranks = new Map();
    model.lanes.forEach(({rank}, lane) => {
      if (!ranks.has(rank)) ranks.set(rank, {rank, lanes: [], late_ms: lateness.get(rank)});
      ranks.get(rank).lanes.push(lane);
    });
    const roleOf = (event) => model.looks[model.kind[event]]?.role;
    const isHost = (lane) => sorted[lane].some((event) => roleOf(event) === 'host');
    for (const rank of ranks.values()) {
      const devices = rank.lanes.filter((lane) => !isHost(lane));
      rank.shown = devices.length ? devices : rank.lanes;
      const events = rank.shown.flatMap((lane) => sorted[lane])
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
        .filter((member) => model.lane[member] in model.lanes);
    // The event whose start is when a member's rank arrived.
    model.arrivalOf = (member) => model.waitOf[member] < 0 ? member : model.waitOf[member];
  }

  // The first and the last time of steps and events, in µs.
  function setLimits(model, steps) {
    let first = Infinity;
    let last = -Infinity;
    const reach = (start, end) => {
      first = Math.min(first, start);
      last = Math.max(last, end);
    };
    for (const step of steps) reach(step.start_ms * 1e3, step.end_ms * 1e3);
    for (let at = 0; at < model.count; ++at) reach(model.start[at], model.end(at));
    model.first = Number.isFinite(first) ? first : 0;
    model.last = Number.isFinite(last) ? Math.max(last, model.first + 1) : model.first + 1;
  }

  function addSums(model) {
    const size = model.kinds.length;
    // Calls visit(kind, from, to) with what the ranks do in a time range.
    const visit = (ranks, from, to, onSpan) => {
      for (const {spans} of ranks) {
        for (let k = firstReaching(spans, from); k < spans.event.length; ++k) {
          if (spans.start[k] >= to) break;
          onSpan(model.kind[spans.event[k]], Math.max(from, spans.start[k]),
              Math.min(to, spans.end[k]));
        }
      }
    };
    // The time of each kind in a time range, in the mean of the ranks.
    model.timeByKind = (ranks, from, to) => {
      const sums = new Float64Array(size);
      visit(ranks, from, to, (kind, start, end) => sums[kind] += (end - start) / ranks.length);
      return sums;
    };
    // The share of each kind in each of so many equal columns of a time range: [column * kinds + kind].
    const columns = (ranks, from, to, count) => {
      const sums = new Float64Array(count * size);
      const wide = (to - from) / count;
      const all = wide * ranks.length;
      visit(ranks, from, to, (kind, start, end) => {
        const last = Math.min(count - 1, Math.floor((end - from) / wide));
        for (let at = Math.floor((start - from) / wide); at <= last; ++at) {
          const left = from + at * wide;
          sums[at * size + kind] += (Math.min(end, left + wide) - Math.max(start, left)) / all;
        }
      });
      return sums;
    };
    // Columns that hold several of the bins that the run is parted into are made of their sums:
    // [bin * kinds + kind] is how many bins' time the kind takes before a bin.
    const sumsOf = new WeakMap();
    const sumsBefore = (ranks) => {
      if (!sumsOf.has(ranks)) {
        const sums = new Float64Array((kBins + 1) * size);
        columns(ranks, model.first, model.last, kBins)
            .forEach((share, at) => sums[at + size] = sums[at] + share);
        sumsOf.set(ranks, sums);
      }
      return sumsOf.get(ranks);
    };
    model.columns = (ranks, from, to, count) => {
      const bin = (model.last - model.first) / kBins;
      const wide = (to - from) / count / bin;
      if (!(wide > 2)) return columns(ranks, from, to, count);
      const sums = sumsBefore(ranks);
      const shares = new Float64Array(count * size);
      const edge = (at) => size * Math.round(
          Math.max(0, Math.min(kBins, (from - model.first) / bin + at * wide)));
      for (let at = 0; at < count; ++at) {
        const [left, right] = [edge(at), edge(at + 1)];
        for (let kind = 0; kind < size && left < right; ++kind) {
          shares[at * size + kind] = (sums[right + kind] - sums[left + kind]) * size / (right - left);
        }
      }
      return shares;
    };
  }

  // lateness: by rank, for how many ms others waited for it; absent where that is not known.
  report.timelineModel = ({lanes, names, kinds, events, path, collectives}, steps, lateness) => {
    const count = Math.min(...Object.values(events).map((column) => column.length));
    const model = {count, names, kinds, looks: report.charts.looksOf(kinds), firstReaching,
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
    model.lanes = lanes;
    const levels = [];  // By lane, of those that were shown.
    model.levelsOf = (lane) => levels[lane] ??= levelsOf(model, sorted[lane]);
    model.ranks = ranksOf(model, sorted, lateness);
    // The kinds from the foot of a column of shares to its top.
    model.stack = kFront.flatMap((role) => [...kinds.keys()].filter(
        (kind) => model.looks[kind].role === role));
    const inTime = [...path.lane.keys()].sort((a, b) => path.start_us[a] - path.start_us[b]);
    model.path = {lane: inTime.map((at) => path.lane[at]), ...spansOf({
      start: inTime.map((at) => path.start_us[at]), end: inTime.map((at) => path.end_us[at]),
      event: inTime})};
    model.nameOf = (position) => names[model.name[position]] ?? '';
    const short = [];
    model.shortNameOf = (position) => short[model.name[position]] ??=
        report.format.shortName?.(model.nameOf(position)) || model.nameOf(position);
    model.kindOf = (position) => kinds[model.kind[position]] ?? '';
    model.laneOf = (position) => model.lanes[model.lane[position]];
    setLimits(model, steps);
    addCollectives(model, collectives);
    addSums(model);

    // The positions of events that overlap a time range, of all lanes, those of a lane by start.
    model.within = (from, to) => sorted.flatMap((lane) => lane.filter(
        (event) => model.start[event] < to && model.end(event) > from));
    return model;
  };
})();
