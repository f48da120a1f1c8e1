// SPDX-License-Identifier: Apache-2.0
// The report of a run as one self-contained page: data, style, charts and code in one file, which asks
// no network.
#ifndef REPORT_RUN_REPORT_HTML_H_
#define REPORT_RUN_REPORT_HTML_H_

#include <string>

#include "report/run_report.pb.h"

namespace meridian {

// What traces name is data of the page, never part of its text or code.
std::string RunReportHtml(const RunReport& report);

}  // namespace meridian

#endif  // REPORT_RUN_REPORT_HTML_H_
