// SPDX-License-Identifier: Apache-2.0
// The collectives of the real runs beside the checkout (shared_data.h), resolved, on true clocks:
// all ranks of such a run share one physical clock.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_TESTING_REAL_RUN_H_
#define TRACE_ALIGNMENT_COLLECTIVES_TESTING_REAL_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

struct RealRun {
  const char* folder;
  int ranks;
  // What the files' names end in.
  const char* suffix;
  size_t instances;
};

// What is known of the runs in traces/README.md.
std::vector<RealRun> RealRuns();

// Reads the run from its folder in SharedDataDirectory().
absl::StatusOr<CollectiveTable> ReadRealRun(const std::string& shared_directory,
                                            const RealRun& run);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_TESTING_REAL_RUN_H_
