#include "astra_bridge/calibration/calibration_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/calibration/number_text.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Align = TextTable::Align;

std::string FormatInterval(const CalibratedParameter& parameter) {
  if (parameter.kept()) return "not identifiable, kept";
  if (!parameter.identifiable()) return "not identifiable, best fit";
  return absl::StrFormat("%.6g to %.6g", parameter.low(), parameter.high());
}

std::string FormatParameters(const CalibrationReport& report) {
  TextTable table({{"parameter"}, {"value", Align::kRight}, {"95 % interval", Align::kRight}});
  for (const CalibratedParameter& parameter : report.parameters()) {
    table.AddRow(
        {parameter.name(), absl::StrFormat("%.6g", parameter.value()), FormatInterval(parameter)});
  }
  return table.ToString();
}

std::string FormatSegments(const CalibrationReport& report) {
  TextTable table({{"correction"},
                   {"up to bytes", Align::kRight},
                   {"overhead us", Align::kRight},
                   {"efficiency", Align::kRight}});
  for (const CalibratedSegment& segment : report.segments()) {
    table.AddRow({segment.kind(),
                  segment.has_up_to_bytes() ? WithThousands(segment.up_to_bytes()) : "all",
                  Micros(segment.overhead_ns()), absl::StrFormat("%.3f", segment.efficiency())});
  }
  return table.ToString();
}

std::string FormatCells(const CalibrationReport& report) {
  TextTable table({{"kind"},
                   {"bytes", Align::kRight},
                   {"group"},
                   {"repeats", Align::kRight},
                   {"measured us", Align::kRight},
                   {"predicted us", Align::kRight},
                   {"error", Align::kRight},
                   {"held out", Align::kRight}});
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
  TextTable table({{"errors"},
                   {"cells", Align::kRight},
                   {"mean", Align::kRight},
                   {">= 1 MiB", Align::kRight},
                   {"below", Align::kRight},
                   {"p95", Align::kRight},
                   {"signed", Align::kRight}});
  const auto add = [&](const std::string& name, const ErrorSummary& errors) {
    if (errors.n() == 0) return;
    table.AddRow({name, WithThousands(errors.n()), Percent(errors.mape()),
                  errors.has_mape_large() ? Percent(errors.mape_large()) : "",
                  errors.has_mape_small() ? Percent(errors.mape_small()) : "",
                  Percent(errors.p95()), SignedPercent(errors.mean_signed_error())});
  };
  add(absl::StrCat("held out (", report.holdout_rule(), ")"), report.holdout());
  add("fitted", report.fit());
  add("fitted, without corrections", report.without_corrections());
  add("uncalibrated", report.uncalibrated());
  return table.ToString();
}

}  // namespace

std::string FormatCalibration(const CalibrationReport& report) {
  std::string text = absl::StrCat(FormatCells(report), "\n", FormatSegments(report), "\n",
                                  FormatParameters(report), "\n", FormatErrors(report));
  absl::StrAppend(&text, "noise floor (halves of the repeats differ by)  ",
                  report.has_noise_floor() ? Percent(report.noise_floor()) : "not known", "\n");
  absl::StrAppendFormat(&text, "transfer against arrival spread  slope %.3f +- %.3f\n",
                        report.arrival_spread().slope(),
                        report.arrival_spread().slope_standard_error());
  absl::StrAppend(&text, "transfer minus shortest duration  median ",
                  Micros(report.clock_check().median_difference_ns()), " us, p95 ",
                  Micros(report.clock_check().p95_difference_ns()), " us\n");
  for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace meridian
