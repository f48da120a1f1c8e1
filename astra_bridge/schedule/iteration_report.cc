#include "astra_bridge/schedule/iteration_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/prediction_basis.h"
#include "astra_bridge/schedule/snapshot_collector.h"
#include "astra_bridge/schedule/snapshot_statistics.h"
#include "astra_bridge/schedule/snapshot_timer.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/graph/graph_replay.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kSlowestSnapshots = 20;
constexpr int kNamedMembers = 8;

// Fills in the parts of a report one after the other.
class ReportMaker {
 public:
  ReportMaker(const IterationPrediction& prediction, const IterationOptions& options,
              const TimingSetup& setup, const ExecutionGraph& graph,
              const CommunicationMatch& match)
      : prediction_(prediction),
        options_(options),
        setup_(setup),
        graph_(graph),
        match_(match),
        edges_(prediction.edges.edges),
        timer_(*prediction.timer) {}

  PredictionReport Make() {
    AddSummary();
    AddEdges();
    AddKinds();
    AddInflation();
    if (options_.mode == TimingMode::kSnapshot) AddSnapshots();
    AddNotPriced();
    AddCacheUse(setup_, &report_);
    return std::move(report_);
  }

 private:
  WorkloadPrediction* workload() { return report_.mutable_workload(); }

  void AddSummary() {
    AddTimingBasis(setup_, options_.mode, &report_);
    report_.set_iteration_ns(prediction_.schedule.replay.makespan_ns);
    workload()->set_ranks(static_cast<int64_t>(graph_.Ranks().size()));
    workload()->set_nodes(static_cast<int64_t>(graph_.node_count()));
    workload()->set_distinct_edges(static_cast<int64_t>(timer_.shape_count()));
    workload()->set_isolated_iteration_ns(prediction_.isolated_makespan_ns);
    workload()->set_critical_communication_ns(CriticalCommunicationNs());
    workload()->set_partition(std::string(SnapshotPartitionName(options_.partition)));
    workload()->set_coalesce_below_bytes(options_.coalesce_below_bytes);
    PredictionCost* cost = workload()->mutable_cost();
    cost->set_timing_edges_seconds(absl::ToDoubleSeconds(prediction_.cost.timing_edges));
    cost->set_timing_snapshots_seconds(absl::ToDoubleSeconds(prediction_.cost.timing_snapshots));
    cost->set_replaying_seconds(absl::ToDoubleSeconds(prediction_.cost.replaying));
    cost->set_collecting_seconds(absl::ToDoubleSeconds(prediction_.cost.collecting));
  }

  int64_t CriticalCommunicationNs() const {
    int64_t sum_ns = 0;
    for (const CriticalStep& step :
         ReplayCriticalPath(graph_, match_, prediction_.schedule.replay)) {
      if (graph_.communication(step.node) != nullptr) sum_ns += step.end_ns - step.start_ns;
    }
    return sum_ns;
  }

  void AddEdges() {
    std::vector<bool> in_fallback(edges_.size(), false);
    for (size_t k = 0; k < prediction_.snapshots.size(); ++k) {
      if (!timer_.batch(prediction_.batches[k]).is_fallback()) continue;
      for (const EdgeIndex edge : prediction_.snapshots[k].members) in_fallback[edge] = true;
    }
    for (EdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      const EdgeEstimate& isolated = timer_.isolated(edge);
      EdgePrediction* added = report_.add_edges();
      added->set_id(edges_[edge].id);
      added->set_seconds(prediction_.seconds[edge]);
      added->set_isolated_seconds(isolated.seconds);
      added->set_fallback(isolated.is_fallback() || in_fallback[edge]);
      added->set_name(std::string(graph_.name(prediction_.edges.nodes[edge])));
      added->set_kind(std::string(CollectiveKindName(edges_[edge].kind)));
      added->set_bytes(edges_[edge].bytes);
      added->set_start_ns(prediction_.schedule.intervals[edge].start_ns);
      if (isolated.is_fallback()) {
        AddFallback(edges_[edge].id, isolated.fallback_reason, &report_);
      }
    }
  }

