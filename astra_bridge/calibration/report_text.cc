#include "astra_bridge/calibration/report_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// One digit behind the point is shown; what rounds to nothing is no "-0.0".
double WithoutNegativeZero(double value) { return std::abs(value) < 0.05 ? 0 : value; }

std::string Micros(double ns) { return absl::StrFormat("%.1f", WithoutNegativeZero(ns / 1000)); }

std::string FormatInterval(const CalibratedParameter& parameter) {
  if (!parameter.identifiable()) return "not known";
  return absl::StrFormat("%.6g to %.6g", parameter.low(), parameter.high());
}

std::string FormatParameters(const CalibrationReport& report) {
  TextTable table({"parameter", ">value", ">95 % interval"});
  for (const CalibratedParameter& parameter : report.parameters()) {
    table.AddRow(
        {parameter.name(), absl::StrFormat("%.6g", parameter.value()), FormatInterval(parameter)});
  }
  return table.ToString();
}

std::string FormatCells(const CalibrationReport& report) {
  TextTable table({"kind", ">bytes", "group", ">repeats", ">measured us", ">predicted us", ">error",
                   ">held out"});
  for (const CalibratedCell& cell : report.cells()) {
    table.AddRow(
        {cell.kind(), WithThousands(cell.bytes()), cell.group(), WithThousands(cell.repeats()),
         Micros(cell.measured_ns()), Micros(cell.predicted_ns()),
         SignedPercent(cell.signed_error()),
         cell.has_held_out_ns() ? SignedPercent(cell.held_out_ns() / cell.measured_ns() - 1) : ""});
  }
  return table.ToString();
}

std::string FormatErrors(const CalibrationReport& report) {
  TextTable table({"errors", ">cells", ">mean", ">>= 1 MiB", ">below", ">p95", ">signed"});
  const auto add = [&](const std::string& name, const ErrorSummary& errors) {
    if (errors.n() == 0) return;
    table.AddRow({name, WithThousands(errors.n()), Percent(errors.mape()),
                  errors.has_mape_large() ? Percent(errors.mape_large()) : "",
                  errors.has_mape_small() ? Percent(errors.mape_small()) : "",
                  Percent(errors.p95()), SignedPercent(errors.mean_signed_error())});
  };
  add(absl::StrCat("held out (", report.holdout_rule(), ")"), report.holdout());
  add("fitted", report.fit());
  add("fitted, by physics alone", report.without_corrections());
  add("uncalibrated", report.uncalibrated());
  return table.ToString();
}

template <typename Checked>
std::string IntervalText(const Checked& checked) {
  if (!checked.has_simulated_low_ns()) return "-";
  return absl::StrCat(Micros(checked.simulated_low_ns()), " to ",
                      Micros(checked.simulated_high_ns()));
}

std::string FormatCheckedCells(const SimulationCheckReport& report) {
  TextTable table({"kind", ">bytes", "group", ">repeats", ">measured us", ">simulated us",
                   ">nine of ten us", ">error", "differs from the calibration by"});
  for (const CheckedCell& cell : report.cells()) {
    table.AddRow({cell.kind(), WithThousands(cell.bytes()), cell.group(),
                  WithThousands(cell.repeats()), Micros(cell.measured_ns()),
                  Micros(cell.simulated_ns()), IntervalText(cell),
                  SignedPercent(cell.signed_error()), absl::StrJoin(cell.reasons(), "; ")});
  }
  return table.ToString();
}

std::string FormatSteps(const SimulationCheckReport& report) {
  TextTable table({"run", "step", ">measured us", ">simulated us", ">nine of ten us", ">error",
                   ">replayed us"});
  for (const CheckedStep& step : report.steps()) {
    table.AddRow({step.run(), step.has_step() ? absl::StrCat(step.step()) : "all",
                  Micros(step.measured_ns()), Micros(step.simulated_ns()), IntervalText(step),
                  SignedPercent(step.signed_error()), Micros(step.replayed_ns())});
  }
  return table.ToString();
}

std::string FormatCheckErrors(const SimulationCheckReport& report) {
  TextTable table({"errors", ">n", ">mean", ">p95", ">signed"});
  const auto add = [&](const std::string& name, const ErrorSummary& summary) {
    if (summary.n() == 0) return;
    table.AddRow({name, WithThousands(summary.n()), Percent(summary.mape()), Percent(summary.p95()),
                  SignedPercent(summary.mean_signed_error())});
  };
  add("cells (medians)", report.summary());
  add("collectives", report.collective_summary());
  add("steps", report.step_summary());
  return table.ToString();
}

}  // namespace

std::string Percent(double share) {
  return absl::StrFormat("%.1f %%", WithoutNegativeZero(100 * share));
}

std::string SignedPercent(double share) {
  return absl::StrFormat("%+.1f %%", WithoutNegativeZero(100 * share));
}

std::string FormatCalibration(const CalibrationReport& report) {
  std::string text = absl::StrCat(FormatCells(report), "\n", FormatParameters(report), "\n",
                                  FormatErrors(report), "\n");
  absl::StrAppend(&text, "noise floor (halves of the repeats differ by)  ",
                  report.has_noise_floor() ? Percent(report.noise_floor()) : "not known", "\n\n");
  TextTable table({"nine of ten predictions of", ">are within", ">per doubling of ranks"});
  for (const PredictionError& error : report.prediction_errors()) {
    table.AddRow({absl::StrCat(FormatByteSize(error.from_bytes()), " and more"),
                  absl::StrFormat("x %.2f", error.factor()),
                  absl::StrFormat("x %.2f", error.factor_per_doubling())});
  }
  absl::StrAppend(&text, table.ToString());
  for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string FormatSimulationCheck(const SimulationCheckReport& report) {
  std::string text = absl::StrCat(FormatCheckedCells(report), "\n");
  if (report.steps_size() > 0) absl::StrAppend(&text, FormatSteps(report), "\n");
  absl::StrAppend(&text, FormatCheckErrors(report));
  const auto add = [&](absl::string_view what, const IntervalCoverage& coverage) {
    if (coverage.n() == 0) return;
    absl::StrAppendFormat(&text, "measured time inside the %.0f %% interval: %d of %d %s\n",
                          100 * coverage.promised(), coverage.inside(), coverage.n(), what);
  };
  add("cells", report.cells_inside());
  add("steps", report.steps_inside());
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

}  // namespace meridian
