// SPDX-License-Identifier: Apache-2.0
// The calls of a training job: each communication of its Chakra traces is one, so that models of calls
// are models of its steps.
//
//   rank 0   [matmul]......[all-reduce.1]..[matmul]....[all-gather.3]     step 0, again in step 1, ...
//                          callsite 1                  callsite 2
//
// A call is told by name, kind, group and bytes; callsites are numbered by each rank as it comes to
// them. A transition lasts from the end of one communication to the end of the next, and holds what
// that one took when it was its turn: what computation hides is no time of it.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_RUN_CALLS_H_
#define WORKLOAD_MODEL_MEASUREMENTS_RUN_CALLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/measurements/measurements.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Reads PREFIX.<rank>.et of a run that was measured: its machines are its ranks. `name` is what messages call
// it. InvalidArgument when communication has no times, or a rank communicates less than twice.
absl::StatusOr<std::vector<RunMeasurements>> ReadRunCalls(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          const std::string& name, double size);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_RUN_CALLS_H_
