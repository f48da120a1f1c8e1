#include "astra_bridge/engine/simulated_times.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

std::string Millis(int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) * 1e-6); }

}  // namespace

ActivityReport ReportActivity(absl::Span<const RankActivity> ranks) {
  const RankActivity mean = MeanActivity(ranks);
  ActivityReport report;
  for (const RankActivity& rank : ranks) {
    report.set_makespan_ns(std::max(report.makespan_ns(), rank.span_ns));
  }
  report.set_computing_ns(mean.computing_ns);
  report.set_communicating_ns(mean.communicating_ns);
  report.set_exposed_communication_ns(mean.exposed_ns);
  report.set_idle_ns(report.makespan_ns() - mean.computing_ns - mean.exposed_ns);
  return report;
}

std::string FormatTimes(const SimulatedTimes& times) {
  TextTable table({"mean over ranks", ">total ms", ">computing ms", ">communicating ms",
                   ">exposed ms", ">idle ms"});
  if (times.has_measured_ns()) {
    table.AddRow({"measured", Millis(times.measured_ns()), "-", "-", "-", "-"});
  }
  const ActivityReport& activity = times.simulated();
  table.AddRow({"simulated", Millis(activity.makespan_ns()), Millis(activity.computing_ns()),
                Millis(activity.communicating_ns()), Millis(activity.exposed_communication_ns()),
                Millis(activity.idle_ns())});
  std::string text = table.ToString();
  if (times.has_low_ns()) {
    absl::StrAppend(&text, "from ", Millis(times.low_ns()), " to ", Millis(times.high_ns()),
                    " ms if all transfers take as little, or as much, as nine of ten of them do\n");
  }
  return text;
}

}  // namespace meridian
