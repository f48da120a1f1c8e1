#include "astra_bridge/prediction/prediction_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/prediction/edge_domains.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/traffic_interval_timer.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/prediction/traffic_manifest.pb.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/graph_replay.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int kMaxFallbackDetails = 100;

// Sets engine, version and mode, and adds the warnings of the setup. To be called before the
// timing.
void AddTimingBasis(const TimingSetup& setup, TimingMode mode, PredictionReport* report) {
  const TimingEngine engine = setup.timing->engine();
  report->set_engine(engine.name);
  report->set_engine_version(engine.version);
  report->set_mode(mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
  for (const std::string& warning : setup.warnings) report->add_warnings(warning);
}

// Sets hits and misses, and adds the warnings of the cache, if there is one. To be called after the
// timing.
void AddCacheUse(const TimingSetup& setup, PredictionReport* report) {
  if (setup.cache == nullptr) return;
  report->set_cache_hits(setup.cache->stats().hits);
  report->set_cache_misses(setup.cache->stats().misses);
  for (const std::string& warning : setup.cache->warnings()) report->add_warnings(warning);
}

// Counts an edge, or a batch when the id is empty, that another than the engine timed; the first
// are listed.
void AddFallback(absl::string_view edge_id, absl::string_view reason, PredictionReport* report) {
  report->set_fallbacks(report->fallbacks() + 1);
  if (report->fallback_details_size() == kMaxFallbackDetails) return;
  FallbackReport* detail = report->add_fallback_details();
  detail->set_edge_id(std::string(edge_id));
  detail->set_reason(std::string(reason));
}

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
    if (options_.mode == TimingMode::kSnapshot) AddTraffic();
    AddNotPriced();
    AddCacheUse(setup_, &report_);
    return std::move(report_);
  }

 private:
  WorkloadPrediction* workload() { return report_.mutable_workload(); }

  void AddSummary() {
    AddTimingBasis(setup_, options_.mode, &report_);
    report_.set_iteration_ns(prediction_.times.replay.makespan_ns);
    workload()->set_ranks(static_cast<int64_t>(graph_.Ranks().size()));
    workload()->set_nodes(static_cast<int64_t>(graph_.node_count()));
    workload()->set_distinct_edges(static_cast<int64_t>(timer_.shape_count()));
    workload()->set_isolated_iteration_ns(prediction_.isolated_makespan_ns);
    workload()->set_critical_communication_ns(CriticalCommunicationNs());
    workload()->set_partition(std::string(TrafficPartitionName(options_.partition)));
    workload()->set_coalesce_below_bytes(options_.coalesce_below_bytes);
  }

  int64_t CriticalCommunicationNs() const {
    int64_t sum_ns = 0;
    for (const CriticalStep& step : ReplayCriticalPath(graph_, match_, prediction_.times.replay)) {
      if (graph_.communication(step.node) != nullptr) sum_ns += step.end_ns - step.start_ns;
    }
    return sum_ns;
  }

  void AddEdges() {
    std::vector<bool> in_fallback(edges_.size(), false);
    for (size_t k = 0; k < prediction_.traffic.size(); ++k) {
      if (!timer_.batch(prediction_.batches[k]).is_fallback()) continue;
      for (const CommEdgeIndex edge : prediction_.traffic[k].members) in_fallback[edge] = true;
    }
    for (CommEdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      const EdgeEstimate& isolated = timer_.isolated(edge);
      EdgePrediction* added = report_.add_edges();
      added->set_id(edges_[edge].id);
      added->set_seconds(prediction_.seconds[edge]);
      added->set_isolated_seconds(isolated.seconds);
      added->set_fallback(isolated.is_fallback() || in_fallback[edge]);
      added->set_name(std::string(graph_.name(prediction_.edges.nodes[edge])));
      added->set_kind(std::string(CollectiveKindName(edges_[edge].kind)));
      added->set_bytes(edges_[edge].bytes);
      added->set_start_ns(prediction_.times.intervals[edge].start_ns);
      if (isolated.is_fallback()) {
        AddFallback(edges_[edge].id, isolated.fallback_reason, &report_);
      }
    }
  }

  void AddKinds() {
    std::map<CollectiveKind, std::vector<CommEdgeIndex>> edges_of_kind;
    for (CommEdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      edges_of_kind[edges_[edge].kind].push_back(edge);
    }
    for (const auto& [kind, edges] : edges_of_kind) {
      double seconds = 0, isolated_seconds = 0;
      for (const CommEdgeIndex edge : edges) {
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
    const TrafficInflation inflation =
        SummariseInflation(timer_, prediction_.traffic, prediction_.batches);
    report_.set_inflation(inflation.over_longest);
    workload()->set_inflation_over_sum(inflation.over_sum);
    workload()->set_max_inflation(inflation.max_over_longest);
    workload()->set_contended_snapshots(inflation.contended);
  }

  void AddTraffic() {
    report_.set_snapshots(static_cast<int64_t>(prediction_.traffic.size()));
    workload()->set_extractions(prediction_.extractions);
    workload()->set_changed_share(prediction_.changed_share);
    workload()->set_distinct_snapshots(static_cast<int64_t>(timer_.batch_count()));
    const std::vector<bool> takes_part =
        EdgesInTrafficIntervals(edges_, options_.coalesce_below_bytes);
    const std::vector<bool> uses_network = EdgesInTrafficIntervals(edges_, 0);
    workload()->set_coalesced_edges(std::count(uses_network.begin(), uses_network.end(), true) -
                                    std::count(takes_part.begin(), takes_part.end(), true));
    AddBatches();
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
  const TrafficIntervalTimer& timer_;
  PredictionReport report_;
};

void AddEdge(const IterationPrediction& prediction, const ExecutionGraph& graph,
             CommEdgeIndex index, TrafficManifest* manifest) {
  const CommEdge& edge = prediction.edges.edges[index];
  ManifestEdge* added = manifest->add_edges();
  added->set_id(edge.id);
  added->set_name(std::string(graph.name(prediction.edges.nodes[index])));
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
  added->mutable_participants()->Add(edge.participants.begin(), edge.participants.end());
  added->set_group_id(edge.group_id);
  added->set_topology_key(edge.topology_key);
  added->set_isolated_seconds(prediction.timer->isolated(index).seconds);
  added->set_fallback_reason(prediction.timer->isolated(index).fallback_reason);
  added->set_start_ns(prediction.edge_intervals[index].start_ns);
  added->set_end_ns(prediction.edge_intervals[index].end_ns);
  added->set_seconds(prediction.seconds[index]);
  added->set_predicted_start_ns(prediction.times.intervals[index].start_ns);
  added->set_predicted_end_ns(prediction.times.intervals[index].end_ns);
}

void AddInterval(const IterationPrediction& prediction, size_t number, TrafficManifest* manifest) {
  const TrafficInterval& interval = prediction.traffic[number];
  ManifestInterval* added = manifest->add_snapshots();
  added->set_start_ns(interval.start_ns);
  added->set_end_ns(interval.end_ns);
  added->set_batch(prediction.batches[number]);
  const std::vector<CommEdgeIndex> members = prediction.timer->BatchMembers(interval);
  added->mutable_edges()->Add(members.begin(), members.end());
  added->set_bytes(TotalBytes(prediction.edges.edges, members));
}

void AddBatch(const BatchEstimate& batch, TrafficManifest* manifest) {
  ManifestBatch* added = manifest->add_batches();
  added->mutable_seconds()->Add(batch.seconds.begin(), batch.seconds.end());
  added->set_makespan_seconds(batch.makespan_seconds);
  added->set_inflation(batch.inflation);
  added->set_inflation_over_sum(InflationOverSum(batch));
  added->set_rule(std::string(BatchRuleName(batch.rule)));
  added->set_fallback_reason(batch.fallback_reason);
}

void AddEdge(const CommEdge& edge, const EdgeEstimate& isolated, double seconds,
             PredictionReport* report) {
  EdgePrediction* prediction = report->add_edges();
  prediction->set_id(edge.id);
  prediction->set_seconds(seconds);
  prediction->set_isolated_seconds(isolated.seconds);
  prediction->set_fallback(isolated.is_fallback());
  if (isolated.is_fallback()) AddFallback(edge.id, isolated.fallback_reason, report);
}

int64_t ToNs(double seconds) { return std::llround(seconds * 1e9); }

absl::Status PredictEachAlone(NetworkTiming& timing, const std::vector<CommEdge>& edges,
                              absl::FunctionRef<void(uint64_t)> progress,
                              PredictionReport* report) {
  double longest = 0;
  for (const CommEdge& edge : edges) {
    ASSIGN_OR_RETURN(const EdgeEstimate estimate, timing.EstimateEdge(edge));
    AddEdge(edge, estimate, estimate.seconds, report);
    longest = std::max(longest, estimate.seconds);
    progress(static_cast<uint64_t>(report->edges_size()));
  }
  report->set_iteration_ns(ToNs(longest));
  report->set_inflation(1);
  return absl::OkStatus();
}

absl::Status PredictTogether(NetworkTiming& timing, const std::vector<CommEdge>& edges,
                             PredictionReport* report) {
  ASSIGN_OR_RETURN(const BatchEstimate batch, timing.EstimateBatch(edges));
  for (size_t i = 0; i < edges.size(); ++i) {
    AddEdge(edges[i], batch.isolated[i], batch.seconds[i], report);
  }
  if (batch.is_fallback()) {
    for (EdgePrediction& edge : *report->mutable_edges()) edge.set_fallback(true);
    AddFallback("", batch.fallback_reason, report);
  }
  report->set_iteration_ns(ToNs(batch.makespan_seconds));
  report->set_inflation(batch.inflation);
  report->set_snapshots(1);
  report->set_batch_rule(std::string(BatchRuleName(batch.rule)));
  return absl::OkStatus();
}

}  // namespace

PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match) {
  return ReportMaker(prediction, options, setup, graph, match).Make();
}

