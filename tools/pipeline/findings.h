// SPDX-License-Identifier: Apache-2.0
// The answers that a report begins with, in whole sentences: whose clock was off, who is late and why,
// network or computation, what would help, and how far to trust it.
#ifndef TOOLS_PIPELINE_FINDINGS_H_
#define TOOLS_PIPELINE_FINDINGS_H_

#include <cstdint>
#include <map>
#include <string>

#include "tools/report/run_report.pb.h"

namespace meridian {

// Returns the names of the ranks' hosts.
std::map<int64_t, std::string> HostsByRank(const RunReport& report);

// Puts findings in front of those that stages added, from what they measured.
void AddFindings(RunReport* report);

// Returns the findings as text for a terminal, one line for each.
std::string FindingsText(const RunReport& report);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_FINDINGS_H_
