#include "trace_alignment/collectives/jump_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/clock_jumps.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns the first knot from that time on.
std::vector<OffsetKnot>::const_iterator FirstFrom(const std::vector<OffsetKnot>& knots,
                                                  int64_t time_ps) {
  return std::lower_bound(
      knots.begin(), knots.end(), time_ps,
      [](const OffsetKnot& knot, int64_t time_ps) { return knot.time_ps < time_ps; });
}

// Returns the offset at that time, between knots on the line.
int64_t OffsetAt(const std::vector<OffsetKnot>& knots, int64_t time_ps) {
  const auto after = FirstFrom(knots, time_ps);
  if (after == knots.end()) return knots.empty() ? 0 : knots.back().offset_ps;
  if (after == knots.begin() || after->time_ps == time_ps) return after->offset_ps;
  const OffsetKnot& before = *(after - 1);
  const double share = static_cast<double>(time_ps - before.time_ps) /
                       static_cast<double>(after->time_ps - before.time_ps);
  return before.offset_ps + static_cast<int64_t>(std::floor(
                                share * static_cast<double>(after->offset_ps - before.offset_ps)));
}

// Returns the knots with one at that time more.
std::vector<OffsetKnot> WithKnot(std::vector<OffsetKnot> knots, int64_t time_ps) {
  const auto after = FirstFrom(knots, time_ps);
  if (after != knots.end() && after->time_ps == time_ps) return knots;
  const OffsetKnot knot = {time_ps, OffsetAt(knots, time_ps)};
  knots.insert(after, knot);
  return knots;
}

// Puts the changes that were undone, in that order, back into the clocks.
void RedoJumps(std::vector<ClockJump> jumps, ClockAlignment* alignment) {
  for (size_t j = jumps.size(); j-- > 0;) {
    const ClockJump jump = jumps[j];
    NodeOffset& node = alignment->nodes[jump.node];
    if (!node.reachable) continue;
    for (const ClockJump::Knot& knot : jump.knots) {
      node.knots = WithKnot(std::move(node.knots), knot.undone_ps);
    }
    for (OffsetKnot& knot : node.knots) {
      const int64_t shown_ps = jump.Redo(knot.time_ps);
      knot = {shown_ps, knot.offset_ps + shown_ps - knot.time_ps};
    }
    const int64_t stated_at_ps = node.offset_at_ps + node.offset_ps;
    node.offset_ps += jump.Redo(stated_at_ps) - stated_at_ps;
    // Those that were undone after it count on a clock without it.
    for (size_t later = j + 1; later < jumps.size(); ++later) {
      if (jumps[later].node != jump.node) continue;
      for (ClockJump::Knot& knot : jumps[later].knots) {
        knot = {jump.Redo(knot.shown_ps), jump.Redo(knot.undone_ps)};
      }
      jumps[later].begin_ps = jump.Redo(jumps[later].begin_ps);
      jumps[later].end_ps = jump.Redo(jumps[later].end_ps);
    }
  }
  alignment->jumps = std::move(jumps);
}

// A run whose clocks are mended one by one: what was undone, and where clocks are loose since then.
struct Mended {
  CollectiveTable table;
  ProbeFreeOptions options;
  std::vector<ClockJump> jumps;
  std::vector<LooseStretch> loose;

  bool IsChanged(uint32_t node) const {
    return absl::c_any_of(jumps, [&](const ClockJump& jump) { return jump.node == node; });
  }

  // Takes the change, which happened in that stretch, out of its node's times.
  void Undo(ClockJump jump, const LooseStretch& stretch) {
    table.MapTimes([&](uint32_t node, int64_t time_ps) {
      return node == jump.node ? jump.Undo(time_ps) : time_ps;
    });
    if (!options.spans.empty()) {
      ProfileSpan& span = options.spans[jump.node];
      span = {jump.Undo(span.begin_ps), jump.Undo(span.end_ps)};
    }
    jump.begin_ps = stretch.from_ps;
    jump.end_ps = stretch.to_ps;
    loose.push_back(stretch);
    for (LooseStretch& known : loose) {
      if (known.clock != jump.node) continue;
      known = {known.clock, jump.Undo(known.from_ps), jump.Undo(known.to_ps)};
    }
    jumps.push_back(std::move(jump));
  }
};

