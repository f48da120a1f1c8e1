// SPDX-License-Identifier: Apache-2.0
// The findings one by one, and the words and shares that they have in common. Each is absent when the
// report has nothing about its topic.
#ifndef PIPELINE_FINDINGS_PARTS_H_
#define PIPELINE_FINDINGS_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "pipeline/findings.h"
#include "report/run_report.pb.h"

namespace meridian {

std::optional<Finding> StragglerFinding(const RunReport& report);
std::optional<Finding> LinksFinding(const RunReport& report);
std::optional<Finding> NetworkFinding(const RunReport& report);

// A rank that others wait for less than this share of the time is no straggler.
inline constexpr double kNotableShare = 0.02;
// A change that saves less than this share of a step hardly helps.
inline constexpr double kNotableSaving = 0.01;
// What costs so much of the time is a problem.
inline constexpr double kLargeShare = 0.05;
// Ranks that wait for each other for more than this of the time, nobody being late, need a word.
inline constexpr double kMuchWaiting = 0.1;
// So many ranks are named one by one.
inline constexpr size_t kMostNamedRanks = 8;

// "good", or "info" where what is compared may be other executions than they are taken for.
std::string Good(const RunReport& report);

// "12.3 ms".
std::string TimeText(double ms);

// What the run's steps are called: "step".
std::string StepWord(const RunSummary& run);
// One of them in a sentence, "a step", or "the run" where there are none.
std::string UnitText(const RunReport& report);
// What follows the time of one of them: " in the mean", or nothing where there are none.
std::string InTheMean(const RunReport& report);

// "rank 3 (host a)"; one host for all is no news.
std::string RankName(const RunReport& report, int64_t rank);
// "ranks 0-3, 8", shortened where that would be long.
std::string RankList(const google::protobuf::RepeatedField<int64_t>& ranks);
std::string Capitalised(std::string text);

// Says why there is no critical path; empty when nobody tried to find it.
std::string WhyNoPath(const RunReport& report);
// Says why times of different ranks cannot be compared; empty when they can.
std::string WhyNotComparable(const Evidence& evidence);
// What a finding about several ranks rests on.
std::string RestsOn(const RunReport& report);

// Returns how well the clocks are known, e.g. "150 us (90 % range)"; without the last where that is
// certain, or as it was measured.
std::string ClocksWithin(const RunReport& report);

// All steps together, or all the time where there are none.
double WholeMs(const RunReport& report);
// Whether what clocks are off by, in each step or where there are none in each collective, may add
// up to a notable share of the time.
bool ClocksMayHide(const RunReport& report);
// How long, of the time in steps or where there are none of all the time, the ranks waited in
// collectives for others, in the mean.
double WaitedShare(const RunReport& report);

// Says how much shorter a step, or the run, would be, and on what condition: "if it were mended".
void SetAtStake(double ms, absl::string_view condition, Finding* finding);

// Says where the finding shows: in the step, or the longest of all; nothing without steps.
void ShowIn(const RunReport& report, std::optional<int64_t> step, Finding* finding);

// Returns the forecast of these multiples; null when there is none.
const ForecastReport* FindForecast(const RunReport& report, double bandwidth, double compute);

// Returns the first what-if of the change, or nullptr.
const WhatIfPart* FindWhatIf(const RunReport& report, WhatIfPart::Change change);

// How much of the critical path is communication, and what most of the rest is spent on.
struct PathShares {
  double communication = 0;
  // What hosts do, in calls and between them.
  double host = 0;
  std::string most;
  double most_share = 0;
};
// Returns nullopt without a path.
std::optional<PathShares> SharesOf(const RunReport& report);

}  // namespace meridian

#endif  // PIPELINE_FINDINGS_PARTS_H_
