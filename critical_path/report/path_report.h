// SPDX-License-Identifier: Apache-2.0
// A critical path as a report, JSON or text; and a measured and an edited run side by side.
#ifndef CRITICAL_PATH_REPORT_PATH_REPORT_H_
#define CRITICAL_PATH_REPORT_PATH_REPORT_H_

#include <string>

#include "absl/status/status.h"
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

// Adds what could be reordered: how long the run would be at least if device work waited for what
// it needs, launches, synchronisation and other ranks, but not for its turn in the stream.
//
//   stream   [a1]-->[b1]-->[a2]-->[b2]     if a2 needs only a1, it stands behind b1 needlessly
//
// Work of unknown needs is taken to need all before it. InvalidArgument when all needs are unknown.
absl::Status AddReordering(const PathGraph& graph, const CriticalPath& path, PathReport* report);

// Returns the report as text for people.
std::string FormatPathReport(const PathReport& report);

}  // namespace meridian

#endif  // CRITICAL_PATH_REPORT_PATH_REPORT_H_