// What is certain of by how much a clock was changed.
struct SizeBounds {
  int64_t least_ps = 0;
  int64_t most_ps = 0;
};

// Returns by how much the clock was set ahead in the stretch: what it is ahead after it, compared with
// before it, but for what it may have drifted in between.
SizeBounds ChangeIn(const LooseStretch& stretch, const Solved& solved, double max_drift_ppm) {
  const std::vector<int64_t>& lower_ps = solved.bounds.lower_ps[stretch.clock];
  const std::vector<int64_t>& upper_ps = solved.bounds.upper_ps[stretch.clock];
  const auto time_ps = [&](size_t point) {
    return solved.constraints.time_ps(stretch.clock, point);
  };
  size_t before = 0, after = lower_ps.size() - 1;
  while (before < after && time_ps(before + 1) <= stretch.from_ps) ++before;
  while (after > before && time_ps(after - 1) >= stretch.to_ps) --after;
  const int64_t drift_ps = DriftBound(max_drift_ppm).AllowancePs(time_ps(after) - time_ps(before));
  return {lower_ps[after] - upper_ps[before] - drift_ps,
          upper_ps[after] - lower_ps[before] + drift_ps};
}

// Finds what is certain where clocks may have changed in those stretches; false for contradictions.
bool FindBounds(const std::vector<LooseStretch>& loose, Solved* solved) {
  solved->constraints.Loosen(loose);
  solved->bounds = OffsetBounds();
  return !solved->constraints.FindBounds(&solved->bounds).has_value();
}

// One change of one clock that would be why the collectives contradict each other.
struct Explanation {
  // Where the clock is loose: one that was set is so from the first gap between two of its times in which
  // that may have been to the last, one that ran at another rate everywhere.
  LooseStretch stretch;
  SizeBounds size;
  // A clock that was set is undone by this; of one that ran at another rate it says when and by how much.
  ClockJump jump;
  // Whether clocks can be mapped by it.
  bool is_mappable = false;
  // Whether the clock may in fact have been set back over times that it had shown, which no map mends.
  bool may_repeat = false;

  bool IsStep() const { return stretch.change == ClockChange::kSet; }
};

// Finds what changes of one clock would explain.
class ExplanationFinder {
 public:
  // The constraints are those of the table of `mended`; they are loosened, and bounds are found.
  ExplanationFinder(const Mended& mended, uint32_t node, Solved* solved)
      : mended_(mended), node_(node), solved_(*solved) {
    for (size_t p = 0; p < solved_.constraints.point_count(node); ++p) {
      const int64_t time_ps = solved_.constraints.time_ps(node, p);
      if (times_ps_.empty() || times_ps_.back() != time_ps) times_ps_.push_back(time_ps);
    }
  }

  // Returns what it was if the clock changed like that, and but once; nothing when that cannot be. A
  // clock that was set somewhere in a stretch so long that too little is known then was so in one of its
  // parts.
  std::vector<Explanation> Find(ClockChange change) {
    if (times_ps_.size() < 2) return {};
    const size_t last = times_ps_.size() - 1;
    if (!Explains({change, 0, last})) return {};
    const auto [least_end, most_begin] = FindBracket(change);
    if (change != ClockChange::kSet) {
      Explanation slew = Slew(change, least_end - 1, most_begin + 1);
      slew.may_repeat = change == ClockChange::kSlowed && MayRepeat(-slew.size.least_ps);
      return {slew};
    }
    const size_t first_gap = least_end - 1, gaps_end = most_begin + 1;
    if (first_gap >= gaps_end) return {};
    constexpr size_t kMostParts = 24;
    std::vector<Explanation> found;
    AddStep(first_gap, gaps_end, kMostParts, &found);
    if (found.empty() || (found[0].is_mappable &&
                          absl::c_all_of(solved_.bounds.reachable, [](bool is) { return is; }))) {
      return found;
    }
    found.clear();
    const size_t gaps = gaps_end - first_gap, parts = std::min(gaps, kMostParts);
    for (size_t part = 0; part < parts; ++part) {
      AddStep(first_gap + gaps * part / parts, first_gap + gaps * (part + 1) / parts,
              kMostParts / parts, &found);
    }
    return found;
  }

