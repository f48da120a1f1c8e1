#include "trace_alignment/collectives/jump_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// What is certain of by how much a clock is ahead after a stretch, compared with before it.
struct SizeBounds {
  int64_t least_ps = 0;
  int64_t most_ps = 0;
};

SizeBounds ChangeIn(const LooseStretch& stretch, const Solved& solved) {
  const std::vector<int64_t>& lower_ps = solved.bounds.lower_ps[stretch.clock];
  const std::vector<int64_t>& upper_ps = solved.bounds.upper_ps[stretch.clock];
  size_t before = 0, after = lower_ps.size() - 1;
  while (before < after &&
         solved.constraints.time_ps(stretch.clock, before + 1) <= stretch.from_ps) {
    ++before;
  }
  while (after > before && solved.constraints.time_ps(stretch.clock, after - 1) >= stretch.to_ps) {
    --after;
  }
  return {lower_ps[after] - upper_ps[before], upper_ps[after] - lower_ps[before]};
}

// Finds when one clock must have been set if that is why the collectives contradict each other.
class CutFinder {
 public:
  CutFinder(const Mended& mended, uint32_t node)
      : mended_(mended), node_(node), built_(MakeConstraints(mended.table, mended.options)) {
    for (size_t p = 0; p < constraints().point_count(node); ++p) {
      const int64_t time_ps = constraints().time_ps(node, p);
      if (times_ps_.empty() || times_ps_.back() != time_ps) times_ps_.push_back(time_ps);
    }
  }

