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

std::vector<std::string> ActivityCells(const ActivityReport& activity) {
  return {Millis(activity.makespan_ns()), Millis(activity.computing_ns()),
          Millis(activity.communicating_ns()), Millis(activity.exposed_communication_ns()),
          Millis(activity.idle_ns())};
}

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
  const auto add = [&](const char* name, const ActivityReport& activity) {
    std::vector<std::string> row = {name};
    for (std::string& cell : ActivityCells(activity)) row.push_back(std::move(cell));
    table.AddRow(row);
  };
  if (times.has_measured_ns()) {
    table.AddRow({"measured", Millis(times.measured_ns()), "-", "-", "-", "-"});
  }
  if (times.has_replayed()) add("measured lengths, replayed", times.replayed());
  add("simulated", times.simulated());
  std::string text = table.ToString();
  if (times.has_low_ns()) {
    absl::StrAppend(&text, "from ", Millis(times.low_ns()), " to ", Millis(times.high_ns()),
                    " ms if all transfers take as little, or as much, as nine of ten of them do\n");
  }
  return text;
}

std::string FormatNetworks(absl::Span<const NetworkTimes> networks) {
  TextTable table({"network", ">/ first", ">/ measured", ">as little to as much ms", ">total ms",
                   ">computing ms", ">communicating ms", ">exposed ms", ">idle ms"});
  const auto ratio = [](int64_t ns, int64_t of_ns) {
    return absl::StrFormat(
        "%.3f", static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(of_ns, 1)));
  };
  const SimulatedTimes& first = *networks[0].times;
  const int64_t first_ns = first.simulated().makespan_ns();
  const auto add = [&](const std::string& name, int64_t total_ns, const std::string& interval,
                       std::vector<std::string> activity) {
    std::vector<std::string> row = {
        name, ratio(total_ns, first_ns),
        first.has_measured_ns() ? ratio(total_ns, first.measured_ns()) : "-", interval};
    for (std::string& cell : activity) row.push_back(std::move(cell));
    table.AddRow(row);
  };
  for (const NetworkTimes& network : networks) {
    const SimulatedTimes& times = *network.times;
    add(Printable(network.name), times.simulated().makespan_ns(),
        times.has_low_ns() ? absl::StrCat(Millis(times.low_ns()), " to ", Millis(times.high_ns()))
                           : "-",
        ActivityCells(times.simulated()));
  }
  if (first.has_measured_ns()) {
    add("measured", first.measured_ns(), "-", {Millis(first.measured_ns()), "-", "-", "-", "-"});
  }
  if (first.has_replayed()) {
    add("measured lengths, replayed", first.replayed().makespan_ns(), "-",
        ActivityCells(first.replayed()));
  }
  return table.ToString();
}

}  // namespace meridian
