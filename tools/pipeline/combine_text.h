// SPDX-License-Identifier: Apache-2.0
// The report of `combine` as text for people.
#ifndef TOOLS_PIPELINE_COMBINE_TEXT_H_
#define TOOLS_PIPELINE_COMBINE_TEXT_H_

#include <string>

#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

std::string FormatCombineReport(const CombineReport& report);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_COMBINE_TEXT_H_
