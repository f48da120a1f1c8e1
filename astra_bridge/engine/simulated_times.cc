#include "astra_bridge/engine/simulated_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Align = TextTable::Align;

// Differences below this share are not worth a word.
constexpr double kNotableShare = 0.0005;

std::string Millis(int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) * 1e-6); }

std::string SignedPercent(int64_t ns, int64_t whole_ns) {
  const double share =
      static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(whole_ns, 1));
  return absl::StrFormat("%+.1f %%", std::abs(share) < kNotableShare ? 0.0 : 100 * share);
}

std::vector<std::string> ActivityCells(const ActivityReport& activity) {
  return {Millis(activity.makespan_ns()), Millis(activity.computing_ns()),
          Millis(activity.communicating_ns()), Millis(activity.exposed_communication_ns()),
          Millis(activity.idle_ns())};
}

std::vector<TextTable::Column> WithActivityColumns(std::vector<TextTable::Column> columns) {
  for (const char* name :
       {"total ms", "computing ms", "communicating ms", "exposed ms", "idle ms"}) {
    columns.push_back({name, Align::kRight});
  }
  return columns;
}

std::string DifferenceText(const SimulatedTimes& times) {
  const int64_t measured_ns = times.measured_ns();
  const int64_t simulated_ns = times.simulated().makespan_ns();
  const int64_t replayed_ns = times.replayed().makespan_ns();
  const int64_t alone_ns = times.has_alone_ns() ? times.alone_ns() : simulated_ns;
  return absl::StrCat(
      "simulated is ", SignedPercent(simulated_ns - measured_ns, measured_ns),
      " off measured: ", SignedPercent(alone_ns - replayed_ns, measured_ns),
      " by how long transfers take alone, ", SignedPercent(simulated_ns - alone_ns, measured_ns),
      " by how they overlap and contend, ", SignedPercent(replayed_ns - measured_ns, measured_ns),
      " is already there when measured lengths are replayed (", times.schedule(), ")\n");
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
  TextTable table(WithActivityColumns({{"mean over ranks"}}));
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
  if (times.has_measured_ns() && times.has_replayed()) {
    absl::StrAppend(&text, DifferenceText(times));
  }
  if (times.has_one_at_a_time_ns()) {
    const int64_t simulated_ns = times.simulated().makespan_ns();
    absl::StrAppend(&text,
                    "with one computation and one communication of a rank at a time, as "
                    "astra_simulate has it: ",
                    Millis(times.one_at_a_time_ns()), " ms (",
                    SignedPercent(times.one_at_a_time_ns() - simulated_ns, simulated_ns), ")\n");
  }
  return text;
}

std::string FormatNetworks(absl::Span<const NetworkTimes> networks) {
  TextTable table(WithActivityColumns({{"network"},
                                       {"/ first", Align::kRight},
                                       {"/ measured", Align::kRight},
                                       {"as little to as much ms", Align::kRight}}));
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

std::string NetworksCsv(absl::Span<const NetworkTimes> networks) {
  std::string csv =
      "network,makespan_ns,low_ns,high_ns,computing_ns,communicating_ns,exposed_communication_ns,"
      "idle_ns,measured_ns,replayed_ns,replayed_exposed_communication_ns\n";
  const auto number = [](bool is_known, int64_t value) {
    return is_known ? absl::StrCat(value) : std::string();
  };
  for (const NetworkTimes& network : networks) {
    const SimulatedTimes& times = *network.times;
    const ActivityReport& simulated = times.simulated();
    absl::StrAppend(
        &csv, CsvField(network.name), ",", simulated.makespan_ns(), ",",
        number(times.has_low_ns(), times.low_ns()), ",",
        number(times.has_high_ns(), times.high_ns()), ",", simulated.computing_ns(), ",",
        simulated.communicating_ns(), ",", simulated.exposed_communication_ns(), ",",
        simulated.idle_ns(), ",", number(times.has_measured_ns(), times.measured_ns()), ",",
        number(times.has_replayed(), times.replayed().makespan_ns()), ",",
        number(times.has_replayed(), times.replayed().exposed_communication_ns()), "\n");
  }
  return csv;
}

}  // namespace meridian