  // Finds the gaps between two of the clock's times in one of which it must have been set; false when
  // that cannot be all that happened. Whatever is loose from one time to another explains more than
  // what is loose in less.
  bool FindGaps() {
    if (times_ps_.size() < 2) return false;
    const size_t last = times_ps_.size() - 1;
    if (!Explains(0, last)) return false;
    size_t least = 1, most = last;
    while (least < most) {
      const size_t middle = (least + most) / 2;
      if (Explains(0, middle)) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    first_gap_ = least - 1;
    least = 0;
    most = last - 1;
    while (least < most) {
      const size_t middle = (least + most + 1) / 2;
      if (Explains(middle, last)) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    last_gap_ = least;
    return first_gap_ <= last_gap_;
  }

  // Of these gaps chooses one in which it suffices that the clock was set: the widest among some, since
  // a clock that is set forward skips time. False when none of them does, and when too few executions
  // lie before or after: one that is matched wrongly looks the same.
  bool ChooseGap() {
    constexpr size_t kMostGaps = 24, kFewestExecutions = 3;
    const int64_t begin_ps = times_ps_[first_gap_], end_ps = times_ps_[last_gap_ + 1];
    std::set<uint32_t> before, after;
    for (size_t p = 0; p < constraints().point_count(node_); ++p) {
      const int64_t time_ps = constraints().time_ps(node_, p);
      const uint32_t instance = built_.instance_of_hub[constraints().hub(node_, p)];
      if (time_ps <= begin_ps) before.insert(instance);
      if (time_ps >= end_ps) after.insert(instance);
    }
    if (std::min(before.size(), after.size()) < kFewestExecutions) return false;
    std::vector<size_t> gaps(last_gap_ - first_gap_ + 1);
    std::iota(gaps.begin(), gaps.end(), first_gap_);
    std::stable_sort(gaps.begin(), gaps.end(),
                     [&](size_t a, size_t b) { return WidthPs(a) > WidthPs(b); });
    gaps.resize(std::min(gaps.size(), kMostGaps));
    const auto found =
        std::find_if(gaps.begin(), gaps.end(), [&](size_t gap) { return Explains(gap, gap + 1); });
    if (found == gaps.end()) return false;
    gap_ = *found;
    return true;
  }

  // Returns what is certain if the clock was set somewhere in the gaps, null when nothing ties it then.
  const Solved* Solve() {
    const bool is_tied = Explains(first_gap_, last_gap_ + 1) && built_.bounds.reachable[node_];
    return is_tied ? &built_ : nullptr;
  }

  LooseStretch Stretch() const { return {node_, times_ps_[first_gap_], times_ps_[last_gap_ + 1]}; }
  // The chosen gap.
  int64_t gap_begin_ps() const { return times_ps_[gap_]; }
  int64_t gap_end_ps() const { return times_ps_[gap_ + 1]; }

 private:
  const DifferenceConstraints& constraints() const { return built_.constraints; }

  // Whether nothing contradicts itself any more if the clock may be set between two of its times.
  bool Explains(size_t from, size_t to) {
    std::vector<LooseStretch> loose = mended_.loose;
    loose.push_back({node_, times_ps_[from], times_ps_[to]});
    built_.constraints.Loosen(loose);
    built_.bounds = OffsetBounds();
    return !built_.constraints.FindBounds(&built_.bounds).has_value();
  }

  int64_t WidthPs(size_t gap) const { return times_ps_[gap + 1] - times_ps_[gap]; }

  const Mended& mended_;
  const uint32_t node_;
  Solved built_;
  // When the clock's points are, each time once.
  std::vector<int64_t> times_ps_;
  size_t first_gap_ = 0;
  size_t last_gap_ = 0;
  size_t gap_ = 0;
};

// A change of a clock, and the stretch in which it must have happened.
struct FoundJump {
  ClockJump jump;
  LooseStretch stretch;
};

// Returns the change in that cut: as the ends of collectives tell it, within what is certain.
std::optional<FoundJump> JumpIn(CutFinder* cut, uint32_t node, const Mended& mended) {
  const LooseStretch stretch = cut->Stretch();
  const int64_t begin_ps = cut->gap_begin_ps(), end_ps = cut->gap_end_ps();
  const Solved* solved = cut->Solve();
  if (solved == nullptr) return std::nullopt;
  const SizeBounds size = ChangeIn(stretch, *solved);
  const int64_t by_ps = std::clamp(ChangeOfClock(mended.table, node, begin_ps, end_ps)
                                       .value_or(FloorMean(size.least_ps, size.most_ps)),
                                   size.least_ps, size.most_ps);
  ClockJump jump;
  jump.node = node;
  jump.knots = {{begin_ps, begin_ps}, {end_ps, end_ps - by_ps}};
  jump.FitInGap();
  // A map cannot follow what is set by hundreds of times the gap that is left.
  if (!jump.GoesUp() || jump.by_ps() < size.least_ps) return std::nullopt;
  return FoundJump{std::move(jump), stretch};
}

// Which changes of one clock would each be why the collectives contradict each other.
struct OneJump {
  // The one that is taken, and for ClockJump::or_node the other that it may be. Absent when there is
  // none, and when nothing tells which of several it is.
  std::optional<FoundJump> taken;
  std::optional<FoundJump> other;
  // The nodes of all.
  std::set<uint32_t> suspects;
};

// Takes the one whose clock ends of collectives show to have changed (`seen`, may be absent); of two
// without that, either.
OneJump FindOneJump(const Mended& mended, const Contradiction& contradiction,
                    const std::optional<ClockJump>& seen) {
  // Each clock takes up to 70 solutions.
  constexpr size_t kMostMembers = size_t{1} << 19, kMostNodes = 8;
  OneJump one;
  std::set<uint32_t> nodes;
  for (const Contradiction::Step& step : contradiction.steps) nodes.insert(step.clock);
  if (mended.table.members().size() > kMostMembers || nodes.size() > kMostNodes) return one;
  std::map<uint32_t, FoundJump> found;
  for (const uint32_t node : nodes) {
    CutFinder cut(mended, node);
    if (!cut.FindGaps()) continue;
    one.suspects.insert(node);
    if (!cut.ChooseGap()) continue;
    std::optional<FoundJump> jump = JumpIn(&cut, node, mended);
    if (jump.has_value()) found.emplace(node, *std::move(jump));
  }
  std::optional<uint32_t> node, other;
  if (seen.has_value() && found.count(seen->node) > 0) {
    node = seen->node;
    if (seen->or_node.has_value() && one.suspects.count(*seen->or_node) > 0) other = seen->or_node;
  } else if (!one.suspects.empty() && one.suspects.size() <= 2) {
    node = *one.suspects.begin();
    if (one.suspects.size() == 2) other = *one.suspects.rbegin();
    if (other.has_value() && node == mended.options.reference_node) std::swap(*node, *other);
  }
  // What is not known of the other is not known of either, on clocks that are partly mended, too.
  const bool is_known = node.has_value() && found.count(*node) > 0 &&
                        (!other.has_value() || (found.count(*other) > 0 && mended.jumps.empty()));
  if (!is_known) return one;
  one.taken.emplace(std::move(found.at(*node)));
  one.taken->jump.or_node = other;
  if (other.has_value()) one.other.emplace(std::move(found.at(*other)));
  return one;
}

// Whether the collectives agree if clocks may drift ten times as fast: such a clock looks like one
// that was set, but for ends that show when.
bool MayDriftInstead(const CollectiveTable& table, ProbeFreeOptions options) {
  options.max_drift_ppm = std::min(10 * options.max_drift_ppm, 1e6);
  return Solve(table, options).ok();
}

// Says how far the clocks may be off because it is not known by how much they were changed, nor when
// exactly: that of the node, or those of the others to the reference if it is that. What lies between
// the last collective before a change and the first one after it may be off by all of it, which is for
// the reader of the change to know.
void DoubtSizes(const Mended& mended, const Solved& solved, ClockAlignment* alignment) {
  for (size_t j = 0; j < alignment->jumps.size(); ++j) {
    const SizeBounds rest = ChangeIn(mended.loose[j], solved);
    ClockJump& jump = alignment->jumps[j];
    jump.uncertainty_ps = std::max(std::abs(rest.least_ps), std::abs(rest.most_ps));
    for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
      NodeOffset& node = alignment->nodes[n];
      if (!node.reachable || (jump.node != mended.options.reference_node && n != jump.node))
        continue;
      const int64_t shown_ps = node.offset_at_ps + node.offset_ps;
      const bool is_inside = n == jump.node && shown_ps > jump.begin_ps && shown_ps < jump.end_ps;
      node.uncertainty_ps =
          std::min(node.certified_uncertainty_ps, node.uncertainty_ps + jump.uncertainty_ps +
                                                      (is_inside ? std::abs(jump.by_ps()) : 0));
      // Where collectives lie between, it is not known which of them came before.
      const bool is_pinned =
          jump.begin_ps >= jump.knots.front().shown_ps && jump.end_ps <= jump.knots.back().shown_ps;
      node.uncertainty_max_ps =
          std::max(node.uncertainty_ps, node.uncertainty_max_ps + jump.uncertainty_ps +
                                            (is_pinned ? 0 : std::abs(jump.by_ps())));
      // The rate of a line over the change says nothing of the clock.
      if (n == jump.node) node.drift_ppm = node.drift_uncertainty_ppm = std::nullopt;
    }
  }
}

// Aligns clocks that are mended so far that nothing contradicts itself. FailedPrecondition when no
// collective ties a clock to the others any more.
absl::StatusOr<ClockAlignment> AlignMended(const Mended& mended, const Solved& solved,
                                           AlignFunction align) {
  for (const LooseStretch& stretch : mended.loose) {
    if (!solved.bounds.reachable[stretch.clock]) {
      return FailedPrecondition("then no collective ties it to the others any more");
    }
  }
  ClockAlignment alignment = align(mended.table, mended.options, solved);
  RedoJumps(mended.jumps, &alignment);
  DoubtSizes(mended, solved, &alignment);
  return alignment;
}

// Where another clock may have been changed, the clocks may be off by as much as the two answers differ.
void DoubtWhose(const ClockAlignment& other, ClockAlignment* alignment) {
  for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
    NodeOffset& node = alignment->nodes[n];
    const NodeOffset& otherwise = other.nodes[n];
    if (!node.reachable || !otherwise.reachable) continue;
    const auto apart_ps = [&](int64_t time_ps) {
      return std::abs(OffsetAt(node.knots, time_ps) - OffsetAt(otherwise.knots, time_ps));
    };
    int64_t most_ps = 0;
    for (const OffsetKnot& knot : node.knots) most_ps = std::max(most_ps, apart_ps(knot.time_ps));
    for (const OffsetKnot& knot : otherwise.knots) {
      most_ps = std::max(most_ps, apart_ps(knot.time_ps));
    }
    const int64_t here_ps = apart_ps(node.offset_at_ps + node.offset_ps);
    const auto widen = [](int64_t other_ps, int64_t* own_ps) {
      *own_ps = std::max(*own_ps, other_ps);
    };
    widen(here_ps + otherwise.uncertainty_ps, &node.uncertainty_ps);
    widen(most_ps + otherwise.uncertainty_max_ps, &node.uncertainty_max_ps);
    widen(here_ps + otherwise.certified_uncertainty_ps, &node.certified_uncertainty_ps);
  }
}

