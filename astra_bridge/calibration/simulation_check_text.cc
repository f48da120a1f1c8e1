#include "astra_bridge/calibration/simulation_check_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/number_text.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Align = TextTable::Align;

std::string FormatCells(const SimulationCheckReport& report) {
  TextTable table({{"kind"},
                   {"bytes", Align::kRight},
                   {"group"},
                   {"repeats", Align::kRight},
                   {"measured us", Align::kRight},
                   {"simulated us", Align::kRight},
                   {"error", Align::kRight},
                   {"set apart by"}});
  for (const CheckedCell& cell : report.cells()) {
    table.AddRow({cell.kind(), WithThousands(cell.bytes()), cell.group(),
                  WithThousands(cell.repeats()), Micros(cell.measured_ns()),
                  Micros(cell.simulated_ns()), SignedPercent(cell.signed_error()),
                  absl::StrJoin(cell.reasons(), "; ")});
  }
  return table.ToString();
}

std::string FormatSteps(const SimulationCheckReport& report) {
  TextTable table({{"run"},
                   {"step"},
                   {"measured us", Align::kRight},
                   {"simulated us", Align::kRight},
                   {"error", Align::kRight},
                   {"replayed us", Align::kRight},
                   {"computing beside", Align::kRight}});
  for (const CheckedStep& step : report.steps()) {
    table.AddRow({step.run(), step.has_step() ? absl::StrCat(step.step()) : "all",
                  Micros(step.measured_ns()), Micros(step.simulated_ns()),
                  SignedPercent(step.signed_error()), Micros(step.replayed_ns()),
                  Percent(step.compute_share())});
  }
  return table.ToString();
}

std::string FormatReasons(const SimulationCheckReport& report) {
  TextTable table(
      {{"cells set apart by"}, {"cells", Align::kRight}, {"mean error", Align::kRight}});
  for (const CheckedReason& reason : report.reasons()) {
    table.AddRow({reason.reason(), WithThousands(reason.cells()), Percent(reason.mape())});
  }
  return table.ToString();
}

std::string FormatErrors(const SimulationCheckReport& report) {
  TextTable table({{"errors"},
                   {"n", Align::kRight},
                   {"mean", Align::kRight},
                   {"p95", Align::kRight},
                   {"signed", Align::kRight}});
  const auto add = [&](const std::string& name, const ErrorSummary& summary) {
    if (summary.n() == 0) return;
    table.AddRow({name, WithThousands(summary.n()), Percent(summary.mape()), Percent(summary.p95()),
                  SignedPercent(summary.mean_signed_error())});
  };
  add("cells (medians)", report.summary());
  add("collectives", report.collective_summary());
  add("snapshots of several", report.snapshot_summary());
  add("steps", report.step_summary());
  return table.ToString();
}

}  // namespace

std::string FormatSimulationCheck(const SimulationCheckReport& report) {
  std::string text = absl::StrCat(FormatCells(report), "\n");
  if (report.steps_size() > 0) absl::StrAppend(&text, FormatSteps(report), "\n");
  absl::StrAppend(&text, FormatReasons(report), "\n", FormatErrors(report));
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

}  // namespace meridian
