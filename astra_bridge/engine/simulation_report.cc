#include "astra_bridge/engine/simulation_report.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

std::string NpuTable(const SimulationReport& report) {
  TextTable table({">rank", ">finish ns", ">computing ns", ">communicating ns", ">exposed ns"});
  for (const NpuReport& npu : report.npus()) {
    const auto known = [&](int64_t ns) {
      return npu.has_computing_ns() ? WithThousands(ns) : std::string("-");
    };
    table.AddRow({absl::StrCat(npu.id()), WithThousands(npu.finish_ns()), known(npu.computing_ns()),
                  known(npu.communicating_ns()), known(npu.exposed_communication_ns())});
  }
  return table.ToString();
}

std::string NodeTable(const SimulationReport& report) {
  TextTable table({">rank", ">node", ">issue ns", ">finish ns"});
  for (const NodeReport& node : report.nodes()) {
    table.AddRow({absl::StrCat(node.rank()), absl::StrCat(node.id()),
                  WithThousands(node.issue_ns()), WithThousands(node.finish_ns())});
  }
  return table.ToString();
}

std::string Millis(int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) * 1e-6); }

}  // namespace

SimulationReport MakeSimulationReport(const SimulationResult& result) {
  SimulationReport report;
  report.set_makespan_ns(result.makespan_ns());
  for (size_t rank = 0; rank < result.finish_ns.size(); ++rank) {
    NpuReport& npu = *report.add_npus();
    npu.set_id(static_cast<int32_t>(rank));
    npu.set_finish_ns(result.finish_ns[rank]);
    if (result.activity.empty()) continue;
    npu.set_computing_ns(result.activity[rank].computing_ns);
    npu.set_communicating_ns(result.activity[rank].communicating_ns);
    npu.set_exposed_communication_ns(result.activity[rank].exposed_ns);
  }
  if (!result.activity.empty()) {
    *report.mutable_times()->mutable_simulated() = ReportActivity(result.activity);
  }
  for (const NodeTime& time : result.nodes) {
    NodeReport& node = *report.add_nodes();
    node.set_rank(time.rank);
    node.set_id(time.id);
    node.set_issue_ns(time.issue_ns);
    node.set_finish_ns(time.finish_ns);
  }
  return report;
}

std::string FormatSimulationReport(const SimulationReport& report) {
  std::string text =
      absl::StrCat("engine     ", report.engine(), "\ncongestion ", report.congestion(),
                   "\nmakespan   ", WithThousands(report.makespan_ns()), " ns\n");
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note       ", Printable(note), "\n");
  }
  if (report.has_times()) absl::StrAppend(&text, "\n", FormatTimes(report.times()));
  absl::StrAppend(&text, "\n", NpuTable(report));
  if (report.nodes_size() > 0) absl::StrAppend(&text, "\n", NodeTable(report));
  return text;
}

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
