#include "astra_bridge/prediction/prediction_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// How many edges are listed, and how much of their names.
constexpr size_t kShownEdges = 20;
constexpr size_t kShownIdCharacters = 60;

std::string Micros(double seconds) { return absl::StrFormat("%.3f", seconds * 1e6); }
std::string Millis(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }
std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.3f", static_cast<double>(bytes) / (1 << 20));
}
std::string Factor(double factor) { return absl::StrFormat("%.3f", factor); }
std::string Percent(double share) { return absl::StrFormat("%.1f %%", share * 100); }

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 1; }

std::string CacheUse(const PredictionReport& report) {
  if (report.cache_hits() + report.cache_misses() == 0) return "not used";
  return absl::StrCat(WithThousands(report.cache_hits()), " hits, ",
                      WithThousands(report.cache_misses()), " misses");
}

std::string Fallbacks(const PredictionReport& report) {
  if (report.fallbacks() == 0) return "0";
  return absl::StrCat(WithThousands(report.fallbacks()),
                      ", the first: ", Printable(report.fallback_details(0).reason()));
}

std::string SlowestEdges(const PredictionReport& report) {
  std::vector<const EdgePrediction*> edges;
  for (const EdgePrediction& edge : report.edges()) edges.push_back(&edge);
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  const size_t shown = std::min(edges.size(), kShownEdges);
  TextTable table({{"edge"},
                   {"us", TextTable::Align::kRight},
                   {"nine of ten us", TextTable::Align::kRight},
                   {"alone us", TextTable::Align::kRight},
                   {""}});
  for (size_t i = 0; i < shown; ++i) {
    const std::string interval = edges[i]->has_low_seconds()
                                     ? absl::StrCat(Micros(edges[i]->low_seconds()), " to ",
                                                    Micros(edges[i]->high_seconds()))
                                     : "-";
    table.AddRow({FirstCharacters(edges[i]->id(), kShownIdCharacters), Micros(edges[i]->seconds()),
                  interval, Micros(edges[i]->isolated_seconds()),
                  edges[i]->fallback() ? "fallback" : ""});
  }
  std::string text = table.ToString();
  if (shown < edges.size()) {
    absl::StrAppend(&text, "and ", WithThousands(static_cast<int64_t>(edges.size() - shown)),
                    " that are faster\n");
  }
  return text;
}

std::string KindTable(const PredictionReport& report) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable table({{"communication"},
                   {"edges", kRight},
                   {"MiB", kRight},
                   {"alone ms", kRight},
                   {"predicted ms", kRight},
                   {"x alone", kRight}});
  for (const KindPrediction& kind : report.workload().kinds()) {
    table.AddRow({kind.kind(), WithThousands(kind.edges()), Mebibytes(kind.bytes()),
                  Millis(kind.isolated_seconds()), Millis(kind.seconds()),
                  Factor(Ratio(kind.seconds(), kind.isolated_seconds()))});
  }
  return table.ToString();
}

std::string TrafficLines(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  std::string text =
      absl::StrCat("snapshots      ", WithThousands(report.snapshots()), ", ",
                   WithThousands(workload.contended_snapshots()), " of several edges, ",
                   WithThousands(workload.distinct_snapshots()), " different");
  absl::StrAppend(&text, "; collected ", workload.extractions() == 1 ? "once" : "twice", ", ",
                  Percent(workload.changed_share()), " of the edges changed neighbours\n");
  if (workload.partition() != "none") {
    absl::StrAppend(&text, "partition      by ", workload.partition(), "\n");
  }
  if (workload.coalesce_below_bytes() > 0) {
    absl::StrAppend(&text, "coalesced      ", WithThousands(workload.coalesced_edges()),
                    " edges of less than ", WithThousands(workload.coalesce_below_bytes()),
                    " bytes take part in no snapshot\n");
  }
  absl::StrAppend(&text, "inflation      ", Factor(report.inflation()), " x longest, ",
                  Factor(workload.inflation_over_sum()), " x sum, at most ",
                  Factor(workload.max_inflation()), " x longest\n");
  return text;
}

}  // namespace

std::string FormatPrediction(const PredictionReport& report) {
  std::string text = SlowestEdges(report);
  absl::StrAppend(&text, "\nengine     ", report.engine(), ", version ", report.engine_version(),
                  "\nmode       ", report.mode());
  if (!report.batch_rule().empty()) absl::StrAppend(&text, " (", report.batch_rule(), ")");
  absl::StrAppend(&text, "\nedges      ", WithThousands(report.edges_size()), "\niteration  ",
                  Micros(static_cast<double>(report.iteration_ns()) * 1e-9), " us\ninflation  ",
                  absl::StrFormat("%.4f", report.inflation()), "\ncache      ", CacheUse(report),
                  "\nfallbacks  ", Fallbacks(report), "\n");
  return text;
}

std::string FormatIteration(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  std::string text = KindTable(report);
  absl::StrAppend(&text, "\nengine         ", report.engine(), ", version ",
                  report.engine_version(), "\nmode           ", report.mode());
  if (!report.batch_rule().empty()) absl::StrAppend(&text, " (", report.batch_rule(), ")");
  absl::StrAppend(&text, "\nworkload       ", WithThousands(workload.ranks()), " ranks, ",
                  WithThousands(workload.nodes()), " nodes, ", WithThousands(report.edges_size()),
                  " edges\n");
  if (report.mode() == "snapshot") absl::StrAppend(&text, TrafficLines(report));
  absl::StrAppend(&text, "cache          ", CacheUse(report), "\nfallbacks      ",
                  Fallbacks(report), "\ncritical path  ",
                  Percent(Ratio(static_cast<double>(workload.critical_communication_ns()),
                                static_cast<double>(report.iteration_ns()))),
                  " communication\niteration      ", Millis(Seconds(report.iteration_ns())), " ms");
  if (report.mode() == "snapshot") {
    absl::StrAppend(&text, ", ",
                    Factor(Ratio(static_cast<double>(report.iteration_ns()),
                                 static_cast<double>(workload.isolated_iteration_ns()))),
                    " x isolated (", Millis(Seconds(workload.isolated_iteration_ns())), " ms)");
  }
  absl::StrAppend(&text, "\n");
  if (workload.has_times()) absl::StrAppend(&text, "\n", FormatTimes(workload.times()));
  return text;
}

std::vector<NetworkTimes> NetworksOf(const PredictionComparison& comparison) {
  std::vector<NetworkTimes> networks;
  for (const PredictionReport& report : comparison.networks()) {
    networks.push_back({report.network(), &report.workload().times()});
  }
  return networks;
}

std::string FormatPredictionComparison(const PredictionComparison& comparison) {
  return FormatNetworks(NetworksOf(comparison));
}

}  // namespace meridian