 private:
  // Positions among the clock's times, between which it may have changed.
  struct Cut {
    ClockChange change;
    size_t from;
    size_t to;
  };

  // Returns the first from `least` to `most` that suffices, where `most` and all after the first do.
  template <typename Suffices>
  static size_t FirstOf(size_t least, size_t most, Suffices suffices) {
    while (least < most) {
      const size_t middle = (least + most) / 2;
      if (suffices(middle)) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return least;
  }

  // Where a change must have ended at the earliest, and begun at the latest. Whatever is loose from one
  // time to another explains more than what is loose in less.
  std::pair<size_t, size_t> FindBracket(ClockChange change) {
    const size_t last = times_ps_.size() - 1;
    const size_t least_end = FirstOf(1, last, [&](size_t end) {
      return Explains({change, 0, end});
    });
    const size_t least_rest = FirstOf(1, last, [&](size_t rest) {
      return Explains({change, last - rest, last});
    });
    return {least_end, last - least_rest};
  }

  // Whether it may as well have been set back: what it showed twice takes as long as it lost.
  bool MayRepeat(int64_t lost_ps) {
    const auto [least_end, most_begin] = FindBracket(ClockChange::kSetBack);
    return times_ps_[least_end - 1] - times_ps_[most_begin + 1] <= lost_ps;
  }

  LooseStretch StretchOf(const Cut& cut) const {
    return {node_, times_ps_[cut.from], times_ps_[cut.to], cut.change};
  }

  // Whether nothing contradicts itself any more if the clock may have changed there.
  bool Explains(const Cut& cut) {
    std::vector<LooseStretch> loose = mended_.loose;
    loose.push_back(StretchOf(cut));
    return FindBounds(loose, &solved_);
  }

  // Adds that the clock was set in one of these gaps, if that can be, and leaves bounds as they are then.
  // Of `most_gaps` it is known whether it may have been that one.
  void AddStep(size_t first_gap, size_t gaps_end, size_t most_gaps,
               std::vector<Explanation>* found) {
    const std::optional<size_t> gap = ChooseGap(first_gap, gaps_end, most_gaps);
    const Cut cut = {ClockChange::kSet, first_gap, gaps_end};
    if (!Explains(cut)) return;
    Explanation& step = found->emplace_back(ExplanationOf(cut, first_gap, gaps_end));
    if (!gap.has_value()) step.is_mappable = false;
    if (step.is_mappable) SetStep(times_ps_[*gap], times_ps_[*gap + 1], &step);
  }

  // A clock that was slewed was so after the one time and before the other.
  Explanation Slew(ClockChange change, size_t after, size_t before) {
    const Cut cut = {change, 0, times_ps_.size() - 1};
    MERIDIAN_CHECK(Explains(cut));
    Explanation slew = ExplanationOf(cut, std::min(after, before), std::max(after, before));
    const int64_t by_ps = FloorMean(slew.size.least_ps, slew.size.most_ps);
    slew.jump.knots = {{slew.jump.begin_ps, slew.jump.begin_ps},
                       {slew.jump.end_ps, slew.jump.end_ps - by_ps}};
    return slew;
  }

  // Of bounds that were found with that cut.
  Explanation ExplanationOf(const Cut& cut, size_t begin, size_t end) const {
    Explanation found;
    found.stretch = StretchOf(cut);
    found.jump.node = node_;
    found.jump.begin_ps = times_ps_[begin];
    found.jump.end_ps = times_ps_[end];
    if (!solved_.bounds.reachable[node_]) return found;
    found.size = ChangeIn(found.stretch, solved_, mended_.options.max_drift_ppm);
    found.is_mappable = AreBeforeAndAfter(times_ps_[begin], times_ps_[end]);
    return found;
  }

  // Of these gaps chooses one in which it suffices that the clock was set: the widest among some, since
  // a clock that is set forward skips time. None when none of them does.
  std::optional<size_t> ChooseGap(size_t first_gap, size_t gaps_end, size_t most_gaps) {
    std::vector<size_t> gaps(gaps_end - first_gap);
    std::iota(gaps.begin(), gaps.end(), first_gap);
    const auto width_ps = [&](size_t gap) { return times_ps_[gap + 1] - times_ps_[gap]; };
    std::stable_sort(gaps.begin(), gaps.end(),
                     [&](size_t a, size_t b) { return width_ps(a) > width_ps(b); });
    gaps.resize(std::min(gaps.size(), most_gaps));
    for (const size_t gap : gaps) {
      if (Explains({ClockChange::kSet, gap, gap + 1})) return gap;
    }
    return std::nullopt;
  }

  // Whether enough executions lie before and after: one that is matched wrongly looks the same as the
  // change of a clock between few.
  bool AreBeforeAndAfter(int64_t begin_ps, int64_t end_ps) const {
    constexpr size_t kFewestExecutions = 3;
    std::set<uint32_t> before, after;
    for (size_t p = 0; p < solved_.constraints.point_count(node_); ++p) {
      const int64_t time_ps = solved_.constraints.time_ps(node_, p);
      const uint32_t instance = solved_.instance_of_hub[solved_.constraints.hub(node_, p)];
      if (time_ps <= begin_ps) before.insert(instance);
      if (time_ps >= end_ps) after.insert(instance);
    }
    return std::min(before.size(), after.size()) >= kFewestExecutions;
  }

  // Sets the step as the ends of collectives tell it, within what is certain.
  void SetStep(int64_t begin_ps, int64_t end_ps, Explanation* found) const {
    const SizeBounds& size = found->size;
    const int64_t by_ps = std::clamp(ChangeOfClock(mended_.table, node_, begin_ps, end_ps)
                                         .value_or(FloorMean(size.least_ps, size.most_ps)),
                                     size.least_ps, size.most_ps);
    found->jump.knots = {{begin_ps, begin_ps}, {end_ps, end_ps - by_ps}};
    found->jump.FitInGap();
    found->is_mappable &= found->jump.GoesUp() && found->jump.by_ps() >= size.least_ps;
  }

  const Mended& mended_;
  const uint32_t node_;
  Solved& solved_;
  // When the clock's points are, each time once.
  std::vector<int64_t> times_ps_;
};

// Returns all changes of one clock that would explain the contradiction; nullopt when looking for them
// would take too long.
std::optional<std::vector<Explanation>> FindExplanations(const Mended& mended,
                                                         const Contradiction& contradiction,
                                                         Solved* solved) {
  // Each clock takes up to 250 solutions.
  constexpr size_t kMostWork = size_t{1} << 22;
  std::set<uint32_t> nodes;
  for (const Contradiction::Step& step : contradiction.steps) nodes.insert(step.clock);
  if (mended.table.members().size() > kMostWork / nodes.size()) return std::nullopt;
  std::vector<Explanation> found;
  for (const uint32_t node : nodes) {
    ExplanationFinder finder(mended, node, solved);
    for (const ClockChange change :
         {ClockChange::kSet, ClockChange::kHurried, ClockChange::kSlowed}) {
      for (Explanation& explanation : finder.Find(change)) {
        // What a step explains in order is not taken for one out of order.
        explanation.may_repeat &= absl::c_none_of(found, [&](const Explanation& other) {
          return other.stretch.clock == node && other.IsStep();
        });
        found.push_back(std::move(explanation));
      }
    }
  }
  return found;
}

std::set<uint32_t> NodesOf(const std::vector<Explanation>& explanations) {
  std::set<uint32_t> nodes;
  for (const Explanation& explanation : explanations) nodes.insert(explanation.stretch.clock);
  return nodes;
}

// Returns the one to map clocks by, null when there is none: rather a step than a slew, rather that of
// the clock whose ends show it, rather not that of the reference.
const Explanation* Choose(const std::vector<Explanation>& explanations,
                          const std::optional<ClockJump>& seen, uint32_t reference_node) {
  const Explanation* best = nullptr;
  const auto rank_of = [&](const Explanation& explanation) {
    const uint32_t node = explanation.stretch.clock;
    return std::make_tuple(explanation.IsStep(), seen.has_value() && seen->node == node,
                           node != reference_node);
  };
  for (const Explanation& explanation : explanations) {
    if (!explanation.is_mappable) continue;
    if (best == nullptr || rank_of(explanation) > rank_of(*best)) best = &explanation;
  }
  return best;
}

// Whether the collectives agree if all clocks may drift ten times as fast: then they rather do than that
// several were changed.
bool MayDriftInstead(const CollectiveTable& table, ProbeFreeOptions options) {
  options.max_drift_ppm = std::min(10 * options.max_drift_ppm, 1e6);
  return Solve(table, options).ok();
}

void ForgetDrift(NodeOffset* node) { node->drift_ppm = node->drift_uncertainty_ppm = std::nullopt; }

// Says how far the clocks may be off because it is not known by how much they were changed, nor when
// exactly: that of the node, or those of the others to the reference if it is that. What lies between
// the last collective before a change and the first one after it may be off by all of it, which is for
// the reader of the change to know.
void DoubtSizes(const Mended& mended, const Solved& solved, ClockAlignment* alignment) {
  for (size_t j = 0; j < alignment->jumps.size(); ++j) {
    const SizeBounds rest = ChangeIn(mended.loose[j], solved, mended.options.max_drift_ppm);
    ClockJump& jump = alignment->jumps[j];
    jump.uncertainty_ps = std::max(std::abs(rest.least_ps), std::abs(rest.most_ps));
    bool has_inside = false;
    for (size_t p = 0; p < solved.constraints.point_count(jump.node); ++p) {
      const int64_t time_ps = solved.constraints.time_ps(jump.node, p);
      has_inside |= time_ps > mended.loose[j].from_ps && time_ps < mended.loose[j].to_ps;
    }
    for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
      NodeOffset& node = alignment->nodes[n];
      if (!node.reachable || (jump.node != mended.options.reference_node && n != jump.node))
        continue;
      const int64_t shown_ps = node.offset_at_ps + node.offset_ps;
      const bool is_inside = n == jump.node && shown_ps > jump.begin_ps && shown_ps < jump.end_ps;
      node.uncertainty_ps =
          std::min(node.certified_uncertainty_ps, node.uncertainty_ps + jump.uncertainty_ps +
                                                      (is_inside ? std::abs(jump.by_ps()) : 0));
      // Of collectives that lie between, it is not known which came before.
      node.uncertainty_max_ps =
          std::max(node.uncertainty_ps, node.uncertainty_max_ps + jump.uncertainty_ps +
                                            (has_inside ? std::abs(jump.by_ps()) : 0));
      // The rate of a line over the change says nothing of the clock.
      if (n == jump.node) ForgetDrift(&node);
    }
  }
}

