#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/difference_constraints.h"
#include "trace_alignment/collectives/likely_clocks.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// The constraints of a table's instances, which instance each hub is of, and what follows.
struct Solved {
  DifferenceConstraints constraints;
  std::vector<uint32_t> instance_of_hub;
  OffsetBounds bounds;
};

// Calls on_hub(instance, node) for each hub of the table, where the node is one that it touches;
// then on_cause(node, time_ps) and on_effect(node, time_ps) for what comes before and after it. A
// group, with or without root, is one hub; of a permute, each pair is one.
template <typename OnHub, typename OnCause, typename OnEffect>
void ForEachHub(const CollectiveTable& table, OnHub on_hub, OnCause on_cause, OnEffect on_effect) {
  for (uint32_t i = 0; i < table.instances().size(); ++i) {
    const CollectiveInstance& instance = table.instances()[i];
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    if (IsSynchronising(table.OpOf(instance).kind)) {
      if (members.size() < 2) continue;
      on_hub(i, table.NodeOf(members[0]));
      for (const CollectiveMember& member : members) {
        on_cause(table.NodeOf(member), member.start_ps);
        on_effect(table.NodeOf(member), member.end_ps);
      }
      continue;
    }
    const bool has_root = instance.group != CollectiveInstance::kNoGroup;
    const absl::Span<const MemberPair> pairs = table.PairsOf(instance);
    for (size_t p = 0; p < pairs.size(); ++p) {
      const CollectiveMember& source = members[pairs[p].source];
      const CollectiveMember& target = members[pairs[p].target];
      const bool is_new = p == 0 || !has_root;
      if (is_new) on_hub(i, table.NodeOf(target));
      // The root is in all pairs.
      if (is_new || pairs[p].source != pairs[0].source) {
        on_cause(table.NodeOf(source), source.start_ps);
      }
      if (is_new || pairs[p].target != pairs[0].target) {
        on_effect(table.NodeOf(target), target.end_ps);
      }
    }
  }
}

struct Counts {
  std::vector<uint32_t> hubs;
  std::vector<size_t> points;
};

Counts Count(const CollectiveTable& table) {
  const size_t nodes = table.node_count();
  Counts counts = {std::vector<uint32_t>(nodes), std::vector<size_t>(nodes)};
  const auto count_point = [&](uint32_t node, int64_t) { ++counts.points[node]; };
  ForEachHub(
      table, [&](uint32_t, uint32_t node) { ++counts.hubs[node]; }, count_point, count_point);
  return counts;
}

// Hubs are numbered node by node, so that a walk along a node's clock finds its own side by side.
Solved MakeConstraints(const CollectiveTable& table, const ProbeFreeOptions& options) {
  const Counts counts = Count(table);
  std::vector<uint32_t> next_hub(counts.hubs.size());
  std::partial_sum(counts.hubs.begin(), counts.hubs.end() - 1, next_hub.begin() + 1);
  std::vector<uint32_t> instance_of_hub(next_hub.back() + counts.hubs.back());

  DifferenceConstraints constraints(
      table.node_count(), instance_of_hub.size(),
      {options.reference_node, options.max_drift_ppm, options.min_transfer_ps});
  for (uint32_t node = 0; node < counts.points.size(); ++node) {
    constraints.Reserve(node, counts.points[node]);
  }
  uint32_t hub = 0;
  ForEachHub(
      table,
      [&](uint32_t instance, uint32_t node) {
        hub = next_hub[node]++;
        instance_of_hub[hub] = instance;
      },
      [&](uint32_t node, int64_t time_ps) { constraints.AddCause(node, time_ps, hub); },
      [&](uint32_t node, int64_t time_ps) { constraints.AddEffect(node, time_ps, hub); });
  constraints.Sort();
  return {std::move(constraints), std::move(instance_of_hub), {}};
}

int64_t NodeId(const ProbeFreeOptions& options, uint32_t node) {
  return options.node_ids.empty() ? node : options.node_ids[node];
}

