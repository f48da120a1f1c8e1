// SPDX-License-Identifier: Apache-2.0
// A run not yet made, written as Chakra traces: the control flow of a model walked once for each class
// of ranks, the models of times and bytes evaluated on the way.
//
//   47 -> 48 -> 49 -> 47 ...      [compute 12.5 us] -> [send to 3, receive from 5] -> [compute ...] -> ...
//
// All ranks of a class take the same branches: what is drawn is drawn once. Sends and receives are
// paired, groups come from the rules of rank_patterns.h, and the whole is run before it is written, so
// that nobody waits for ever.
//
// Or as a motif of SST's Ember: a switch over callsites, each of which enqueues its call and the
// computation until the next one, the SDL that runs it, and two files of models, of times and of bytes,
// that it evaluates at the nodes and the size of its run.
#ifndef WORKLOAD_MODEL_GENERATE_CALL_WORKLOAD_H_
#define WORKLOAD_MODEL_GENERATE_CALL_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct GenerateOptions {
  // A number of machines and a size; threads and ranks per machine must have been measured.
  WorkloadCell cell;
  // Called with the rank that is written; may be null.
  std::function<void(int64_t rank)> progress;
};

// Writes PREFIX.<rank>.et and PREFIX.comm_groups.json. FailedPrecondition, which names the callsite, for
// a model without control flow, for groups or peers that are not known for so many ranks, and when
// ranks would not communicate alike or wait for each other for ever.
absl::StatusOr<CallWorkloadReport> GenerateWorkload(FileSystem& file_system,
                                                    const WorkloadModel& model,
                                                    const std::string& prefix,
                                                    const GenerateOptions& options);

struct EmberMotif {
  // The generator's C++, whole; it goes to ember/mpi/motifs/ of SST's elements.
  std::string source;
  // The Python that SST runs, for one cell.
  std::string sdl;
  // The models of times and of bytes; published ones may take their places.
  std::string exec_model;
  std::string msg_model;
};

// `name` is that of the motif: letters and digits, else InvalidArgument. The cell is that of the SDL,
// where the motif must be able to run. FailedPrecondition for what Ember cannot say, collectives that go
// on before they have ended; and as in GenerateWorkload.
absl::StatusOr<EmberMotif> MakeEmberMotif(const WorkloadModel& model, const WorkloadCell& cell,
                                          const std::string& name);

// FailedPrecondition when a rank would wait for ever for what nobody sends; and as in GenerateWorkload.
absl::Status CheckArrivals(const WorkloadModel& model, const WorkloadCell& cell);

// Writes the motif to PREFIX.cc, PREFIX.py, PREFIX.exec.model and PREFIX.msg.model; it is called as
// these files.
absl::StatusOr<CallWorkloadReport> WriteEmberMotif(FileSystem& file_system,
                                                   const WorkloadModel& model,
                                                   const WorkloadCell& cell,
                                                   const std::string& prefix);

std::string FormatCallWorkload(const CallWorkloadReport& report);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_GENERATE_CALL_WORKLOAD_H_
