// A critical path as a report: JSON, text and comma-separated values.
#ifndef CRITICAL_PATH_PATH_REPORT_H_
#define CRITICAL_PATH_PATH_REPORT_H_

#include <string>

#include "critical_path/graph_source.h"
#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"
#include "critical_path/path_report.pb.h"

namespace meridian {

// Reports list at most this many events, and as many rows of blame.
inline constexpr int kMaxReportedEvents = 1000;

PathReport ReportPath(const GraphSource& source, const PathGraph& graph, const CriticalPath& path);

// Returns the report as text for people.
std::string FormatPathReport(const PathReport& report);

// Returns a line for each edge of the path, in order, with a title line.
std::string PathCsv(const PathGraph& graph, const CriticalPath& path);

}  // namespace meridian

#endif  // CRITICAL_PATH_PATH_REPORT_H_
