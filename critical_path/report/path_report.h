// SPDX-License-Identifier: Apache-2.0
// A critical path as a report, JSON or text; and a measured and an edited run side by side.
#ifndef CRITICAL_PATH_REPORT_PATH_REPORT_H_
#define CRITICAL_PATH_REPORT_PATH_REPORT_H_

#include <string>

#include "absl/types/span.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"

namespace meridian {

class PathReport;

// Reports list at most this many events, and as many rows of blame.
inline constexpr int kMaxReportedEvents = 1000;

PathReport ReportPath(const GraphSource& source, const PathGraph& graph, const CriticalPath& path);

// Puts the comparison with the measured path into the report of the edited one.
void AddWhatIf(absl::Span<const WhatIfEdit> edits, const WhatIfResult& result,
               const PathReport& measured, PathReport* report);

// Returns the report as text for people.
std::string FormatPathReport(const PathReport& report);

}  // namespace meridian

#endif  // CRITICAL_PATH_REPORT_PATH_REPORT_H_