absl::Status NotTied() {
  return FailedPrecondition("then no collective ties some clock to the others any more");
}

// Aligns clocks that are mended so far that nothing contradicts itself. FailedPrecondition when no
// collective ties a clock to the others any more.
absl::StatusOr<ClockAlignment> AlignMended(const Mended& mended, const Solved& solved,
                                           AlignFunction align) {
  for (const LooseStretch& stretch : mended.loose) {
    if (!solved.bounds.reachable[stretch.clock]) return NotTied();
  }
  ClockAlignment alignment = align(mended.table, mended.options, solved);
  RedoJumps(mended.jumps, &alignment);
  DoubtSizes(mended, solved, &alignment);
  return alignment;
}

// Where something else may have happened, the clocks may be off by as much as the two answers differ.
// False when nothing is known of a clock then.
bool DoubtWhat(const ClockAlignment& other, const Solved& solved, ClockAlignment* alignment) {
  for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
    NodeOffset& node = alignment->nodes[n];
    const NodeOffset& otherwise = other.nodes[n];
    if (!node.reachable) continue;
    if (!otherwise.reachable) return false;
    const auto apart_ps = [&](int64_t time_ps) {
      return std::abs(OffsetAt(node.knots, time_ps) - OffsetAt(otherwise.knots, time_ps));
    };
    int64_t most_ps = 0;
    for (const OffsetKnot& knot : node.knots) most_ps = std::max(most_ps, apart_ps(knot.time_ps));
    for (const OffsetKnot& knot : otherwise.knots) {
      most_ps = std::max(most_ps, apart_ps(knot.time_ps));
    }
    const int64_t stated_ps = node.offset_at_ps + node.offset_ps;
    int64_t here_ps = 0;
    for (size_t p = 0; p < solved.bounds.lower_ps[n].size(); ++p) {
      if (solved.constraints.time_ps(n, p) != stated_ps) continue;
      here_ps = std::max({here_ps, solved.bounds.upper_ps[n][p] - node.offset_ps,
                          node.offset_ps - solved.bounds.lower_ps[n][p]});
    }
    const auto widen = [](int64_t other_ps, int64_t* own_ps) {
      *own_ps = std::max(*own_ps, other_ps);
    };
    widen(here_ps, &node.uncertainty_ps);
    widen(here_ps, &node.certified_uncertainty_ps);
    widen(most_ps + otherwise.uncertainty_max_ps, &node.uncertainty_max_ps);
  }
  return true;
}

