// SPDX-License-Identifier: Apache-2.0
// What HTA was asked for in the cases of ../shared/golden/hta_golden.json and hta_golden_full/.
#ifndef CRITICAL_PATH_TESTING_HTA_CASE_H_
#define CRITICAL_PATH_TESTING_HTA_CASE_H_

#include <optional>
#include <string>

#include "critical_path/job/trace_analysis.h"
#include "simdjson.h"

namespace meridian {

struct HtaCase {
  std::string trace;
  TraceAnalysisOptions options;
};

// Reads the member "case" of a golden result. Nullopt when the trace is not among the samples.
std::optional<HtaCase> ReadHtaCase(simdjson::dom::element json, const std::string& shared);

// Returns the text of a JSON string.
std::string JsonText(simdjson::dom::element value);

}  // namespace meridian

#endif  // CRITICAL_PATH_TESTING_HTA_CASE_H_
