// SPDX-License-Identifier: Apache-2.0
// A run not yet made as a motif of SST's Ember: a switch over callsites, each of which enqueues its call
// and the computation until the next one, and the SDL that runs it. Numbers are those of one cell.
#ifndef WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_H_
#define WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_H_

#include <string>

#include "absl/status/statusor.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct EmberMotif {
  // The generator's C++, whole; it goes to ember/mpi/motifs/ of SST's elements.
  std::string source;
  // The Python that SST runs.
  std::string sdl;
};

// `name` is that of the motif: letters and digits, else InvalidArgument. FailedPrecondition for what
// Ember cannot say: receives of their own, which must name their source there and do not in traces, and
// calls that go on before they have ended; and as in GenerateWorkload.
absl::StatusOr<EmberMotif> MakeEmberMotif(const WorkloadModel& model, const WorkloadCell& cell,
                                          const std::string& name);

// Writes the motif to PREFIX.cc and PREFIX.py; it is called as these files.
absl::StatusOr<CallWorkloadReport> WriteEmberMotif(FileSystem& file_system,
                                                   const WorkloadModel& model,
                                                   const WorkloadCell& cell,
                                                   const std::string& prefix);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_H_
