// SPDX-License-Identifier: Apache-2.0
// The page that `combine` writes: what was done to the clocks, whether the result can be true, and
// who waits for whom.
#ifndef TOOLS_REPORT_COMBINE_REPORT_HTML_H_
#define TOOLS_REPORT_COMBINE_REPORT_HTML_H_

#include <string>

#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

// Returns one self-contained page: no script, nothing loaded from elsewhere (the page forbids it
// itself), light or dark as the reader prefers. It is well-formed XML, too. Texts of the report
// come from traces and are escaped; what is not known is shown as such.
std::string CombineReportHtml(const CombineReport& report);

}  // namespace meridian

#endif  // TOOLS_REPORT_COMBINE_REPORT_HTML_H_