TrafficManifest MakeTrafficManifest(const IterationPrediction& prediction,
                                    const IterationOptions& options, const TimingEngine& engine,
                                    const ExecutionGraph& graph) {
  TrafficManifest manifest;
  manifest.set_engine(engine.name);
  manifest.set_engine_version(engine.version);
  manifest.set_partition(std::string(TrafficPartitionName(options.partition)));
  manifest.set_coalesce_below_bytes(options.coalesce_below_bytes);
  manifest.set_extractions(prediction.extractions);
  manifest.set_isolated_iteration_ns(prediction.isolated_makespan_ns);
  manifest.set_iteration_ns(prediction.times.replay.makespan_ns);
  for (CommEdgeIndex edge = 0; edge < prediction.edges.edges.size(); ++edge) {
    AddEdge(prediction, graph, edge, &manifest);
  }
  for (size_t number = 0; number < prediction.traffic.size(); ++number) {
    AddInterval(prediction, number, &manifest);
  }
  for (BatchIndex batch = 0; batch < prediction.timer->batch_count(); ++batch) {
    AddBatch(prediction.timer->batch(batch), &manifest);
  }
  return manifest;
}

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, CommEdgeList list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  PredictionReport report;
  AddTimingBasis(setup, mode, &report);
  report.set_duplicates_dropped(list.duplicates_dropped);
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &list.edges));
  if (mode == TimingMode::kIsolated) {
    RETURN_IF_ERROR(PredictEachAlone(*setup.timing, list.edges, progress, &report));
  } else {
    RETURN_IF_ERROR(PredictTogether(*setup.timing, list.edges, &report));
  }
  AddCacheUse(setup, &report);
  return report;
}

}  // namespace meridian
