#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/difference_constraints.h"
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

// What is taken for true about a table's collectives.
struct Premises {
  const CollectiveTable& table;
  const ProbeFreeOptions& options;
  // Within how much of each other the members of each instance end, kNoTolerance where that is not
  // known. Empty when it is not assumed of any instance.
  std::vector<int64_t> end_tolerances_ps;
};

// "Ends within the tolerance of each other" is happens-before of another kind: every end, less the
// tolerance, comes before every end.
template <typename OnHub, typename OnCause, typename OnEffect>
void ForEndsOf(const Premises& premises, uint32_t instance, OnHub on_hub, OnCause on_cause,
               OnEffect on_effect) {
  const int64_t tolerance_ps = premises.end_tolerances_ps[instance];
  if (tolerance_ps == kNoTolerance) return;
  const CollectiveTable& table = premises.table;
  const absl::Span<const CollectiveMember> members = table.MembersOf(table.instances()[instance]);
  on_hub(instance, table.NodeOf(members[0]));
  for (const CollectiveMember& member : members) {
    // Causes come before the hub by the least transfer, which does not separate ends.
    on_cause(table.NodeOf(member), member.end_ps - tolerance_ps - premises.options.min_transfer_ps);
    on_effect(table.NodeOf(member), member.end_ps);
  }
}

