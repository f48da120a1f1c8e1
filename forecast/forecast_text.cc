#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "forecast/forecast.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kMostNotes = 4;
// A smaller share of the step would be shown as nothing.
constexpr double kLeastShown = 5e-4;

std::string Ms(double ns) {
  return ns < 1e6 ? absl::StrFormat("%.1f us", ns / 1e3) : absl::StrFormat("%.1f ms", ns / 1e6);
}

// Returns what answers rest on, each sentence once.
std::string Sentences(const std::vector<const ForecastReport*>& reports) {
  std::vector<std::string> lines;
  const auto add = [&](absl::string_view label, const auto& sentences) {
    for (const std::string& sentence : sentences) {
      std::string line = absl::StrCat(label, ": ", sentence, "\n");
      if (!absl::c_linear_search(lines, line)) lines.push_back(std::move(line));
    }
  };
  for (const ForecastReport* report : reports) add("rests on", report->rests_on());
  for (const ForecastReport* report : reports) add("assumed", report->assumptions());
  const size_t before = lines.size();
  for (const ForecastReport* report : reports) add("note", report->notes());
  if (lines.size() > before + kMostNotes) {
    const size_t more = lines.size() - before - kMostNotes;
    lines.resize(before + kMostNotes);
    lines.push_back(absl::StrCat("note: ", more, " more are in --json\n"));
  }
  return absl::StrJoin(lines, "");
}

}  // namespace

std::string ForecastText(const ForecastReport& report) {
  std::string text;
  // What is not understood comes first.
  const double unchanged = report.unchanged_step_ns() / report.measured_step_ns() - 1;
  if (std::abs(unchanged) > kNotUnderstood) {
    absl::StrAppendFormat(
        &text, "Not to be relied on: without any change the step comes out %+.0f %% off.\n",
        100 * unchanged);
  }
  absl::StrAppendFormat(&text,
                        "asked      %s\nstep now   %s\nstep then  %s, 90 %% interval %s to %s\n",
                        Printable(report.question()), Ms(report.measured_step_ns()),
                        Ms(report.step_ns()), Ms(report.low_ns()), Ms(report.high_ns()));
  const double ratio = report.measured_step_ns() / report.step_ns();
  absl::StrAppend(&text, "that is    ",
                  std::abs(ratio - 1) < 0.005
                      ? "no change"
                      : absl::StrFormat("%.2f times %s", ratio >= 1 ? ratio : 1 / ratio,
                                        ratio >= 1 ? "as fast" : "as long"),
                  "\n\n");
  TextTable table({"where the time then goes", ">per step", ">share"});
  for (const ForecastPart& part : report.breakdown()) {
    if (part.ns() < kLeastShown * report.step_ns()) continue;
    table.AddRow({part.what(), Ms(part.ns()),
                  absl::StrFormat("%.0f %%", 100 * part.ns() / report.step_ns())});
  }
  return absl::StrCat(text, table.ToString(), "\n", Sentences({&report}));
}

std::string ForecastTable(const ForecastCurve& curve) {
  TextTable table({"asked", ">ranks", ">step now", ">step then", ">90 % interval"});
  for (const ForecastReport& report : curve.forecasts()) {
    table.AddRow({report.question(), absl::StrCat(report.ranks()), Ms(report.measured_step_ns()),
                  Ms(report.step_ns()),
                  absl::StrCat(Ms(report.low_ns()), " to ", Ms(report.high_ns()))});
  }
  std::vector<const ForecastReport*> reports;
  for (const ForecastReport& report : curve.forecasts()) reports.push_back(&report);
  return absl::StrCat(table.ToString(), "\n", Sentences(reports));
}

std::string ForecastCsv(const ForecastCurve& curve) {
  std::string csv = "question,ranks,measured_step_ns,step_ns,low_ns,high_ns\n";
  for (const ForecastReport& report : curve.forecasts()) {
    absl::StrAppendFormat(&csv, "%s,%d,%.0f,%.0f,%.0f,%.0f\n", CsvField(report.question()),
                          report.ranks(), report.measured_step_ns(), report.step_ns(),
                          report.low_ns(), report.high_ns());
  }
  return csv;
}

}  // namespace meridian
