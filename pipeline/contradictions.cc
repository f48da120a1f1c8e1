// Whether a report contradicts itself.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/findings.h"
#include "pipeline/findings_parts.h"
#include "report/quantities.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Lengths that differ by less are the same number.
constexpr double kSameShare = 1e-6;
// What halving communication saves may differ so much, of a step, from half of its share.
constexpr double kTolerance = 0.05;

bool Differ(double a, double b) {
  return std::abs(a - b) > kSameShare * std::max(std::abs(a), std::abs(b)) + 1e-6;
}

// Step lengths are everywhere equal.
void CompareLengths(const RunReport& report, std::vector<std::string>* found) {
  std::map<int64_t, double> lengths_ms, on_path_ms;
  std::vector<double> all_ms;
  for (const ReportedStep& step : report.steps()) {
    all_ms.push_back(lengths_ms[step.step()] = step.end_ms() - step.start_ms());
  }
  // Some of many steps have another median.
  const bool has_all = !report.run().has_reported_steps();
  if (has_all && !all_ms.empty() && Differ(Median(all_ms), report.run().step_ms())) {
    found->push_back("the header's step is not the median of the steps");
  }
  for (const PathPart& part : report.path()) {
    if (part.has_step()) on_path_ms[part.step()] += part.ms();
  }
  for (const auto& [step, ms] : on_path_ms) {
    if (Differ(ms, lengths_ms[step])) {
      found->push_back(
          absl::StrCat("step ", step, " takes ", lengths_ms[step], " ms, its path ", ms));
    }
  }
  const double now_ms = report.run().step_mean_ms();
  for (const WhatIfPart& part : report.what_if()) {
    if (now_ms > 0 && Differ(part.step_ms() + part.saved_ms(), now_ms)) {
      found->push_back(absl::StrCat("what if ", part.what(), " begins with a step of ",
                                    part.step_ms() + part.saved_ms(), " ms, not ", now_ms));
    }
  }
}

// What halving communication saves is no more than half of it, and what it bounds saves something.
void CompareCommunication(const RunReport& report, std::vector<std::string>* found) {
  const std::optional<PathShares> shares = SharesOf(report);
  const WhatIfPart* half = FindWhatIf(report, WhatIfPart::HALF_THE_COMMUNICATION);
  const double now_ms = report.run().step_mean_ms();
  if (!shares.has_value() || half == nullptr || !(now_ms > 0)) return;
  const double saved = half->saved_ms() / now_ms;
  if (saved > shares->communication / 2 + kTolerance) {
    found->push_back(absl::StrCat("half of ", PercentText(shares->communication),
                                  " communication saves ", PercentText(saved)));
  }
  for (const Finding& finding : report.findings()) {
    if (finding.topic() == "network" && finding.verdict() == "bad" && saved < kTolerance) {
      found->push_back("the network is what the run waits for, but half of it saves nothing");
    }
  }
}

}  // namespace

std::vector<std::string> FindContradictions(const RunReport& report) {
  std::vector<std::string> found;
  CompareLengths(report, &found);
  CompareCommunication(report, &found);
  const bool can_compare = CanCompareRanks(report.evidence());
  for (const Finding& finding : report.findings()) {
    const std::string& topic = finding.topic();
    const bool is_good = finding.verdict() == "good";
    // Nobody is late, and the tables agree.
    if (topic == "straggler" && is_good && WaitedShare(report) >= kMuchWaiting) {
      found.push_back("no rank keeps the others waiting, but they wait");
    }
    // A finding about several ranks needs all of them.
    const bool needs_all = topic == "straggler" || topic == "network" || topic == "what_if";
    if (!can_compare &&
        ((needs_all && finding.verdict() != "unknown") || (topic == "links" && is_good))) {
      found.push_back(absl::StrCat("'", finding.headline(), "' needs ranks that are not known"));
    }
    if (is_good && topic != "simulation" && finding.rests_on().empty()) {
      found.push_back(absl::StrCat("'", finding.headline(), "' rests on nothing"));
    }
  }
  return found;
}

}  // namespace meridian
