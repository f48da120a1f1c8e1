// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline. Every rank has a row; one that is open has its lanes below it. Of more
// ranks than a reader can look through, blocks share a row, which opens to the rows of its ranks.
'use strict';

(() => {
  const kMostRanks = 32;  // More ranks than this are shown in blocks.
  const kBlocks = 16;  // At most so many.
  const kLatest = 8;  // How many of the latest ranks stay out of the blocks.
  const kHeights = {block: 34, rank: 22, level: 16};
  const kGap = 2;

  const lateness = ({late, isNamed}) => (late ?? -1) + (isNamed ? 1e6 : 0);

  // Lists of ranks that share a row: of one rank, or blocks of equal size, a power of two.
  function unitsOf(ranks, byLateness) {
    const ordered = byLateness ?
        [...ranks].sort((a, b) => lateness(b) - lateness(a) || a.rank - b.rank) : ranks;
    if (ranks.length <= kMostRanks) return ordered.map((rank) => [rank]);
    const alone = byLateness ? ordered.slice(0, kLatest) : [];
    const rest = ordered.slice(alone.length).sort((a, b) => a.rank - b.rank);
    const size = 2 ** Math.ceil(Math.log2(rest.length / kBlocks));
    const units = alone.map((rank) => [rank]);
    for (let at = 0; at < rest.length; at += size) units.push(rest.slice(at, at + size));
    return units;
  }

  // Which ranks and blocks are open, and the rows that follow from it. A block is known by its
  // first rank.
  class Rows {
    constructor(model) {
      this.model = model;
      this.knowsLateness = model.ranks.some((rank) => rank.late > 0 || rank.isNamed);
      this.openRanks = new Set();
      this.openBlocks = new Set();
      this.sort(this.knowsLateness);
    }

    sort(byLateness) {
      this.byLateness = byLateness;
      this.units = unitsOf(this.model.ranks, byLateness);
      this.openBlocks.clear();
      this.arrange();
    }

    // Lays out the rows, from the top down, and notes in which row the events of a lane are drawn.
    arrange() {
      this.list = [];
      this.ofLane = new Int32Array(this.model.lanes.length);
      this.tall = 4;
      for (const unit of this.units) {
        if (unit.length === 1) {
          this.addRank(unit[0]);
          continue;
        }
        const isOpen = this.openBlocks.has(unit[0].rank);
        this.add({type: 'block', ranks: unit, isOpen, high: kHeights.block},
            unit.flatMap((rank) => rank.lanes));
        if (isOpen) unit.forEach((rank) => this.addRank(rank, 10));
      }
    }

    // indent: how many pixels further right its name begins.
    addRank(rank, indent = 0) {
      const isOpen = this.openRanks.has(rank.rank);
      this.add({type: 'rank', ranks: [rank], isOpen, indent, high: kHeights.rank}, rank.lanes);
      if (!isOpen) return;
      for (const lane of rank.lanes) {
        const levels = Math.max(1, this.model.levelsOf(lane).length);
        this.add({type: 'lane', ranks: [rank], lane, high: levels * kHeights.level}, [lane]);
      }
    }

    add(row, lanes) {
      if (this.list.length && row.type !== 'lane') this.tall += kGap;
      for (const lane of lanes) this.ofLane[lane] = this.list.length;
      this.list.push({...row, top: this.tall});
      this.tall += row.high;
    }

    toggle({type, ranks}) {
      if (type === 'lane') return;
      const open = type === 'block' ? this.openBlocks : this.openRanks;
      if (!open.delete(ranks[0].rank)) open.add(ranks[0].rank);
      this.arrange();
    }

    // Opens the blocks of ranks, so that each has a row, and (lanes) the ranks themselves.
    open(numbers, lanes) {
      const wanted = new Set(numbers);
      for (const unit of this.units) {
        for (const {rank} of unit.filter((one) => wanted.has(one.rank))) {
          if (unit.length > 1) this.openBlocks.add(unit[0].rank);
          if (lanes) this.openRanks.add(rank);
        }
      }
      this.arrange();
    }

    // Where an event is drawn: the top and height of its row, or of its level in the lane.
    placeOf(position) {
      const row = this.list[this.ofLane[this.model.lane[position]]];
      if (row?.type !== 'lane') return row ?? {top: 0, high: 0};
      return {top: row.top + this.model.level[position] * kHeights.level, high: kHeights.level};
    }

    // The spans that a row draws, each with its place below the row's top.
    spansOf({type, ranks, lane, high}) {
      if (type === 'rank') return [{spans: ranks[0].spans, top: 0, high}];
      return type === 'block' ? [] : this.model.levelsOf(lane).map(
          (spans, level) => ({spans, top: level * kHeights.level, high: kHeights.level}));
    }

    nameOf({type, ranks, lane}) {
      if (type === 'lane') return this.model.lanes[lane].name;
      if (type === 'rank') return `rank ${ranks[0].rank}`;
      const [low, high] = [ranks[0].rank, ranks.at(-1).rank];
      return high - low + 1 === ranks.length ? `ranks ${low}-${high}` :
          `${ranks.length} ranks of ${low}-${high}`;
    }
  }

  report.TimelineRows = Rows;
})();
