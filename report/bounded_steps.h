// SPDX-License-Identifier: Apache-2.0
// A report of many steps holds some of them, so that a browser can show it.
#ifndef REPORT_BOUNDED_STEPS_H_
#define REPORT_BOUNDED_STEPS_H_

#include "report/run_report.pb.h"

namespace meridian {

// So many steps a report holds, and a few more that findings point at.
inline constexpr int kMaxReportedSteps = 1000;

// Leaves rows of evenly spaced steps in the lists that have rows of steps, if there are more, and says
// so in run.reported_steps and in a note. What rests on all steps stays as it is.
void BoundSteps(RunReport* report);

}  // namespace meridian

#endif  // REPORT_BOUNDED_STEPS_H_