// Takes the middle of what is certain where a clock may have changed in that stretch.
ClockAlignment AlignLoose(const Mended& mended, const LooseStretch& stretch, AlignFunction align,
                          Solved* solved) {
  std::vector<LooseStretch> loose = mended.loose;
  loose.push_back(stretch);
  MERIDIAN_CHECK(FindBounds(loose, solved));
  ProbeFreeOptions options = mended.options;
  options.end_agreement = false;
  return align(mended.table, options, *solved);
}

// Aligns clocks if it was that change; of a clock that ran at another rate, ends tell nothing.
absl::StatusOr<ClockAlignment> AlignExplained(const Mended& mended, const Explanation& explanation,
                                              AlignFunction align, Solved* solved) {
  if (explanation.IsStep()) {
    Mended undone = mended;
    undone.Undo(explanation.jump, explanation.stretch);
    ASSIGN_OR_RETURN(const Solved rest, Solve(undone.table, undone.options, undone.loose));
    return AlignMended(undone, rest, align);
  }
  ClockAlignment alignment = AlignLoose(mended, explanation.stretch, align, solved);
  alignment.jumps = {explanation.jump};
  ForgetDrift(&alignment.nodes[explanation.stretch.clock]);
  return alignment;
}

// Adds whose clock may have been changed, and why that was not mended (`why_not`, or empty for the usual
// reasons): the largest change that was seen, if it can be why the collectives contradict each other by
// that much, else all clocks of which one change would explain it.
absl::Status NameSuspect(const ProbeFreeOptions& options, const std::vector<ClockJump>& jumps,
                         const std::set<uint32_t>& suspects, const absl::Status& contradiction,
                         int64_t excess_ps, absl::string_view why_not) {
  const auto refuse = [&](absl::Span<const uint32_t> nodes, absl::string_view what) {
    const auto append_id = [&](std::string* out, uint32_t node) {
      absl::StrAppend(out, NodeId(options, node));
    };
    return FailedPrecondition(contradiction.message(), ". The clock of node ",
                              absl::StrJoin(nodes, " or ", append_id), " seems to be changed",
                              what);
  };
  if (!jumps.empty() && std::abs(jumps[0].by_ps()) >= excess_ps / 2) {
    const ClockJump& jump = jumps[0];
    if (why_not.empty()) why_not = "the rest contradicts itself, too";
    if (!jump.GoesUp()) {
      why_not = jump.by_ps() < 0 ? "then it shows times twice, which cannot be told apart"
                                 : "there are collectives in the time that it skipped then";
    }
    std::vector<uint32_t> nodes = jump.or_nodes;
    nodes.insert(nodes.begin(), jump.node);
    return refuse(nodes,
                  absl::StrCat(" by ", FormatMicros(jump.by_ps()), " us at ",
                               FormatMicros(jump.knots.front().shown_ps), " us, but ", why_not));
  }
  if (suspects.empty() && why_not.empty()) return contradiction;
  if (suspects.empty()) {
    return FailedPrecondition(contradiction.message(), ". A clock may have been changed, but ",
                              why_not);
  }
  if (why_not.empty()) why_not = "too few collectives lie before that or after it";
  return refuse(std::vector<uint32_t>(suspects.begin(), suspects.end()),
                absl::StrCat(", but ", why_not));
}

