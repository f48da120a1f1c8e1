// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: few digits and a unit. The page writes the same texts
// (report/page/format.js); report/page/testing/quantity_cases.json has cases for both.
#ifndef REPORT_QUANTITIES_H_
#define REPORT_QUANTITIES_H_

#include <string>

namespace meridian {

// "812 ns", "12.3 µs", "-4.57 ms", "86,400 s": three digits at least, rounded to the nearest.
std::string DurationText(double ns);

// "42 %"; "7.5 %" below 9.5 %; "under 0.1 %" for what would read 0.0 %.
std::string PercentText(double share);

}  // namespace meridian

#endif  // REPORT_QUANTITIES_H_