absl::Status Refuse(const CollectiveTable& table, const ProbeFreeOptions& options,
                    const Solved& built, const Contradiction& contradiction) {
  constexpr size_t kInstancesToName = 8;
  std::set<int64_t> nodes;
  std::vector<std::string> instances;
  for (const Contradiction::Step& step : contradiction.steps) {
    nodes.insert(NodeId(options, step.clock));
    if (instances.size() == kInstancesToName) continue;
    instances.push_back(absl::StrCat(
        DescribeInstance(table, table.instances()[built.instance_of_hub[step.hub]]), " (ends at ",
        FormatMicros(step.effect_ps), " us on node ", NodeId(options, step.clock), ")"));
  }
  constexpr absl::string_view kMismatch = "one of them is matched with another execution";
  const std::string jump = absl::StrCat("a clock jumps or drifts by more than ",
                                        options.max_drift_ppm, " ppm (--max_drift_ppm)");
  return FailedPrecondition(
      "collectives contradict each other by ", FormatMicros(contradiction.excess_ps), " us on node",
      nodes.size() == 1 ? " " : "s ", absl::StrJoin(nodes, ","), ": ",
      absl::StrJoin(instances, ", then "),
      contradiction.steps.size() > instances.size() ? ", and so on" : "", ". Probably ",
      options.clocks_may_jump ? absl::StrCat(jump, "; else ", kMismatch)
                              : absl::StrCat(kMismatch, "; else ", jump),
      ", or a transfer takes less than ", FormatMicros(options.min_transfer_ps),
      " us (--min_transfer_ns)");
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

absl::Status CheckOptions(const CollectiveTable& table, const ProbeFreeOptions& options) {
  if (options.reference_node >= table.node_count()) {
    return InvalidArgument("the reference node, ", options.reference_node, ", is none of ",
                           table.node_count());
  }
  if (!(options.max_drift_ppm >= 0 && options.max_drift_ppm <= 1e6)) {
    return InvalidArgument("a drift of ", options.max_drift_ppm, " ppm; expected 0 to 1000000");
  }
  if (options.min_transfer_ps < 0 || options.min_transfer_ps > kMaxRunTimePs) {
    return InvalidArgument("a transfer of ", options.min_transfer_ps,
                           " ps at least; expected 0 or more, to 40 hours");
  }
  MERIDIAN_CHECK(options.spans.empty() || options.spans.size() == table.node_count());
  return absl::OkStatus();
}

// Finds what follows from happens-before alone, where clocks may have been set in those stretches.
// Sets why there is no solution where there is none.
absl::StatusOr<Solved> Solve(const CollectiveTable& table, const ProbeFreeOptions& options,
                             const std::vector<LooseStretch>& loose = {},
                             std::optional<Contradiction>* why = nullptr) {
  RETURN_IF_ERROR(CheckOptions(table, options));
  Solved solved = MakeConstraints(table, options);
  solved.constraints.Loosen(loose);
  const std::optional<Contradiction> contradiction = solved.constraints.FindBounds(&solved.bounds);
  if (why != nullptr) *why = contradiction;
  if (contradiction.has_value()) return Refuse(table, options, solved, *contradiction);
  return solved;
}

// The bounds and the chosen offsets of one node's points.
struct NodeView {
  const DifferenceConstraints& constraints;
  uint32_t node;
  const std::vector<int64_t>& lower_ps;
  const std::vector<int64_t>& upper_ps;
  // Null for the middle of the bounds, which is a solution.
  const std::vector<int64_t>* offsets_ps;
  // What is likely of the clock; null where only what is certain is asked for.
  const LikelyClock* likely;

  size_t size() const { return lower_ps.size(); }
  int64_t TimePs(size_t point) const { return constraints.time_ps(node, point); }
  int64_t OffsetPs(size_t point) const {
    return offsets_ps == nullptr ? FloorMean(lower_ps[point], upper_ps[point])
                                 : (*offsets_ps)[point];
  }
  int64_t CertifiedPs(size_t point) const {
    return std::max(upper_ps[point] - OffsetPs(point), OffsetPs(point) - lower_ps[point]);
  }
  // Returns within how much of the offset of the point the clock likely is at a time on which that
  // offset is used; no more than is certain.
  int64_t UncertaintyPs(size_t point, int64_t time_ps, int64_t certified_ps) const {
    if (likely == nullptr) return certified_ps;
    const double range_ps =
        likely->RangePs(time_ps) +
        std::abs(static_cast<double>(OffsetPs(point)) - likely->OffsetPs(TimePs(point)));
    // Not a number when nothing is known.
    return range_ps < static_cast<double>(certified_ps) ? static_cast<int64_t>(std::ceil(range_ps))
                                                        : certified_ps;
  }
};

// Returns the corners of the chosen offsets: a point between two of its own offset says nothing.
std::vector<OffsetKnot> KnotsOf(const NodeView& view) {
  std::vector<OffsetKnot> knots;
  for (size_t p = 0; p < view.size(); ++p) {
    const OffsetKnot knot = {view.TimePs(p), view.OffsetPs(p)};
    const size_t n = knots.size();
    const bool flat = n >= 2 && knots[n - 1].offset_ps == knot.offset_ps &&
                      knots[n - 2].offset_ps == knot.offset_ps;
    const bool repeated = n >= 1 && knots[n - 1].time_ps == knot.time_ps;
    if (flat || repeated) {
      knots.back() = knot;
    } else {
      knots.push_back(knot);
    }
  }
  return knots;
}

// Returns the point next to the middle of the clock's points.
size_t MiddlePoint(const NodeView& view) {
  const int64_t middle_ps = view.TimePs(0) + (view.TimePs(view.size() - 1) - view.TimePs(0)) / 2;
  size_t p = 0;
  while (view.TimePs(p) < middle_ps) ++p;
  return p;
}

// States the rate from the first to the last point, and how far it can be from the truth.
void StateDrift(const NodeView& view, double max_drift_ppm, NodeOffset* node) {
  const size_t last = view.size() - 1;
  const double elapsed_ps = static_cast<double>(view.TimePs(last) - view.TimePs(0));
  if (elapsed_ps <= 0) return;
  const auto ppm = [&](int64_t gained_ps) {
    return static_cast<double>(gained_ps) / elapsed_ps * 1e6;
  };
  const double drift_ppm = ppm(view.OffsetPs(last) - view.OffsetPs(0));
  const double least_ppm = std::max(-max_drift_ppm, ppm(view.lower_ps[last] - view.upper_ps[0]));
  const double most_ppm = std::min(max_drift_ppm, ppm(view.upper_ps[last] - view.lower_ps[0]));
  double uncertainty_ppm = std::max(most_ppm - drift_ppm, drift_ppm - least_ppm);
  if (view.likely != nullptr) {
    const Estimate& likely = view.likely->drift;
    uncertainty_ppm =
        std::min(uncertainty_ppm, likely.Range() * 1e6 + std::abs(drift_ppm - likely.value * 1e6));
  }
  node->drift_ppm = drift_ppm;
  node->drift_uncertainty_ppm = uncertainty_ppm;
}

// Returns the largest uncertainty from the first to the last point, and over the span if there is
// one. Between points the clock can leave the straight line for as long as it can still come back;
// beyond them, the line goes on at some rate and the clock at the opposite one.
int64_t LargestUncertaintyPs(const NodeView& view, double max_drift_ppm,
                             const std::optional<ProfileSpan>& span) {
  const auto drift_ps = [&](int64_t elapsed_ps) {
    return static_cast<int64_t>(
        std::ceil(static_cast<double>(std::max<int64_t>(0, elapsed_ps)) * max_drift_ppm * 1e-6));
  };
  const size_t last = view.size() - 1;
  int64_t largest_ps = 0;
  for (size_t p = 0; p <= last; ++p) {
    const int64_t before_ps = p > 0 ? view.TimePs(p) - view.TimePs(p - 1) : 0;
    const int64_t after_ps = p < last ? view.TimePs(p + 1) - view.TimePs(p) : 0;
    const int64_t away_ps = drift_ps(std::max(before_ps, after_ps) / 2);
    largest_ps =
        std::max(largest_ps, view.UncertaintyPs(p, view.TimePs(p), view.CertifiedPs(p) + away_ps));
  }
  if (!span.has_value()) return largest_ps;
  const auto beyond_ps = [&](size_t p, int64_t time_ps, int64_t elapsed_ps) {
    return view.UncertaintyPs(p, time_ps, view.CertifiedPs(p) + 2 * drift_ps(elapsed_ps));
  };
  return std::max({largest_ps, beyond_ps(0, span->begin_ps, view.TimePs(0) - span->begin_ps),
                   beyond_ps(last, span->end_ps, span->end_ps - view.TimePs(last))});
}

// States the offset in the middle of the clock's points, and the drift.
NodeOffset StateOffset(const NodeView& view, double max_drift_ppm) {
  NodeOffset node;
  node.reachable = true;
  if (view.size() == 0) return node;
  const size_t middle = MiddlePoint(view);
  node.offset_ps = view.OffsetPs(middle);
  node.offset_at_ps = view.TimePs(middle) - node.offset_ps;
  node.certified_uncertainty_ps = view.CertifiedPs(middle);
  node.uncertainty_ps =
      view.UncertaintyPs(middle, view.TimePs(middle), node.certified_uncertainty_ps);
  StateDrift(view, max_drift_ppm, &node);
  return node;
}

double MaxDriftPpm(const ProbeFreeOptions& options, uint32_t node) {
  return node == options.reference_node ? 0 : options.max_drift_ppm;
}

// Takes the chosen offsets, null for the middle of the bounds, and what is likely of the nodes'
// clocks, or nothing.
ClockAlignment Describe(const Solved& solved, const ProbeFreeOptions& options,
                        const PointOffsets* offsets_ps, absl::Span<const LikelyClock> likely) {
  const OffsetBounds& bounds = solved.bounds;
  ClockAlignment alignment;
  alignment.nodes.resize(bounds.lower_ps.size());
  for (uint32_t node = 0; node < alignment.nodes.size(); ++node) {
    if (!bounds.reachable[node]) continue;
    const NodeView view = {solved.constraints,
                           node,
                           bounds.lower_ps[node],
                           bounds.upper_ps[node],
                           offsets_ps == nullptr ? nullptr : &(*offsets_ps)[node],
                           likely.empty() ? nullptr : &likely[node]};
    std::optional<ProfileSpan> span;
    if (!options.spans.empty()) span = options.spans[node];
    NodeOffset& stated = alignment.nodes[node];
    stated = StateOffset(view, MaxDriftPpm(options, node));
    alignment.is_estimated |= stated.uncertainty_ps < stated.certified_uncertainty_ps;
    if (view.size() == 0) continue;
    stated.knots = KnotsOf(view);
    stated.uncertainty_max_ps = LargestUncertaintyPs(view, MaxDriftPpm(options, node), span);
  }
  return alignment;
}

// Returns the solution nearest to the estimate, which is moved to the bounds where it is outside.
PointOffsets Nearest(const Solved& solved, OffsetFunction estimate_ps) {
  const OffsetBounds& bounds = solved.bounds;
  PointOffsets offsets_ps(solved.constraints.clock_count());
  for (uint32_t node = 0; node < offsets_ps.size(); ++node) {
    offsets_ps[node].reserve(bounds.lower_ps[node].size());
    for (size_t p = 0; p < bounds.lower_ps[node].size(); ++p) {
      offsets_ps[node].push_back(std::clamp(estimate_ps(node, solved.constraints.time_ps(node, p)),
                                            bounds.lower_ps[node][p], bounds.upper_ps[node][p]));
    }
  }
  return solved.constraints.NearestSolution(bounds, offsets_ps);
}

// Adds what the node's host knows: that the offset is within the range of 0. What contradicts the
// collectives is not believed.
void UsePrior(int64_t range_ps, Estimate* offset_ps) {
  const double sd_ps = static_cast<double>(range_ps) / Estimate{0, 1}.Range();
  const double variance = sd_ps * sd_ps;
  if (offset_ps->value * offset_ps->value > 9 * (variance + offset_ps->variance)) return;
  const double share = variance / (variance + offset_ps->variance);
  *offset_ps = {offset_ps->value * share, offset_ps->variance * share};
}

// Returns what is likely of the nodes' clocks, nothing if only what is certain is wanted.
std::vector<LikelyClock> LikelyClocks(const CollectiveTable& table, const ProbeFreeOptions& options,
                                      const Solved& solved) {
  if (!options.end_agreement) return {};
  const OffsetBounds& bounds = solved.bounds;
  std::vector<LikelyClock> certain(bounds.lower_ps.size());
  const auto variance = [](double half_width) { return half_width * half_width / 4; };
  for (uint32_t n = 0; n < certain.size(); ++n) {
    if (!bounds.reachable[n]) continue;
    const NodeOffset node = StateOffset(
        {solved.constraints, n, bounds.lower_ps[n], bounds.upper_ps[n], nullptr, nullptr},
        MaxDriftPpm(options, n));
    certain[n].at_ps = node.offset_at_ps + node.offset_ps;
    certain[n].offset_ps = {static_cast<double>(node.offset_ps),
                            variance(static_cast<double>(node.uncertainty_ps))};
    const double drift_ppm = node.drift_ppm.value_or(0);
    const double range_ppm = node.drift_uncertainty_ppm.value_or(0);
    const double least_ppm = std::max(-options.max_drift_ppm, drift_ppm - range_ppm);
    const double most_ppm = std::min(options.max_drift_ppm, drift_ppm + range_ppm);
    certain[n].drift = {(least_ppm + most_ppm) / 2 * 1e-6,
                        variance((most_ppm - least_ppm) / 2 * 1e-6)};
  }
  std::vector<LikelyClock> likely = FindLikelyClocks(table, options.reference_node, certain);
  for (size_t n = 0; n < options.prior_ps.size(); ++n) {
    if (options.prior_ps[n] > 0) UsePrior(options.prior_ps[n], &likely[n].offset_ps);
  }
  return likely;
}

constexpr size_t kMostJumps = 16;

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

ClockAlignment TakeLikely(const CollectiveTable& table, const ProbeFreeOptions& options,
                          const Solved& solved) {
  const std::vector<LikelyClock> likely = LikelyClocks(table, options, solved);
  if (likely.empty()) return Describe(solved, options, nullptr, likely);
  const auto likely_ps = [&](uint32_t node, int64_t time_ps) {
    return static_cast<int64_t>(std::llround(likely[node].OffsetPs(time_ps)));
  };
  const PointOffsets offsets_ps = Nearest(solved, likely_ps);
  return Describe(solved, options, &offsets_ps, likely);
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
  if (!jump.GoesUp()) return std::nullopt;
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
      node.uncertainty_max_ps += jump.uncertainty_ps + (is_pinned ? 0 : std::abs(jump.by_ps()));
    }
  }
}