// Aligns clocks by one of the explanations; what is stated holds whichever of them is true.
// FailedPrecondition when nothing is known of a clock if it is another one.
absl::StatusOr<ClockAlignment> AlignByOneOf(const Mended& mended,
                                            const std::vector<Explanation>& explanations,
                                            const Explanation& chosen, AlignFunction align,
                                            Solved* solved) {
  if (absl::c_any_of(explanations, [](const Explanation& is) { return is.may_repeat; })) {
    return FailedPrecondition("it may have shown times twice, which cannot be told apart");
  }
  ASSIGN_OR_RETURN(ClockAlignment alignment, AlignExplained(mended, chosen, align, solved));
  ClockJump& jump = alignment.jumps[0];
  jump.may_be_set = jump.may_be_slewed = false;
  for (const Explanation& explanation : explanations) {
    const uint32_t node = explanation.stretch.clock;
    if (node == jump.node) {
      (explanation.IsStep() ? jump.may_be_set : jump.may_be_slewed) = true;
      jump.begin_ps = std::min(jump.begin_ps, explanation.jump.begin_ps);
      jump.end_ps = std::max(jump.end_ps, explanation.jump.end_ps);
      jump.uncertainty_ps =
          std::max({jump.uncertainty_ps, std::abs(explanation.size.least_ps - jump.by_ps()),
                    std::abs(explanation.size.most_ps - jump.by_ps())});
    } else if (absl::c_count(jump.or_nodes, node) == 0) {
      jump.or_nodes.push_back(node);
    }
    if (&explanation == &chosen) continue;
    const ClockAlignment other = AlignLoose(mended, explanation.stretch, align, solved);
    if (!DoubtWhat(other, *solved, &alignment)) return NotTied();
    // Nor are rates known.
    for (uint32_t n = 0; n < alignment.nodes.size(); ++n) {
      if (n == node || node == mended.options.reference_node) ForgetDrift(&alignment.nodes[n]);
    }
  }
  return alignment;
}

}  // namespace

