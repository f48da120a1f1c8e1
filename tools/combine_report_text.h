// SPDX-License-Identifier: Apache-2.0
// What combine says at the end.
#ifndef TOOLS_COMBINE_REPORT_TEXT_H_
#define TOOLS_COMBINE_REPORT_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {

std::string FormatCombineReport(const CombineReport& report);

// Writes a report to one of the outputs, which is then among the report's.
absl::Status WriteReport(absl::string_view kind, const std::string& path,
                         const std::string& contents, OutputFiles* outputs, CombineReport* report);

}  // namespace meridian

#endif  // TOOLS_COMBINE_REPORT_TEXT_H_