  void AddKinds() {
    std::map<CollectiveKind, std::vector<EdgeIndex>> edges_of_kind;
    for (EdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      edges_of_kind[edges_[edge].kind].push_back(edge);
    }
    for (const auto& [kind, edges] : edges_of_kind) {
      double seconds = 0, isolated_seconds = 0;
      for (const EdgeIndex edge : edges) {
        seconds += prediction_.seconds[edge];
        isolated_seconds += timer_.isolated(edge).seconds;
      }
      KindPrediction* added = workload()->add_kinds();
      added->set_kind(std::string(CollectiveKindName(kind)));
      added->set_edges(static_cast<int64_t>(edges.size()));
      added->set_bytes(TotalBytes(edges_, edges));
      added->set_seconds(seconds);
      added->set_isolated_seconds(isolated_seconds);
    }
  }

  void AddInflation() {
    const SnapshotInflation inflation =
        SummariseInflation(timer_, prediction_.snapshots, prediction_.batches);
    report_.set_inflation(inflation.over_longest);
    workload()->set_inflation_over_sum(inflation.over_sum);
    workload()->set_max_inflation(inflation.max_over_longest);
    workload()->set_contended_snapshots(inflation.contended);
  }

  void AddSnapshots() {
    report_.set_snapshots(static_cast<int64_t>(prediction_.snapshots.size()));
    workload()->set_extractions(prediction_.extractions);
    workload()->set_changed_share(prediction_.changed_share);
    workload()->set_distinct_snapshots(static_cast<int64_t>(timer_.batch_count()));
    const std::vector<bool> takes_part = EdgesInSnapshots(edges_, options_.coalesce_below_bytes);
    const std::vector<bool> uses_network = EdgesInSnapshots(edges_, 0);
    workload()->set_coalesced_edges(std::count(uses_network.begin(), uses_network.end(), true) -
                                    std::count(takes_part.begin(), takes_part.end(), true));
    AddBatches();
    AddSlowest();
  }

  void AddBatches() {
    std::set<BatchRule> rules;
    for (BatchIndex i = 0; i < timer_.batch_count(); ++i) {
      const BatchEstimate& batch = timer_.batch(i);
      if (batch.seconds.size() > 1) rules.insert(batch.rule);
      if (batch.is_fallback()) AddFallback("", batch.fallback_reason, &report_);
    }
    report_.set_batch_rule(absl::StrJoin(rules, ", ", [](std::string* out, BatchRule rule) {
      absl::StrAppend(out, BatchRuleName(rule));
    }));
  }

  void AddSlowest() {
    for (const BatchUse& use :
         SlowestBatches(timer_, prediction_.snapshots, prediction_.batches, kSlowestSnapshots)) {
      SnapshotPrediction* added = workload()->add_slowest_snapshots();
      added->set_occurrences(use.occurrences);
      added->set_total_ns(use.total_ns);
      DescribeSnapshot(prediction_.snapshots[use.first_snapshot], timer_.batch(use.batch), added);
    }
  }

  void DescribeSnapshot(const Snapshot& snapshot, const BatchEstimate& batch,
                        SnapshotPrediction* added) {
    added->set_start_ns(snapshot.start_ns);
    added->set_edges(static_cast<int64_t>(snapshot.members.size()));
    added->set_makespan_seconds(batch.makespan_seconds);
    added->set_inflation(batch.inflation);
    added->set_inflation_over_sum(InflationOverSum(batch));
    added->set_fallback(batch.is_fallback());
    added->set_bytes(TotalBytes(edges_, snapshot.members));
    for (const EdgeIndex edge : snapshot.members) {
      if (added->edge_ids_size() == kNamedMembers) break;
      added->add_edge_ids(edges_[edge].id);
    }
  }

  void AddNotPriced() {
    for (const auto& [type, count] : prediction_.edges.not_priced) {
      report_.add_warnings(absl::StrCat(WithThousands(count), " collectives of type ", type,
                                        " last as long as in the traces: no network timing "
                                        "knows them"));
    }
  }

  const IterationPrediction& prediction_;
  const IterationOptions& options_;
  const TimingSetup& setup_;
  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const std::vector<CommEdge>& edges_;
  const SnapshotTimer& timer_;
  PredictionReport report_;
};

}  // namespace

PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match) {
  return ReportMaker(prediction, options, setup, graph, match).Make();
}

}  // namespace meridian