// Aligns clocks that are mended so far that nothing contradicts itself. FailedPrecondition when no
// collective ties a clock to the others any more.
absl::StatusOr<ClockAlignment> AlignMended(const Mended& mended, const Solved& solved) {
  for (const LooseStretch& stretch : mended.loose) {
    if (!solved.bounds.reachable[stretch.clock]) {
      return FailedPrecondition("then no collective ties it to the others any more");
    }
  }
  ClockAlignment alignment = TakeLikely(mended.table, mended.options, solved);
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

// For collectives that contradict each other: takes back changes of clocks until they no longer do. Where
// one change explains all, it is where nothing else can be why; else the largest that ends of collectives
// show is taken back first. Returns the contradiction when they still contradict each other then.
absl::StatusOr<ClockAlignment> AlignAcrossJumps(const CollectiveTable& table,
                                                const ProbeFreeOptions& options,
                                                const absl::Status& refused,
                                                std::optional<Contradiction> contradiction) {
  const int64_t contradiction_ps = contradiction->excess_ps;
  Mended mended{table, options, {}, {}};
  std::set<uint32_t> suspects;
  std::string why_not;
  while (mended.jumps.size() < kMostJumps) {
    const std::optional<ClockJump> seen = FindClockJump(mended.table, options.reference_node);
    if (mended.jumps.empty() && !seen.has_value() && MayDriftInstead(table, options)) break;
    const OneJump one = FindOneJump(mended, *contradiction, seen);
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
    const absl::StatusOr<Solved> solved =
        Solve(mended.table, mended.options, mended.loose, &contradiction);
    if (!solved.ok()) continue;
    absl::StatusOr<ClockAlignment> alignment = AlignMended(mended, *solved);
    if (!alignment.ok()) {
      why_not = std::string(alignment.status().message());
      break;
    }
    if (otherwise.has_value()) {
      ASSIGN_OR_RETURN(const Solved other,
                       Solve(otherwise->table, otherwise->options, otherwise->loose));
      ASSIGN_OR_RETURN(const ClockAlignment aligned, AlignMended(*otherwise, other));
      DoubtWhose(aligned, &*alignment);
      return alignment;
    }
    for (const ClockJump& jump : alignment->jumps) {
      if (jump.or_node.has_value()) DoubtWhose(jump, options.reference_node, &*alignment);
    }
    return alignment;
  }
  return NameSuspect(options, mended.jumps, suspects, refused, contradiction_ps, why_not);
}

}  // namespace