// The same where the other answer is not known.
void DoubtWhose(const ClockJump& jump, uint32_t reference_node, ClockAlignment* alignment) {
  const int64_t by_ps = std::abs(jump.by_ps());
  for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
    NodeOffset& node = alignment->nodes[n];
    if (n == reference_node || !node.reachable) continue;
    node.uncertainty_ps += by_ps;
    node.uncertainty_max_ps += by_ps;
    node.certified_uncertainty_ps += by_ps;
  }
}

// Adds whose clock may have been changed, and why that was not mended (`why_not`, or empty for the usual
// reasons): the largest change that was seen, if it can be why the collectives contradict each other by
// that much, else all clocks of which a change would explain it.
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
    std::vector<uint32_t> nodes = {jump.node};
    if (jump.or_node.has_value()) nodes.push_back(*jump.or_node);
    return refuse(nodes,
                  absl::StrCat(" by ", FormatMicros(jump.by_ps()), " us at ",
                               FormatMicros(jump.knots.front().shown_ps), " us, but ", why_not));
  }
  if (suspects.empty()) return contradiction;
  return refuse(std::vector<uint32_t>(suspects.begin(), suspects.end()),
                suspects.size() == 1 ? ": when, and whether once, the collectives do not tell"
                                     : ": the collectives do not tell which");
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
    if (mended.jumps.empty() && !seen.has_value() && MayDriftInstead(table, options)) break;
    const OneJump one = FindOneJump(mended, *left, seen);
    if (mended.jumps.empty()) suspects = one.suspects;
    std::optional<Mended> otherwise;
    if (one.other.has_value()) {
      otherwise.emplace(mended);
      otherwise->Undo(one.other->jump, one.other->stretch);
    }
    if (one.taken.has_value()) {
      mended.Undo(one.taken->jump, one.taken->stretch);
    } else if (seen.has_value() && seen->GoesUp()) {
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
    if (otherwise.has_value()) {
      ASSIGN_OR_RETURN(const Solved other,
                       Solve(otherwise->table, otherwise->options, otherwise->loose));
      ASSIGN_OR_RETURN(const ClockAlignment aligned, AlignMended(*otherwise, other, align));
      DoubtWhose(aligned, &*alignment);
      return alignment;
    }
    for (const ClockJump& jump : alignment->jumps) {
      if (jump.or_node.has_value()) DoubtWhose(jump, options.reference_node, &*alignment);
    }
    return alignment;
  }
  return NameSuspect(options, mended.jumps, suspects, refused, contradiction.excess_ps, why_not);
}

}  // namespace meridian
