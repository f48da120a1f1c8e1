// SPDX-License-Identifier: Apache-2.0
// The answers that a report begins with, in whole sentences: whose clock was off, who is late and why,
// network or computation, what would help, and how far to trust it.
#ifndef PIPELINE_FINDINGS_H_
#define PIPELINE_FINDINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/run_report.pb.h"
#include "trace_alignment/collectives/validation_report.pb.h"

namespace meridian {

Finding MakeFinding(absl::string_view topic, absl::string_view verdict, absl::string_view section,
                    std::string headline, std::string detail, std::string rests_on = "");

// Returns what flight recorder dumps say of a job that hangs: for whom it waits, or on which call its
// ranks do not agree.
std::optional<Finding> HangFinding(const ValidationReport& dumps);

// Returns the names of the ranks' hosts.
std::map<int64_t, std::string> HostsByRank(const RunReport& report);

// Whether all ranks are there with all their events, on clocks that are known: what compares ranks
// is known only then.
bool CanCompareRanks(const Evidence& evidence);

// Returns the rank that others wait for most in steps: of those that are notably late by more than the
// clocks may be off by, or where there are none of all that are blamed. What is said of the late rank
// is said of this one.
std::optional<int64_t> MostLateRank(const RunReport& report);

// Puts findings in front of those that stages added, from what they measured. Each says what it
// rests on; where that is not enough its verdict is "unknown".
void AddFindings(RunReport* report);

// Puts what the report's comparison says before all findings there are.
void AddComparisonFinding(RunReport* report);

// Returns where two sentences or numbers of a report with findings contradict each other: lengths
// of steps, the share of communication and what halving it saves, blame and waiting, findings and
// their evidence. Empty for every report that is right.
std::vector<std::string> FindContradictions(const RunReport& report);

// Returns the findings as text for a terminal, one line for each.
std::string FindingsText(const RunReport& report);

}  // namespace meridian

#endif  // PIPELINE_FINDINGS_H_
