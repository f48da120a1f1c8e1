// SPDX-License-Identifier: Apache-2.0
// Looks through a whole profile: every plane, line, event and stat is decoded and checked, and its
// collectives are summed up.
#ifndef XLA_PROFILER_INSPECT_XSPACE_INSPECTOR_H_
#define XLA_PROFILER_INSPECT_XSPACE_INSPECTOR_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

class XSpaceReport;

// Errors name the file, the offset and the reason. `progress` is called now and then with the file
// offset reached; it may be null.
absl::StatusOr<XSpaceReport> InspectXSpace(const XSpaceReader& reader,
                                           std::function<void(uint64_t offset)> progress = nullptr);

// Returns the report as text for people.
std::string FormatReport(const XSpaceReport& report);

}  // namespace meridian

#endif  // XLA_PROFILER_INSPECT_XSPACE_INSPECTOR_H_
