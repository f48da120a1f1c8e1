#include "astra_bridge/prediction/prediction_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Returns a report of what was asked, what the cache saved, and the warnings of the setup. To be called
// after the timing.
PredictionReport StartReport(const TimingSetup& setup, TimingMode mode) {
  PredictionReport report;
  report.set_engine(absl::StrCat("embedded, ", CongestionName(setup.congestion)));
  report.set_mode(mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
  if (setup.cache != nullptr) report.set_cache_hits(setup.cache->hits());
  for (const std::string& warning : setup.warnings) report.add_warnings(warning);
  return report;
}

EdgePrediction* AddEdge(const CommEdge& edge, double isolated_seconds, double seconds,
                        PredictionReport* report) {
  EdgePrediction* added = report->add_edges();
  added->set_id(edge.id);
  added->set_seconds(seconds);
  added->set_isolated_seconds(isolated_seconds);
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
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
                                                    const std::vector<double>& isolated_seconds) {
  ASSIGN_OR_RETURN(const ScaledTransfers shared, ShareNetworks(setup, edges, isolated_seconds));
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
    EdgePrediction* added = AddEdge(prediction.edges.edges[edge], prediction.isolated_seconds[edge],
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
  return report;
}

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, const CommEdgeList& list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  ASSIGN_OR_RETURN(const std::vector<double> isolated,
                   EstimateEdges(setup.timing, list.edges, progress));
  PredictionReport report = StartReport(setup, mode);
  report.set_duplicates_dropped(list.duplicates_dropped);
  std::vector<double> seconds = isolated;
  if (mode == TimingMode::kSnapshot) {
    ASSIGN_OR_RETURN(seconds, TogetherSeconds(setup, list.edges, isolated));
  }
  double longest = 0;
  for (size_t i = 0; i < list.edges.size(); ++i) {
    AddEdge(list.edges[i], isolated[i], seconds[i], &report);
    longest = std::max(longest, seconds[i]);
  }
  report.set_iteration_ns(std::llround(longest * kNsPerSecond));
  SetInflation(&report);
  return report;
}

}  // namespace meridian
