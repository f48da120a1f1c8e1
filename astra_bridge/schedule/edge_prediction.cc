#include "astra_bridge/schedule/edge_prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/schedule/prediction_basis.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kShownEdges = 20;
constexpr size_t kShownCharacters = 60;

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

std::string SlowestEdges(const PredictionReport& report) {
  std::vector<const EdgePrediction*> edges;
  for (const EdgePrediction& edge : report.edges()) edges.push_back(&edge);
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  const size_t shown = std::min(edges.size(), kShownEdges);
  TextTable table(
      {{"edge"}, {"us", TextTable::Align::kRight}, {"alone us", TextTable::Align::kRight}, {""}});
  for (size_t i = 0; i < shown; ++i) {
    table.AddRow({FirstCharacters(edges[i]->id(), kShownCharacters),
                  MicrosText(edges[i]->seconds()), MicrosText(edges[i]->isolated_seconds()),
                  edges[i]->fallback() ? "fallback" : ""});
  }
  std::string text = table.ToString();
  if (shown < edges.size()) {
    absl::StrAppend(&text, "and ", WithThousands(static_cast<int64_t>(edges.size() - shown)),
                    " that are faster\n");
  }
  return text;
}

}  // namespace

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

std::string FormatPrediction(const PredictionReport& report) {
  std::string text = SlowestEdges(report);
  absl::StrAppend(&text, "\nengine     ", report.engine(), ", version ", report.engine_version(),
                  "\nmode       ", report.mode());
  if (!report.batch_rule().empty()) absl::StrAppend(&text, " (", report.batch_rule(), ")");
  absl::StrAppend(&text, "\nedges      ", WithThousands(report.edges_size()), "\niteration  ",
                  MicrosText(static_cast<double>(report.iteration_ns()) * 1e-9), " us\ninflation  ",
                  absl::StrFormat("%.4f", report.inflation()), "\ncache      ",
                  CacheUseText(report), "\nfallbacks  ", FallbacksText(report), "\n");
  return text;
}

}  // namespace meridian
