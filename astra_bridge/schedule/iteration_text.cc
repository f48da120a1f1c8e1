#include "astra_bridge/schedule/iteration_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/schedule/prediction_basis.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int kShownSnapshots = 10;
constexpr size_t kShownCharacters = 48;

std::string Millis(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }
std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.3f", static_cast<double>(bytes) / (1 << 20));
}
std::string Factor(double factor) { return absl::StrFormat("%.3f", factor); }
std::string Percent(double share) { return absl::StrFormat("%.1f %%", share * 100); }

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 1; }

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

std::string SnapshotTable(const WorkloadPrediction& workload) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable table({{"slowest snapshots us", kRight},
                   {"x longest", kRight},
                   {"x sum", kRight},
                   {"times", kRight},
                   {"total ms", kRight},
                   {"first at ms", kRight},
                   {"edges", kRight},
                   {"MiB", kRight},
                   {"members"}});
  const int shown = std::min(workload.slowest_snapshots_size(), kShownSnapshots);
  for (int i = 0; i < shown; ++i) {
    const SnapshotPrediction& snapshot = workload.slowest_snapshots(i);
    table.AddRow({MicrosText(snapshot.makespan_seconds()), Factor(snapshot.inflation()),
                  Factor(snapshot.inflation_over_sum()), WithThousands(snapshot.occurrences()),
                  Millis(Seconds(snapshot.total_ns())), Millis(Seconds(snapshot.start_ns())),
                  WithThousands(snapshot.edges()), Mebibytes(snapshot.bytes()),
                  absl::StrCat(snapshot.fallback() ? "(fallback) " : "",
                               FirstCharacters(absl::StrJoin(snapshot.edge_ids(), ", "),
                                               kShownCharacters))});
  }
  return table.ToString();
}

std::string SnapshotLines(const PredictionReport& report) {
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

std::string CostLine(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  const PredictionCost& cost = workload.cost();
  std::string text =
      absl::StrCat("cost           ", Millis(cost.timing_edges_seconds()), " ms for ",
                   WithThousands(workload.distinct_edges()), " different edges, ");
  if (workload.distinct_snapshots() > 0) {
    absl::StrAppend(&text, Millis(cost.timing_snapshots_seconds()), " ms for snapshots (",
                    MicrosText(cost.timing_snapshots_seconds() /
                               static_cast<double>(workload.distinct_snapshots())),
                    " us each), ");
  }
  absl::StrAppend(&text, Millis(cost.replaying_seconds()), " ms for replays, ",
                  Millis(cost.collecting_seconds()), " ms for the rest\n");
  return text;
}

}  // namespace

std::string FormatIteration(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  std::string text = KindTable(report);
  if (workload.slowest_snapshots_size() > 0) {
    absl::StrAppend(&text, "\n", SnapshotTable(workload));
  }
  absl::StrAppend(&text, "\nengine         ", report.engine(), ", version ",
                  report.engine_version(), "\nmode           ", report.mode());
  if (!report.batch_rule().empty()) absl::StrAppend(&text, " (", report.batch_rule(), ")");
  absl::StrAppend(&text, "\nworkload       ", WithThousands(workload.ranks()), " ranks, ",
                  WithThousands(workload.nodes()), " nodes, ", WithThousands(report.edges_size()),
                  " edges\n");
  if (report.mode() == "snapshot") absl::StrAppend(&text, SnapshotLines(report));
  absl::StrAppend(&text, "cache          ", CacheUseText(report), "\nfallbacks      ",
                  FallbacksText(report), "\n", CostLine(report), "critical path  ",
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
  return text;
}

}  // namespace meridian
