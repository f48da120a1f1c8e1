#include "trace_alignment/collectives/clock_bounds.h"

#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

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
  return FailedPrecondition(
      "collectives contradict each other by ", FormatMicros(contradiction.excess_ps), " us on node",
      nodes.size() == 1 ? " " : "s ", absl::StrJoin(nodes, ","), ": ",
      absl::StrJoin(instances, ", then "),
      contradiction.steps.size() > instances.size() ? ", and so on" : "",
      ". Either one of them is matched with another execution, or a clock jumps or drifts by more "
      "than ",
      options.max_drift_ppm, " ppm (--max_drift_ppm), or a transfer takes less than ",
      FormatMicros(options.min_transfer_ps), " us (--min_transfer_ns)");
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

}  // namespace

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

absl::StatusOr<Solved> Solve(const CollectiveTable& table, const ProbeFreeOptions& options,
                             const std::vector<LooseStretch>& loose,
                             std::optional<Contradiction>* why) {
  RETURN_IF_ERROR(CheckOptions(table, options));
  Solved solved = MakeConstraints(table, options);
  solved.constraints.Loosen(loose);
  const std::optional<Contradiction> contradiction = solved.constraints.FindBounds(&solved.bounds);
  if (why != nullptr) *why = contradiction;
  if (contradiction.has_value()) return Refuse(table, options, solved, *contradiction);
  return solved;
}

int64_t NodeId(const ProbeFreeOptions& options, uint32_t node) {
  return options.node_ids.empty() ? node : options.node_ids[node];
}

}  // namespace meridian
