#include "astra_bridge/prediction/prediction_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/traffic_interval_timer.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Returns a report of what was asked, and the warnings of the setup. To be called before the timing.
PredictionReport StartReport(const TimingSetup& setup, TimingMode mode) {
  PredictionReport report;
  const TimingEngine engine = setup.timing->engine();
  report.set_engine(engine.name);
  report.set_engine_version(engine.version);
  report.set_mode(mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
  report.set_inflation(1);
  for (const std::string& warning : setup.warnings) report.add_warnings(warning);
  return report;
}

// Sets hits and misses, and adds the warnings of the cache, if there is one. To be called after the
// timing.
void AddCacheUse(const TimingSetup& setup, PredictionReport* report) {
  if (setup.cache == nullptr) return;
  report->set_cache_hits(setup.cache->stats().hits);
  report->set_cache_misses(setup.cache->stats().misses);
  for (const std::string& warning : setup.cache->warnings()) report->add_warnings(warning);
}

// Counts an edge or a batch that another than the engine timed; the reason is empty when none did.
void CountFallback(const std::string& reason, PredictionReport* report) {
  if (reason.empty()) return;
  report->set_fallbacks(report->fallbacks() + 1);
  if (report->fallback_reason().empty()) report->set_fallback_reason(reason);
}

EdgePrediction* AddEdge(const CommEdge& edge, const EdgeEstimate& isolated, double seconds,
                        PredictionReport* report) {
  EdgePrediction* added = report->add_edges();
  added->set_id(edge.id);
  added->set_seconds(seconds);
  added->set_isolated_seconds(isolated.seconds);
  added->set_fallback_reason(isolated.fallback_reason);
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
  CountFallback(isolated.fallback_reason, report);
  return added;
}

// Marks an edge of a batch that another than the engine timed.
void MarkFallback(const BatchEstimate& batch, EdgePrediction* edge) {
  if (edge->fallback_reason().empty()) edge->set_fallback_reason(batch.fallback_reason);
}

void AddTraffic(const IterationPrediction& prediction, PredictionReport* report) {
  const TrafficIntervalTimer& timer = *prediction.timer;
  report->set_snapshots(static_cast<int64_t>(prediction.traffic.size()));
  report->set_inflation(MeanInflation(timer, prediction.traffic, prediction.batches));
  std::set<absl::string_view> rules;
  for (BatchIndex i = 0; i < timer.batch_count(); ++i) {
    const BatchEstimate& batch = timer.batch(i);
    if (batch.seconds.size() > 1) rules.insert(BatchRuleName(batch.rule));
    CountFallback(batch.fallback_reason, report);
  }
  report->set_batch_rule(absl::StrJoin(rules, ", "));
  for (size_t k = 0; k < prediction.traffic.size(); ++k) {
    for (const CommEdgeIndex edge : prediction.traffic[k].members) {
      MarkFallback(timer.batch(prediction.batches[k]),
                   report->mutable_edges(static_cast<int>(edge)));
    }
  }
}

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
  report->set_iteration_ns(std::llround(longest * kNsPerSecond));
  return absl::OkStatus();
}

absl::Status PredictTogether(NetworkTiming& timing, const std::vector<CommEdge>& edges,
                             PredictionReport* report) {
  ASSIGN_OR_RETURN(const BatchEstimate batch, timing.EstimateBatch(edges));
  for (size_t i = 0; i < edges.size(); ++i) {
    MarkFallback(batch, AddEdge(edges[i], batch.isolated[i], batch.seconds[i], report));
  }
  CountFallback(batch.fallback_reason, report);
  report->set_iteration_ns(std::llround(batch.makespan_seconds * kNsPerSecond));
  report->set_inflation(batch.inflation);
  report->set_snapshots(1);
  report->set_batch_rule(std::string(BatchRuleName(batch.rule)));
  return absl::OkStatus();
}

}  // namespace

PredictionReport MakeIterationReport(const IterationPrediction& prediction, TimingMode mode,
                                     const TimingSetup& setup, const ExecutionGraph& graph) {
  PredictionReport report = StartReport(setup, mode);
  report.set_iteration_ns(prediction.times.replay.makespan_ns);
  report.mutable_workload()->set_isolated_iteration_ns(prediction.isolated_makespan_ns);
  for (CommEdgeIndex edge = 0; edge < prediction.edges.edges.size(); ++edge) {
    EdgePrediction* added = AddEdge(prediction.edges.edges[edge], prediction.timer->isolated(edge),
                                    prediction.seconds[edge], &report);
    added->set_name(std::string(graph.name(prediction.edges.nodes[edge])));
    added->set_start_ns(prediction.times.intervals[edge].start_ns);
  }
  if (mode == TimingMode::kSnapshot) AddTraffic(prediction, &report);
  for (const auto& [type, count] : prediction.edges.not_priced) {
    report.add_warnings(absl::StrCat(WithThousands(count), " collectives of type ", type,
                                     " last as long as in the traces: no network timing knows "
                                     "them"));
  }
  AddCacheUse(setup, &report);
  return report;
}

TrafficManifest MakeTrafficManifest(const IterationPrediction& prediction,
                                    const PredictionReport& report) {
  TrafficManifest manifest;
  manifest.set_engine(report.engine());
  manifest.set_engine_version(report.engine_version());
  *manifest.mutable_edges() = report.edges();
  for (int i = 0; i < manifest.edges_size(); ++i) {
    const std::vector<int32_t>& participants = prediction.edges.edges[i].participants;
    manifest.mutable_edges(i)->mutable_participants()->Add(participants.begin(),
                                                           participants.end());
  }
  for (size_t k = 0; k < prediction.traffic.size(); ++k) {
    const TrafficInterval& interval = prediction.traffic[k];
    const BatchEstimate& batch = prediction.timer->batch(prediction.batches[k]);
    const std::vector<CommEdgeIndex> members = prediction.timer->BatchMembers(interval);
    TrafficSnapshot* added = manifest.add_snapshots();
    added->set_start_ns(interval.start_ns);
    added->set_end_ns(interval.end_ns);
    added->mutable_edges()->Add(members.begin(), members.end());
    added->mutable_seconds()->Add(batch.seconds.begin(), batch.seconds.end());
    added->set_rule(std::string(BatchRuleName(batch.rule)));
    added->set_fallback_reason(batch.fallback_reason);
  }
  return manifest;
}

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, CommEdgeList list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  PredictionReport report = StartReport(setup, mode);
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
