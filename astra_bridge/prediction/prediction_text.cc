#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulation_report.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/prediction_run.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

constexpr size_t kShownEdges = 20;
constexpr size_t kShownIdCharacters = 60;

std::string Micros(double seconds) { return absl::StrFormat("%.3f", seconds * 1e6); }
std::string Millis(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }
std::string Ratio(double part, double whole) {
  return absl::StrFormat("%.3f", whole > 0 ? part / whole : 1);
}

std::string SlowestEdges(const PredictionReport& report) {
  std::vector<const EdgePrediction*> edges;
  for (const EdgePrediction& edge : report.edges()) edges.push_back(&edge);
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  const size_t shown = std::min(edges.size(), kShownEdges);
  // All edges have intervals, or none has.
  const bool has_intervals = shown > 0 && edges[0]->has_low_seconds();
  TextTable table(has_intervals
                      ? std::vector<std::string>{"edge", ">us", ">nine of ten us", ">alone us"}
                      : std::vector<std::string>{"edge", ">us", ">alone us"});
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row = {FirstCharacters(edges[i]->id(), kShownIdCharacters),
                                    Micros(edges[i]->seconds())};
    if (has_intervals) {
      row.push_back(
          absl::StrCat(Micros(edges[i]->low_seconds()), " to ", Micros(edges[i]->high_seconds())));
    }
    row.push_back(Micros(edges[i]->isolated_seconds()));
    table.AddRow(std::move(row));
  }
  std::string text = table.ToString();
  if (shown < edges.size()) {
    absl::StrAppend(&text, "and ", WithThousands(static_cast<int64_t>(edges.size() - shown)),
                    " that are faster\n");
  }
  return text;
}

std::string KindTable(const PredictionReport& report) {
  struct Sums {
    int64_t edges = 0;
    double mebibytes = 0, isolated_seconds = 0, seconds = 0;
  };
  std::map<std::string, Sums> by_kind;
  for (const EdgePrediction& edge : report.edges()) {
    Sums& sums = by_kind[edge.kind()];
    ++sums.edges;
    sums.mebibytes += static_cast<double>(edge.bytes()) / (1 << 20);
    sums.isolated_seconds += edge.isolated_seconds();
    sums.seconds += edge.seconds();
  }
  TextTable table({"communication", ">edges", ">MiB", ">alone ms", ">predicted ms", ">x alone"});
  for (const auto& [kind, sums] : by_kind) {
    table.AddRow({kind, WithThousands(sums.edges), absl::StrFormat("%.3f", sums.mebibytes),
                  Millis(sums.isolated_seconds), Millis(sums.seconds),
                  Ratio(sums.seconds, sums.isolated_seconds)});
  }
  return table.ToString();
}

}  // namespace

std::string FormatPrediction(const PredictionReport& report) {
  const double seconds = static_cast<double>(report.iteration_ns()) / kNsPerSecond;
  std::string text = report.has_workload() ? KindTable(report) : SlowestEdges(report);
  absl::StrAppend(&text, "\nengine     ", report.engine(), "\nmode       ", report.mode(),
                  "\nedges      ", WithThousands(report.edges_size()), "\ninflation  ",
                  absl::StrFormat("%.4f", report.inflation()), "\ncache hits ",
                  WithThousands(report.cache_hits()), "\niteration  ");
  if (!report.has_workload()) return absl::StrCat(text, Micros(seconds), " us\n");
  const WorkloadPrediction& workload = report.workload();
  const double alone = static_cast<double>(workload.isolated_iteration_ns()) / kNsPerSecond;
  absl::StrAppend(&text, Millis(seconds), " ms, ", Ratio(seconds, alone), " x isolated (",
                  Millis(alone), " ms)\n");
  if (workload.has_times()) absl::StrAppend(&text, "\n", FormatTimes(workload.times()));
  return text;
}

}  // namespace meridian
