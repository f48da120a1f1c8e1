// SPDX-License-Identifier: Apache-2.0
// The timeline's events in columns, with what a view needs to find those of a time range fast.
//
// A lane holds the positions of its events by start. reach[k] is the latest end of its first k + 1
// events: it never falls, so binary search finds the first event that reaches into a range even
// where events overlap or nest.
'use strict';

(() => {
  function sortedSpans(positions, start, end) {
    const items = Int32Array.from(positions).sort((a, b) => start(a) - start(b) || a - b);
    const reach = new Float64Array(items.length);
    let latest = -Infinity;
    items.forEach((position, k) => reach[k] = latest = Math.max(latest, end(position)));
    return {items, reach};
  }

  // The first k whose events may end after the time.
  function firstReaching(spans, time) {
    let low = 0;
    let high = spans.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans.reach[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  report.timelineModel = ({lanes, names, kinds, events, path, collectives}) => {
    const count = Math.min(...Object.values(events).map((column) => column.length));
    const model = {count, names, kinds, looks: report.charts.looksOf(kinds),
      lane: Int32Array.from(events.lane), name: Int32Array.from(events.name),
      kind: Int32Array.from(events.kind), start: Float64Array.from(events.start_us),
      duration: Float64Array.from(events.duration_us, (value) => Math.max(0, value))};
    const end = (position) => model.start[position] + model.duration[position];
    const positions = lanes.map(() => []);
    for (let position = 0; position < count; ++position) {
      positions[model.lane[position]]?.push(position);
    }
    model.end = end;
    model.lanes = lanes.map((lane, at) => ({...lane,
      ...sortedSpans(positions[at], (position) => model.start[position], end)}));
    model.path = {...path, ...sortedSpans(path.lane.keys(), (at) => path.start_us[at],
        (at) => path.end_us[at])};
    model.firstReaching = firstReaching;
    model.nameOf = (position) => names[model.name[position]] ?? '';
    model.kindOf = (position) => kinds[model.kind[position]] ?? '';

    // By event: the collective that it, or the waiting that it shows, belongs to, and the event
    // that shows how long the rank waited in it; -1 for none. What is no position is not written.
    model.collectiveOf = new Int32Array(count).fill(-1);
    model.waitOf = new Int32Array(count).fill(-1);
    collectives.forEach(({events: members, waits}, at) => members.forEach((member, k) => {
      const wait = waits[k] < count ? waits[k] : -1;
      for (const position of [member, wait]) {
        model.collectiveOf[position] = at;
        model.waitOf[position] = wait;
      }
    }));
    // The members of the event's collective that are drawn; none if it belongs to no collective.
    model.membersOf = (position) => (collectives[model.collectiveOf[position]]?.events ?? [])
        .filter((member) => model.lane[member] in lanes);
    // The event whose start is when a member's rank arrived.
    model.arrivalOf = (member) => model.waitOf[member] < 0 ? member : model.waitOf[member];

    // The positions of events that overlap a time range, of all lanes.
    model.within = (from, to) => {
      const found = [];
      for (const lane of model.lanes) {
        for (let k = firstReaching(lane, from); k < lane.items.length; ++k) {
          const position = lane.items[k];
          if (model.start[position] >= to) break;
          if (end(position) > from) found.push(position);
        }
      }
      return found;
    };
    return model;
  };
})();
