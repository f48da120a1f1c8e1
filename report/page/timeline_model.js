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

  // The collective of each event, or -1. A wait right before a member that has its name belongs to
  // the same collective.
  function collectiveOfEvents(model, collectives) {
    const of = new Int32Array(model.count).fill(-1);
    collectives.members.forEach((members, at) => {
      for (const position of members) if (position >= 0 && position < model.count) of[position] = at;
    });
    for (const {items} of model.lanes) {
      for (let k = 1; k < items.length; ++k) {
        const [before, after] = [items[k - 1], items[k]];
        if (of[before] < 0 && of[after] >= 0 && model.name[before] === model.name[after] &&
            model.roleOf(before) === 'wait') {
          of[before] = of[after];
        }
      }
    }
    return of;
  }

  report.timelineModel = ({lanes, names, kinds, events, path, collectives}) => {
    const count = Math.min(...Object.values(events).map((column) => column.length));
    const model = {count, names, kinds, collectives, looks: report.charts.looksOf(kinds),
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
    model.roleOf = (position) => model.looks[model.kind[position]]?.role;
    model.collectiveOf = collectiveOfEvents(model, collectives);
    model.firstReaching = firstReaching;
    model.nameOf = (position) => names[model.name[position]] ?? '';
    model.kindOf = (position) => kinds[model.kind[position]] ?? '';

    // The members of the event's collective that are drawn; none if it belongs to no collective.
    model.membersOf = (position) => (collectives.members[model.collectiveOf[position]] ?? [])
        .filter((member) => model.lane[member] in lanes);
    model.arrivalOf = (position) => arrivalOf(model, position);

    // How long the event's rank waited in the collective for its last member, in µs.
    model.waitOf = (position) => {
      const members = model.membersOf(position);
      const own = members.find((member) => model.lane[member] === model.lane[position]) ?? position;
      const arrival = arrivalOf(model, own);
      if (arrival !== own) return model.duration[arrival];
      const last = members.reduce((latest, one) => Math.max(latest, model.start[one]), -Infinity);
      return Math.max(0, Math.min(model.duration[own], last - model.start[own]));
    };

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

  // The position of the wait drawn right before a member of a collective, or of the member itself:
  // its start is when the rank arrived.
  function arrivalOf(model, position) {
    const items = model.lanes[model.lane[position]]?.items ?? [];
    const before = items[items.indexOf(position) - 1];
    return before !== undefined && model.roleOf(before) === 'wait' &&
        model.collectiveOf[before] === model.collectiveOf[position] ? before : position;
  }
})();