absl::StatusOr<ClockAlignment> AlignByCollectives(const CollectiveTable& table,
                                                  const ProbeFreeOptions& options) {
  std::optional<Contradiction> contradiction;
  const absl::StatusOr<Solved> solved = Solve(table, options, {}, &contradiction);
  if (solved.ok()) return TakeLikely(table, options, *solved);
  if (!contradiction.has_value()) return solved.status();
  if (options.clocks_may_jump) {
    return AlignAcrossJumps(table, options, solved.status(), contradiction);
  }
  std::vector<ClockJump> jumps;
  if (auto seen = FindClockJump(table, options.reference_node)) jumps.push_back(*std::move(seen));
  return NameSuspect(options, jumps, {}, solved.status(), contradiction->excess_ps,
                     "executions are matched by their order, which may be wrong as well");
}

absl::StatusOr<ClockAlignment> AlignNearEstimate(const CollectiveTable& table,
                                                 const ProbeFreeOptions& options,
                                                 OffsetFunction estimate_ps) {
  ASSIGN_OR_RETURN(const Solved solved, Solve(table, options));
  const PointOffsets offsets_ps = Nearest(solved, estimate_ps);
  return Describe(solved, options, &offsets_ps, {});
}

absl::StatusOr<ClockAlignment> KeepClocks(const CollectiveTable& table,
                                          const ProbeFreeOptions& options) {
  ASSIGN_OR_RETURN(const Solved solved, Solve(table, options));
  PointOffsets zeros(table.node_count());
  for (uint32_t node = 0; node < zeros.size(); ++node) {
    zeros[node].resize(solved.bounds.upper_ps[node].size(), 0);
  }
  return Describe(solved, options, &zeros, LikelyClocks(table, options, solved));
}

}  // namespace meridian
