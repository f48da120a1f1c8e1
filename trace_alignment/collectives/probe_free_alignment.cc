#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/clock_bounds.h"
#include "trace_alignment/collectives/difference_constraints.h"
#include "trace_alignment/collectives/jump_alignment.h"
#include "trace_alignment/collectives/likely_clocks.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

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
// beyond them, the line goes on at some rate and the clock, which is not slewed there, at the opposite
// one.
int64_t LargestUncertaintyPs(const NodeView& view, const ProbeFreeOptions& options) {
  const auto drift_ps = [](int64_t elapsed_ps, double ppm) {
    return static_cast<int64_t>(
        std::ceil(static_cast<double>(std::max<int64_t>(0, elapsed_ps)) * ppm * 1e-6));
  };
  const double max_drift_ppm = view.constraints.MaxDriftPpm(view.node);
  const size_t last = view.size() - 1;
  int64_t largest_ps = 0;
  for (size_t p = 0; p <= last; ++p) {
    const int64_t before_ps = p > 0 ? view.TimePs(p) - view.TimePs(p - 1) : 0;
    const int64_t after_ps = p < last ? view.TimePs(p + 1) - view.TimePs(p) : 0;
    const int64_t away_ps = drift_ps(std::max(before_ps, after_ps) / 2, max_drift_ppm);
    largest_ps =
        std::max(largest_ps, view.UncertaintyPs(p, view.TimePs(p), view.CertifiedPs(p) + away_ps));
  }
  if (options.spans.empty()) return largest_ps;
  const ProfileSpan& span = options.spans[view.node];
  const double beyond_ppm = std::min(max_drift_ppm, options.max_drift_ppm);
  const auto beyond_ps = [&](size_t p, int64_t time_ps, int64_t elapsed_ps) {
    return view.UncertaintyPs(p, time_ps,
                              view.CertifiedPs(p) + 2 * drift_ps(elapsed_ps, beyond_ppm));
  };
  return std::max({largest_ps, beyond_ps(0, span.begin_ps, view.TimePs(0) - span.begin_ps),
                   beyond_ps(last, span.end_ps, span.end_ps - view.TimePs(last))});
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
    NodeOffset& stated = alignment.nodes[node];
    stated = StateOffset(view, solved.constraints.MaxDriftPpm(node));
    alignment.is_estimated |= stated.uncertainty_ps < stated.certified_uncertainty_ps;
    if (view.size() == 0) continue;
    stated.knots = KnotsOf(view);
    stated.uncertainty_max_ps = LargestUncertaintyPs(view, options);
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
        solved.constraints.MaxDriftPpm(n));
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

}  // namespace

absl::StatusOr<ClockAlignment> AlignByCollectives(const CollectiveTable& table,
                                                  const ProbeFreeOptions& options) {
  std::optional<Contradiction> contradiction;
  const absl::StatusOr<Solved> solved = Solve(table, options, {}, &contradiction);
  if (solved.ok()) return TakeLikely(table, options, *solved);
  if (!contradiction.has_value()) return solved.status();
  return AlignAcrossJumps(table, options, solved.status(), *contradiction, TakeLikely);
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