// Calls on_hub(instance, node) for each hub of the table, where the node is one that it touches;
// then on_cause(node, time_ps) and on_effect(node, time_ps) for what comes before and after it. A
// group, with or without root, is one hub; of a permute, each pair is one.
template <typename OnHub, typename OnCause, typename OnEffect>
void ForEachHub(const Premises& premises, OnHub on_hub, OnCause on_cause, OnEffect on_effect) {
  const CollectiveTable& table = premises.table;
  for (uint32_t i = 0; i < table.instances().size(); ++i) {
    const CollectiveInstance& instance = table.instances()[i];
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    if (!premises.end_tolerances_ps.empty()) {
      ForEndsOf(premises, i, on_hub, on_cause, on_effect);
    }
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

Counts Count(const Premises& premises) {
  const size_t nodes = premises.table.node_count();
  Counts counts = {std::vector<uint32_t>(nodes), std::vector<size_t>(nodes)};
  const auto count_point = [&](uint32_t node, int64_t) { ++counts.points[node]; };
  ForEachHub(
      premises, [&](uint32_t, uint32_t node) { ++counts.hubs[node]; }, count_point, count_point);
  return counts;
}

// Hubs are numbered node by node, so that a walk along a node's clock finds its own side by side.
Solved MakeConstraints(const Premises& premises) {
  const ProbeFreeOptions& options = premises.options;
  const Counts counts = Count(premises);
  std::vector<uint32_t> next_hub(counts.hubs.size());
  std::partial_sum(counts.hubs.begin(), counts.hubs.end() - 1, next_hub.begin() + 1);
  std::vector<uint32_t> instance_of_hub(next_hub.back() + counts.hubs.back());

  DifferenceConstraints constraints(
      premises.table.node_count(), instance_of_hub.size(),
      {options.reference_node, options.max_drift_ppm, options.min_transfer_ps});
  for (uint32_t node = 0; node < counts.points.size(); ++node) {
    constraints.Reserve(node, counts.points[node]);
  }
  uint32_t hub = 0;
  ForEachHub(
      premises,
      [&](uint32_t instance, uint32_t node) {
        hub = next_hub[node]++;
        instance_of_hub[hub] = instance;
      },
      [&](uint32_t node, int64_t time_ps) { constraints.AddCause(node, time_ps, hub); },
      [&](uint32_t node, int64_t time_ps) { constraints.AddEffect(node, time_ps, hub); });
  constraints.Sort();
  return {std::move(constraints), std::move(instance_of_hub), {}};
}

absl::Status Refuse(const Premises& premises, const Solved& built,
                    const Contradiction& contradiction) {
  const CollectiveTable& table = premises.table;
  constexpr size_t kInstancesToName = 8;
  std::set<uint32_t> nodes;
  std::vector<std::string> instances;
  for (const Contradiction::Step& step : contradiction.steps) {
    nodes.insert(step.clock);
    if (instances.size() == kInstancesToName) continue;
    instances.push_back(
        absl::StrCat(DescribeInstance(table, table.instances()[built.instance_of_hub[step.hub]]),
                     " (ends at ", FormatMicros(step.effect_ps), " us on node ", step.clock, ")"));
  }
  return FailedPrecondition(
      "collectives contradict each other by ", FormatMicros(contradiction.excess_ps), " us on node",
      nodes.size() == 1 ? " " : "s ", absl::StrJoin(nodes, ","), ": ",
      absl::StrJoin(instances, ", then "),
      contradiction.steps.size() > instances.size() ? ", and so on" : "",
      ". Probably one of them is matched with another execution; else a clock jumps or drifts by "
      "more than ",
      premises.options.max_drift_ppm, " ppm (--max_drift_ppm), or a transfer takes less than ",
      FormatMicros(premises.options.min_transfer_ps), " us (--min_transfer_ns)");
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

absl::StatusOr<Solved> Solve(const Premises& premises) {
  Solved solved = MakeConstraints(premises);
  const std::optional<Contradiction> contradiction = solved.constraints.FindBounds(&solved.bounds);
  if (contradiction.has_value()) return Refuse(premises, solved, *contradiction);
  return solved;
}

// Finds what follows from happens-before alone.
absl::StatusOr<Solved> SolveCertified(const CollectiveTable& table,
                                      const ProbeFreeOptions& options) {
  RETURN_IF_ERROR(CheckOptions(table, options));
  return Solve({table, options, {}});
}

// The bounds and the chosen offsets of one node's points.
struct NodeView {
  const DifferenceConstraints& constraints;
  uint32_t node;
  const std::vector<int64_t>& lower_ps;
  const std::vector<int64_t>& upper_ps;
  const std::vector<int64_t>& offsets_ps;

  size_t size() const { return offsets_ps.size(); }
  int64_t TimePs(size_t point) const { return constraints.time_ps(node, point); }
  int64_t UncertaintyPs(size_t point) const {
    return std::max(upper_ps[point] - offsets_ps[point], offsets_ps[point] - lower_ps[point]);
  }
};

// Returns the corners of the chosen offsets: a point between two of its own offset says nothing.
std::vector<OffsetKnot> KnotsOf(const NodeView& view) {
  std::vector<OffsetKnot> knots;
  for (size_t p = 0; p < view.size(); ++p) {
    const OffsetKnot knot = {view.TimePs(p), view.offsets_ps[p]};
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
  const double drift_ppm = ppm(view.offsets_ps[last] - view.offsets_ps[0]);
  const double least_ppm = std::max(-max_drift_ppm, ppm(view.lower_ps[last] - view.upper_ps[0]));
  const double most_ppm = std::min(max_drift_ppm, ppm(view.upper_ps[last] - view.lower_ps[0]));
  node->drift_ppm = drift_ppm;
  node->drift_uncertainty_ppm = std::max(most_ppm - drift_ppm, drift_ppm - least_ppm);
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
  int64_t largest_ps = view.UncertaintyPs(0);
  for (size_t p = 1; p < view.size(); ++p) {
    const int64_t away_ps = drift_ps((view.TimePs(p) - view.TimePs(p - 1)) / 2);
    largest_ps =
        std::max(largest_ps, std::max(view.UncertaintyPs(p - 1), view.UncertaintyPs(p)) + away_ps);
  }
  if (!span.has_value()) return largest_ps;
  const size_t last = view.size() - 1;
  return std::max({largest_ps,
                   view.UncertaintyPs(0) + 2 * drift_ps(view.TimePs(0) - span->begin_ps),
                   view.UncertaintyPs(last) + 2 * drift_ps(span->end_ps - view.TimePs(last))});
}

NodeOffset DescribeNode(const NodeView& view, double max_drift_ppm,
                        const std::optional<ProfileSpan>& span) {
  NodeOffset node;
  node.reachable = true;
  if (view.size() == 0) return node;
  node.knots = KnotsOf(view);
  const size_t middle = MiddlePoint(view);
  node.offset_ps = view.offsets_ps[middle];
  node.offset_at_ps = view.TimePs(middle) - node.offset_ps;
  node.uncertainty_ps = view.UncertaintyPs(middle);
  node.certified_uncertainty_ps = node.uncertainty_ps;
  node.uncertainty_max_ps = LargestUncertaintyPs(view, max_drift_ppm, span);
  StateDrift(view, max_drift_ppm, &node);
  return node;
}

ClockAlignment Describe(const Solved& solved, const ProbeFreeOptions& options,
                        const PointOffsets& offsets_ps) {
  const OffsetBounds& bounds = solved.bounds;
  ClockAlignment alignment;
  alignment.nodes.resize(offsets_ps.size());
  for (uint32_t node = 0; node < offsets_ps.size(); ++node) {
    if (!bounds.reachable[node]) continue;
    const NodeView view = {solved.constraints, node, bounds.lower_ps[node], bounds.upper_ps[node],
                           offsets_ps[node]};
    std::optional<ProfileSpan> span;
    if (!options.spans.empty()) span = options.spans[node];
    alignment.nodes[node] =
        DescribeNode(view, node == options.reference_node ? 0 : options.max_drift_ppm, span);
  }
  return alignment;
}

// Returns the estimate at all points of reachable nodes, moved to the bounds where it is outside.
PointOffsets Clamp(const DifferenceConstraints& constraints, const OffsetBounds& bounds,
                   OffsetFunction estimate_ps) {
  PointOffsets offsets_ps(constraints.clock_count());
  for (uint32_t node = 0; node < offsets_ps.size(); ++node) {
    for (size_t p = 0; p < bounds.lower_ps[node].size(); ++p) {
      offsets_ps[node].push_back(std::clamp(estimate_ps(node, constraints.time_ps(node, p)),
                                            bounds.lower_ps[node][p], bounds.upper_ps[node][p]));
    }
  }
  return offsets_ps;
}

constexpr int64_t kMinExecutions = 4;
constexpr int64_t kVariationFactor = 4;
constexpr int64_t kDurationDivisor = 32;

// What the executions of one instruction by one group have shown so far.
class Executions {
 public:
  // Adds an execution; the members are those of all ranks of the group, in the order of ranks.
  void Add(absl::Span<const CollectiveMember> members) {
    lags_ps_.resize(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const int64_t lag_ps = members[i].end_ps - members[0].end_ps;
      if (count_ > 0) variation_ps_ = std::max(variation_ps_, std::abs(lag_ps - lags_ps_[i]));
      lags_ps_[i] = lag_ps;
      shortest_ps_ = std::min(shortest_ps_, members[i].end_ps - members[i].start_ps);
    }
    ++count_;
  }

  bool suffice() const { return count_ >= kMinExecutions; }

  int64_t TolerancePs() const {
    if (!suffice() || variation_ps_ > kMaxRunTimePs / kVariationFactor) {
      return kNoTolerance;
    }
    return std::max(kVariationFactor * variation_ps_, shortest_ps_ / kDurationDivisor);
  }

 private:
  int64_t count_ = 0;
  // How long after the first member each member ended in the last execution.
  std::vector<int64_t> lags_ps_;
  int64_t variation_ps_ = 0;
  int64_t shortest_ps_ = kMaxRunTimePs;
};

// Returns the members in the order of ranks; in the table those of one node stand in the order of
// their starts. `sorted` is room for them.
absl::Span<const CollectiveMember> ByRank(absl::Span<const CollectiveMember> members,
                                          std::vector<CollectiveMember>* sorted) {
  const auto by_rank = [](const CollectiveMember& a, const CollectiveMember& b) {
    return a.rank < b.rank;
  };
  if (std::is_sorted(members.begin(), members.end(), by_rank)) return members;
  sorted->assign(members.begin(), members.end());
  std::sort(sorted->begin(), sorted->end(), by_rank);
  return *sorted;
}

bool IsUsable(const CollectiveTable& table, const CollectiveInstance& instance) {
  return IsSynchronising(table.OpOf(instance).kind) && instance.missing == 0 &&
         instance.member_count >= 2 && instance.group != CollectiveInstance::kNoGroup;
}

// An assumption is made only where it says much more than what is certain.
constexpr int64_t kWorthAssuming = 8;

// Returns the tolerances of the instances' ends that narrow an interval a lot: those far smaller
// than the uncertainty of a member's node; kNoTolerance for the others. Empty when there are none.
std::vector<int64_t> UsefulTolerances(const CollectiveTable& table,
                                      const ClockAlignment& certified) {
  std::vector<int64_t> tolerances_ps = EndTolerances(table);
  bool any = false;
  for (size_t i = 0; i < tolerances_ps.size(); ++i) {
    int64_t uncertainty_ps = 0;
    for (const CollectiveMember& member : table.MembersOf(table.instances()[i])) {
      const NodeOffset& node = certified.nodes[table.NodeOf(member)];
      if (node.reachable) uncertainty_ps = std::max(uncertainty_ps, node.uncertainty_ps);
    }
    if (tolerances_ps[i] >= uncertainty_ps / kWorthAssuming) tolerances_ps[i] = kNoTolerance;
    any |= tolerances_ps[i] != kNoTolerance;
  }
  if (!any) tolerances_ps.clear();
  return tolerances_ps;
}

// Returns the larger distance from the stated offset to either end of the certified interval of the
// same node. That is known where `certified` states it; bounds move no faster than clocks drift.
int64_t CertifiedUncertaintyPs(const NodeOffset& stated, const NodeOffset& certified,
                               const DriftBound& drift) {
  const int64_t stated_at_ps = stated.offset_at_ps + stated.offset_ps;
  const int64_t certified_at_ps = certified.offset_at_ps + certified.offset_ps;
  return certified.uncertainty_ps + std::abs(stated.offset_ps - certified.offset_ps) +
         drift.AllowancePs(std::abs(stated_at_ps - certified_at_ps));
}

// Returns the certified alignment, or what `describe` makes of the constraints with the assumption
// that members end together, if that says more and contradicts nothing.
template <typename DescribeSolved>
ClockAlignment WithEndAgreement(const CollectiveTable& table, const ProbeFreeOptions& options,
                                ClockAlignment certified, DescribeSolved describe) {
  if (!options.end_agreement) return certified;
  Premises premises = {table, options, UsefulTolerances(table, certified)};
  if (premises.end_tolerances_ps.empty()) return certified;
  const absl::StatusOr<Solved> solved = Solve(premises);
  if (!solved.ok()) return certified;
  ClockAlignment alignment = describe(*solved);
  alignment.assumes_end_agreement = true;
  for (size_t n = 0; n < alignment.nodes.size(); ++n) {
    if (n == options.reference_node) continue;
    alignment.nodes[n].certified_uncertainty_ps = CertifiedUncertaintyPs(
        alignment.nodes[n], certified.nodes[n], DriftBound(options.max_drift_ppm));
  }
  return alignment;
}

}  // namespace

absl::StatusOr<ClockAlignment> AlignByCollectives(const CollectiveTable& table,
                                                  const ProbeFreeOptions& options) {
  ASSIGN_OR_RETURN(const Solved solved, SolveCertified(table, options));
  const auto middle = [&](const Solved& of) {
    return Describe(of, options, MiddleSolution(of.bounds));
  };
  return WithEndAgreement(table, options, middle(solved), middle);
}

absl::StatusOr<ClockAlignment> AlignNearEstimate(const CollectiveTable& table,
                                                 const ProbeFreeOptions& options,
                                                 OffsetFunction estimate_ps) {
  ASSIGN_OR_RETURN(const Solved solved, SolveCertified(table, options));
  const DifferenceConstraints& constraints = solved.constraints;
  const PointOffsets offsets_ps =
      constraints.NearestSolution(solved.bounds, Clamp(constraints, solved.bounds, estimate_ps));
  return Describe(solved, options, offsets_ps);
}

absl::StatusOr<ClockAlignment> KeepClocks(const CollectiveTable& table,
                                          const ProbeFreeOptions& options) {
  ASSIGN_OR_RETURN(const Solved solved, SolveCertified(table, options));
  const auto kept = [&](const Solved& of) {
    PointOffsets zeros(table.node_count());
    for (uint32_t node = 0; node < zeros.size(); ++node) {
      zeros[node].resize(of.bounds.upper_ps[node].size(), 0);
    }
    return Describe(of, options, zeros);
  };
  return WithEndAgreement(table, options, kept(solved), kept);
}

std::vector<int64_t> EndTolerances(const CollectiveTable& table) {
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Executions> executions;
  // Those of ops that are too few, by kind and group.
  std::map<std::pair<CollectiveKind, std::vector<int64_t>>, Executions> of_kind;
  std::vector<CollectiveMember> sorted;
  const auto of_op = [&](const CollectiveInstance& instance) -> Executions& {
    return executions[{instance.op, instance.group}];
  };
  const auto pool = [&](const CollectiveInstance& instance) -> Executions& {
    const absl::Span<const int64_t> group = table.groups()[instance.group];
    return of_kind[{table.OpOf(instance).kind, {group.begin(), group.end()}}];
  };
  for (const CollectiveInstance& instance : table.instances()) {
    if (IsUsable(table, instance)) {
      of_op(instance).Add(ByRank(table.MembersOf(instance), &sorted));
    }
  }
  for (const CollectiveInstance& instance : table.instances()) {
    if (!IsUsable(table, instance) || of_op(instance).suffice()) continue;
    pool(instance).Add(ByRank(table.MembersOf(instance), &sorted));
  }
  std::vector<int64_t> tolerances_ps(table.instances().size(), kNoTolerance);
  for (size_t i = 0; i < tolerances_ps.size(); ++i) {
    const CollectiveInstance& instance = table.instances()[i];
    if (!IsUsable(table, instance)) continue;
    const Executions& known = of_op(instance);
    tolerances_ps[i] = (known.suffice() ? known : pool(instance)).TolerancePs();
  }
  return tolerances_ps;
}

}  // namespace meridian
