// SPDX-License-Identifier: Apache-2.0
// Pictures of the report on `combine`, as SVG to stand in the page; colours come from its style
// sheet (classes wait, transfer, offset, certified, grid).
#ifndef TOOLS_REPORT_COMBINE_CHARTS_H_
#define TOOLS_REPORT_COMBINE_CHARTS_H_

#include <cstddef>
#include <string>

#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

// More rows than this are not drawn; the tables have them all.
inline constexpr size_t kMaxChartRows = 128;

// Every node's offset with its interval, and beside it the interval's half width on a scale of its
// own: offsets are milliseconds where uncertainties are microseconds. Nodes whose offset is not
// known say so.
//
//   node 0 (reference)          |                      |
//   node 1          |-o-|       |                      |=====----
//   node 2                      |     |o|              |==
//          -20 ms   -10 ms      0     +10 ms           0    10 µs
std::string OffsetsChart(const CombineReport& report);

// Per kind of collective, how long members waited for the last to start and how long data moved
// then.
std::string KindsChart(const CombineReport& report);

}  // namespace meridian

#endif  // TOOLS_REPORT_COMBINE_CHARTS_H_