absl::StatusOr<ClockAlignment> AlignAcrossJumps(const CollectiveTable& table,
                                                const ProbeFreeOptions& options,
                                                const absl::Status& refused,
                                                const Contradiction& contradiction,
                                                AlignFunction align) {
  constexpr size_t kMostJumps = 16;
  if (!options.clocks_may_jump) {
    std::vector<ClockJump> jumps;
    if (auto seen = FindClockJump(table, options.reference_node)) jumps.push_back(*std::move(seen));
    return NameSuspect(options, jumps, {}, refused, contradiction.excess_ps,
                       "executions are matched by their order, which may be wrong as well");
  }
  std::optional<Contradiction> left = contradiction;
  Mended mended{table, options, {}, {}};
  std::set<uint32_t> suspects;
  std::string why_not;
  while (mended.jumps.size() < kMostJumps) {
    const std::optional<ClockJump> seen = FindClockJump(mended.table, options.reference_node);
    Solved constraints = MakeConstraints(mended.table, mended.options);
    std::vector<Explanation> explanations;
    if (auto found = FindExplanations(mended, *left, &constraints)) {
      explanations = *std::move(found);
    } else {
      why_not = "the collectives are too many to find out whose";
    }
    const Explanation* chosen = Choose(explanations, seen, options.reference_node);
    if (mended.jumps.empty()) {
      suspects = NodesOf(explanations);
      if (chosen != nullptr) {
        absl::StatusOr<ClockAlignment> alignment =
            AlignByOneOf(mended, explanations, *chosen, align, &constraints);
        if (alignment.ok()) return alignment;
        why_not = std::string(alignment.status().message());
      }
      if (!explanations.empty() || MayDriftInstead(table, options)) break;
    }
    if (explanations.size() == 1 && chosen != nullptr && chosen->IsStep() &&
        !mended.IsChanged(chosen->jump.node)) {
      mended.Undo(chosen->jump, chosen->stretch);
    } else if (seen.has_value() && seen->GoesUp() && seen->or_nodes.empty() &&
               !mended.IsChanged(seen->node)) {
      mended.Undo(*seen, {seen->node, seen->knots.front().shown_ps, seen->knots.back().shown_ps});
    } else {
      if (seen.has_value()) mended.jumps.push_back(*seen);
      break;
    }
    const absl::StatusOr<Solved> solved = Solve(mended.table, mended.options, mended.loose, &left);
    if (!solved.ok()) continue;
    absl::StatusOr<ClockAlignment> alignment = AlignMended(mended, *solved, align);
    if (!alignment.ok()) {
      why_not = std::string(alignment.status().message());
      break;
    }
    for (ClockJump& jump : alignment->jumps) jump.is_by_ends = true;
    return alignment;
  }
  return NameSuspect(options, mended.jumps, suspects, refused, contradiction.excess_ps, why_not);
}

}  // namespace meridian
