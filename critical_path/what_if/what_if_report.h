// A measured and an edited schedule side by side.
#ifndef CRITICAL_PATH_WHAT_IF_WHAT_IF_REPORT_H_
#define CRITICAL_PATH_WHAT_IF_WHAT_IF_REPORT_H_

#include <string>

#include "absl/types/span.h"
#include "critical_path/path_report.pb.h"
#include "critical_path/what_if/reorder_suggestions.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"

namespace meridian {

// Puts the comparison into the report of the edited path.
void AddWhatIf(absl::Span<const WhatIfEdit> edits, const WhatIfResult& result,
               const PathReport& measured, PathReport* report);

void AddSuggestions(const Schedule& schedule, const ReorderSuggestions& found, PathReport* report);

// Returns the report's what-if as text for people; nothing when it has none.
std::string FormatWhatIf(const PathReport& report);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_WHAT_IF_REPORT_H_
