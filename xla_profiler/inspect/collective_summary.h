// The collectives of a profile, summed up for a report.
#ifndef XLA_PROFILER_INSPECT_COLLECTIVE_SUMMARY_H_
#define XLA_PROFILER_INSPECT_COLLECTIVE_SUMMARY_H_

#include <string>

#include "absl/status/status.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Adds devices, collectives and what could not be resolved. The errors are those of a damaged file.
absl::Status AddCollectives(const XSpaceReader& reader, XSpaceReport* report);

// Returns them as text for people; empty when there are none.
std::string FormatCollectives(const XSpaceReport& report);

}  // namespace meridian

#endif  // XLA_PROFILER_INSPECT_COLLECTIVE_SUMMARY_H_
