#include "astra_bridge/prediction/prediction_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/shared_transfers.h"
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

EdgePrediction* AddEdge(const CommEdge& edge, const EdgeEstimate& isolated, double seconds,
                        PredictionReport* report) {
  EdgePrediction* added = report->add_edges();
  added->set_id(edge.id);
  added->set_seconds(seconds);
  added->set_isolated_seconds(isolated.seconds);
  added->set_fallback_reason(isolated.fallback_reason);
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
  if (isolated.is_fallback()) {
    report->set_fallbacks(report->fallbacks() + 1);
    if (report->fallback_reason().empty()) report->set_fallback_reason(isolated.fallback_reason);
  }
  return added;
}

// Sets the mean of time together over time alone, weighed by the time alone.
void SetInflation(PredictionReport* report) {
  double together = 0, alone = 0;
  for (const EdgePrediction& edge : report->edges()) {
    together += edge.seconds();
    alone += edge.isolated_seconds();
  }
  report->set_inflation(alone > 0 ? together / alone : 1);
}

absl::StatusOr<std::vector<double>> TogetherSeconds(const TimingSetup& setup,
                                                    const std::vector<CommEdge>& edges,
                                                    const std::vector<EdgeEstimate>& isolated) {
  ASSIGN_OR_RETURN(const ScaledTransfers shared, ShareNetworks(setup, edges, isolated));
  EdgeSchedule at_once;
  for (const CommEdge& edge : edges) at_once.begins_ns.emplace_back(edge.participants.size(), 0);
  ASSIGN_OR_RETURN(std::vector<double> seconds, shared.transfers.LastsNs(at_once, shared.scales));
  for (double& edge : seconds) edge /= kNsPerSecond;
  return seconds;
}

}  // namespace

PredictionReport MakeIterationReport(const IterationPrediction& prediction, TimingMode mode,
                                     const TimingSetup& setup, const ExecutionGraph& graph) {
  PredictionReport report = StartReport(setup, mode);
  report.set_iteration_ns(prediction.times.replay.makespan_ns);
  report.mutable_workload()->set_isolated_iteration_ns(prediction.isolated_makespan_ns);
  for (CommEdgeIndex edge = 0; edge < prediction.edges.edges.size(); ++edge) {
    EdgePrediction* added = AddEdge(prediction.edges.edges[edge], prediction.isolated[edge],
                                    prediction.seconds[edge], &report);
    added->set_name(std::string(graph.name(prediction.edges.nodes[edge])));
    added->set_start_ns(prediction.times.intervals[edge].start_ns);
  }
  SetInflation(&report);
  for (const auto& [type, count] : prediction.edges.not_priced) {
    report.add_warnings(
        absl::StrCat(WithThousands(count), " collectives of type ", type,
                     " last as long as in the traces: no network timing knows them"));
  }
  AddCacheUse(setup, &report);
  return report;
}

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, CommEdgeList list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  PredictionReport report = StartReport(setup, mode);
  report.set_duplicates_dropped(list.duplicates_dropped);
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &list.edges));
  ASSIGN_OR_RETURN(const std::vector<EdgeEstimate> isolated,
                   EstimateEdges(*setup.timing, list.edges, /*threads=*/1, progress));
  std::vector<double> seconds;
  if (mode == TimingMode::kSnapshot) {
    ASSIGN_OR_RETURN(seconds, TogetherSeconds(setup, list.edges, isolated));
  } else {
    for (const EdgeEstimate& edge : isolated) seconds.push_back(edge.seconds);
  }
  double longest = 0;
  for (size_t i = 0; i < list.edges.size(); ++i) {
    AddEdge(list.edges[i], isolated[i], seconds[i], &report);
    longest = std::max(longest, seconds[i]);
  }
  report.set_iteration_ns(std::llround(longest * kNsPerSecond));
  SetInflation(&report);
  AddCacheUse(setup, &report);
  return report;
}

}  // namespace meridian
