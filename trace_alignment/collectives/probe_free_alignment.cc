#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

// Adds whose clock may have been changed, and why that was not mended: the largest change that was
// seen, if it can be why the collectives contradict each other by that much, else all clocks of which
// one change, or several, would explain it.
absl::Status NameSuspect(const ProbeFreeOptions& options, const std::vector<ClockJump>& jumps,
                         const std::set<uint32_t>& suspects, const absl::Status& contradiction,
                         int64_t excess_ps) {
  const auto refuse = [&](absl::Span<const uint32_t> nodes, absl::string_view what) {
    const auto append_id = [&](std::string* out, uint32_t node) {
      absl::StrAppend(out, NodeId(options, node));
    };
    return FailedPrecondition(contradiction.message(), ". The clock of node ",
                              absl::StrJoin(nodes, " or ", append_id), what);
  };
  if (!jumps.empty() && std::abs(jumps[0].by_ps()) >= excess_ps / 2) {
    const ClockJump& jump = jumps[0];
    absl::string_view why_not = "the rest contradicts itself, too";
    if (!options.clocks_may_jump) {
      why_not = "executions are matched by their order, which may be wrong as well";
    } else if (!jump.GoesUp()) {
      why_not = jump.by_ps() < 0 ? "then it shows times twice, which cannot be told apart"
                                 : "there are collectives in the time that it skipped then";
    }
    std::vector<uint32_t> nodes = {jump.node};
    if (jump.or_node.has_value()) nodes.push_back(*jump.or_node);
    return refuse(nodes,
                  absl::StrCat(" seems to be changed by ", FormatMicros(jump.by_ps()), " us at ",
                               FormatMicros(jump.knots.front().shown_ps), " us, but ", why_not));
  }
  if (suspects.empty()) return contradiction;
  return refuse(
      std::vector<uint32_t>(suspects.begin(), suspects.end()),
      suspects.size() == 1
          ? " seems to be changed, but not once and for all: more than once, or back over "
            "times that it had shown"
          : " seems to be changed: the collectives do not tell which");
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

// Returns the knots with one at that time more, on the line between its neighbours.
std::vector<OffsetKnot> WithKnot(std::vector<OffsetKnot> knots, int64_t time_ps) {
  const auto after = std::find_if(knots.begin(), knots.end(),
                                  [&](const OffsetKnot& knot) { return knot.time_ps >= time_ps; });
  if (after != knots.end() && after->time_ps == time_ps) return knots;
  OffsetKnot knot = {time_ps, after == knots.end() ? knots.back().offset_ps : after->offset_ps};
  if (after != knots.end() && after != knots.begin()) {
    const OffsetKnot& before = *(after - 1);
    const double share = static_cast<double>(time_ps - before.time_ps) /
                         static_cast<double>(after->time_ps - before.time_ps);
    knot.offset_ps =
        before.offset_ps + static_cast<int64_t>(std::floor(
                               share * static_cast<double>(after->offset_ps - before.offset_ps)));
  }
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
  // Starts and ends of three executions.
  static constexpr size_t kFewestTimes = 6;

  CutFinder(const Mended& mended, uint32_t node)
      : mended_(mended),
        node_(node),
        constraints_(MakeConstraints(mended.table, mended.options).constraints) {
    for (size_t p = 0; p < constraints_.point_count(node); ++p) {
      const int64_t time_ps = constraints_.time_ps(node, p);
      if (times_ps_.empty() || times_ps_.back() != time_ps) times_ps_.push_back(time_ps);
    }
  }

  // Whether that may be why at all.
  bool IsPossible() const { return times_ps_.size() > 1 && Explains(0, times_ps_.size() - 1); }

  // Finds from when to when the clock must have been set, once; false when that was not all that
  // happened. Whatever is loose between any two times explains more than what is loose in less.
  bool Find() {
    const size_t last = times_ps_.size() - 1;
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
    // One or two executions that are matched wrongly look the same.
    const bool is_shown =
        first_gap_ + 1 >= kFewestTimes && last_gap_ + 1 + kFewestTimes <= last + 1;
    return is_shown && first_gap_ <= last_gap_ && FindGap();
  }

  LooseStretch Stretch() const { return {node_, times_ps_[first_gap_], times_ps_[last_gap_ + 1]}; }
  // The times between which the clock is taken to have been set: there it suffices.
  int64_t gap_begin_ps() const { return times_ps_[gap_]; }
  int64_t gap_end_ps() const { return times_ps_[gap_ + 1]; }

 private:
  // Whether nothing contradicts itself any more if the clock may be set between two of its times.
  bool Explains(size_t from, size_t to) const {
    std::vector<LooseStretch> loose = mended_.loose;
    loose.push_back({node_, times_ps_[from], times_ps_[to]});
    constraints_.Loosen(loose);
    OffsetBounds bounds;
    return !constraints_.FindBounds(&bounds).has_value();
  }

  // Of the gaps that suffice alone, looks for the widest among some: a clock that is set forward
  // skips time.
  bool FindGap() {
    constexpr size_t kMostGaps = 24;
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

  int64_t WidthPs(size_t gap) const { return times_ps_[gap + 1] - times_ps_[gap]; }

  const Mended& mended_;
  const uint32_t node_;
  mutable DifferenceConstraints constraints_;
  // When the clock's points are, each time once.
  std::vector<int64_t> times_ps_;
  size_t first_gap_ = 0;
  size_t last_gap_ = 0;
  size_t gap_ = 0;
};

// A change of a clock, and the stretch in which it must have happened. Where it may have been another
// clock (ClockJump::or_node), also what is certain then.
struct FoundJump {
  ClockJump jump;
  LooseStretch stretch;
  std::optional<Solved> otherwise;
};

// Returns the change in that cut: as the ends of collectives tell it, within what is certain.
std::optional<FoundJump> JumpIn(const CutFinder& cut, uint32_t node, const Mended& mended) {
  FoundJump found;
  found.stretch = cut.Stretch();
  std::vector<LooseStretch> loose = mended.loose;
  loose.push_back(found.stretch);
  const absl::StatusOr<Solved> solved = Solve(mended.table, mended.options, loose);
  if (!solved.ok() || !solved->bounds.reachable[node]) return std::nullopt;
  const SizeBounds size = ChangeIn(found.stretch, *solved);
  const int64_t begin_ps = cut.gap_begin_ps(), end_ps = cut.gap_end_ps();
  const int64_t by_ps = std::clamp(ChangeOfClock(mended.table, node, begin_ps, end_ps)
                                       .value_or(FloorMean(size.least_ps, size.most_ps)),
                                   size.least_ps, size.most_ps);
  found.jump.node = node;
  found.jump.knots = {{begin_ps, begin_ps}, {end_ps, end_ps - by_ps}};
  found.jump.FitInGap();
  if (!found.jump.GoesUp()) return std::nullopt;
  return found;
}

// Looks for one clock whose change is why the collectives contradict each other: of those that may be,
// the one that ends of collectives show to have changed (`seen`, may be absent); of two without that,
// either. Absent when it is none, or any of several, which it names.
std::optional<FoundJump> FindOneJump(const Mended& mended, const Contradiction& contradiction,
                                     const std::optional<ClockJump>& seen,
                                     std::set<uint32_t>* suspects) {
  // Each clock takes some 25 solutions.
  constexpr size_t kMostMembers = size_t{1} << 21, kMostNodes = 16;
  std::set<uint32_t> nodes;
  for (const Contradiction::Step& step : contradiction.steps) nodes.insert(step.clock);
  std::vector<FoundJump> found;
  suspects->clear();
  if (mended.table.members().size() > kMostMembers || nodes.size() > kMostNodes)
    return std::nullopt;
  for (const uint32_t node : nodes) {
    CutFinder cut(mended, node);
    if (!cut.IsPossible()) continue;
    suspects->insert(node);
    if (!cut.Find()) continue;
    std::optional<FoundJump> jump = JumpIn(cut, node, mended);
    if (jump.has_value()) found.push_back(*std::move(jump));
  }
  auto chosen = std::find_if(found.begin(), found.end(), [&](const FoundJump& jump) {
    return seen.has_value() && seen->node == jump.jump.node;
  });
  const bool is_seen = chosen != found.end();
  if (!is_seen && (found.empty() || suspects->size() > 2)) return std::nullopt;
  if (!is_seen) {
    chosen = found[0].jump.node == mended.options.reference_node ? found.end() - 1 : found.begin();
  }
  for (const uint32_t node : *suspects) {
    if (node == chosen->jump.node || (is_seen && seen->or_node != node)) continue;
    chosen->jump.or_node = node;
    const auto other = std::find_if(found.begin(), found.end(),
                                    [&](const FoundJump& jump) { return jump.jump.node == node; });
    std::vector<LooseStretch> loose = mended.loose;
    loose.push_back(other != found.end() ? other->stretch
                                         : LooseStretch{node, -kMaxRunTimePs, kMaxRunTimePs});
    absl::StatusOr<Solved> otherwise = Solve(mended.table, mended.options, loose);
    if (otherwise.ok()) chosen->otherwise.emplace(*std::move(otherwise));
  }
  return std::move(*chosen);
}

// Whether the collectives agree if clocks may drift ten times as fast: such a clock looks like one
// that was set, but for ends that show when.
bool MayDriftInstead(const CollectiveTable& table, ProbeFreeOptions options) {
  options.max_drift_ppm = std::min(10 * options.max_drift_ppm, 1e6);
  return Solve(table, options).ok();
}

// Says how far the clocks may be off because it is not known by how much they were changed: that of
// the node, or those of the others to the reference if it is that.
void DoubtSizes(const Mended& mended, const Solved& solved, ClockAlignment* alignment) {
  for (size_t j = 0; j < alignment->jumps.size(); ++j) {
    const SizeBounds rest = ChangeIn(mended.loose[j], solved);
    ClockJump& jump = alignment->jumps[j];
    jump.uncertainty_ps = std::max(std::abs(rest.least_ps), std::abs(rest.most_ps));
    for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
      NodeOffset& node = alignment->nodes[n];
      if (!node.reachable || (jump.node != mended.options.reference_node && n != jump.node))
        continue;
      node.uncertainty_ps =
          std::min(node.certified_uncertainty_ps, node.uncertainty_ps + jump.uncertainty_ps);
      node.uncertainty_max_ps += jump.uncertainty_ps;
    }
  }
}

// Where another clock may have been changed, the clocks may be off by as much as what is certain then
// allows, and likely no more than by the change.
void DoubtWhose(const ClockJump& jump, const Solved& otherwise, uint32_t reference_node,
                ClockAlignment* alignment) {
  for (uint32_t n = 0; n < alignment->nodes.size(); ++n) {
    NodeOffset& node = alignment->nodes[n];
    const std::vector<int64_t>& lower_ps = otherwise.bounds.lower_ps[n];
    if (n == reference_node || !node.reachable || lower_ps.empty()) continue;
    const int64_t shown_ps = node.offset_at_ps + node.offset_ps;
    size_t point = 0;
    while (point + 1 < lower_ps.size() && otherwise.constraints.time_ps(n, point) < shown_ps) {
      ++point;
    }
    node.certified_uncertainty_ps =
        std::max({node.certified_uncertainty_ps, node.offset_ps - lower_ps[point],
                  otherwise.bounds.upper_ps[n][point] - node.offset_ps});
    const int64_t more_ps =
        std::min(std::abs(jump.by_ps()), node.certified_uncertainty_ps - node.uncertainty_ps);
    node.uncertainty_ps += more_ps;
    node.uncertainty_max_ps += more_ps;
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
  while (mended.jumps.size() < kMostJumps) {
    const std::optional<ClockJump> seen = FindClockJump(mended.table, options.reference_node);
    if (mended.jumps.empty() && !seen.has_value() && MayDriftInstead(table, options)) break;
    const std::optional<FoundJump> found = FindOneJump(mended, *contradiction, seen, &suspects);
    if (found.has_value()) {
      mended.Undo(found->jump, found->stretch);
    } else if (seen.has_value() && seen->GoesUp()) {
      mended.Undo(*seen, {seen->node, seen->knots.front().shown_ps, seen->knots.back().shown_ps});
    } else {
      if (seen.has_value()) mended.jumps.push_back(*seen);
      break;
    }
    const absl::StatusOr<Solved> solved =
        Solve(mended.table, mended.options, mended.loose, &contradiction);
    if (!solved.ok()) continue;
    const bool are_tied = std::all_of(
        mended.loose.begin(), mended.loose.end(),
        [&](const LooseStretch& stretch) { return solved->bounds.reachable[stretch.clock]; });
    if (!are_tied) break;
    ClockAlignment alignment = TakeLikely(mended.table, mended.options, *solved);
    RedoJumps(mended.jumps, &alignment);
    DoubtSizes(mended, *solved, &alignment);
    if (found.has_value() && found->otherwise.has_value()) {
      DoubtWhose(found->jump, *found->otherwise, options.reference_node, &alignment);
    }
    return alignment;
  }
  return NameSuspect(options, mended.jumps, suspects, refused, contradiction_ps);
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
  return NameSuspect(options, jumps, {}, solved.status(), contradiction->excess_ps);
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
