// SPDX-License-Identifier: Apache-2.0
// PyTorch execution traces and the profiles of the same run, rank by rank, made one workload of
// Chakra traces.
//
//   et_0.json + kineto_0.json  --+
//   et_1.json + kineto_1.json  --+-->  PREFIX.0.et, PREFIX.1.et, PREFIX.comm_groups.json
//
// Profiles alone are enough; execution traces add tensors, what they cost and what waits for them.
#ifndef CHAKRA_EXPORT_PYTORCH_PYTORCH_WORKLOAD_H_
#define CHAKRA_EXPORT_PYTORCH_PYTORCH_WORKLOAD_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

class ChakraWorkloadReport;

struct PytorchWorkloadOptions {
  InputFileOptions input;
  EtFlavor flavor = EtFlavor::kSimulation;
  // Operators and logical collectives of the execution traces, without times, in place of kernels.
  bool pre_transformed = false;
  bool allow_violations = false;
  // Where to write the joined traces as JSON, PREFIX.<rank>.json; empty for nowhere.
  std::string linked_json_prefix;
  // Called before each rank is read, with its position; may be null.
  std::function<void(size_t position)> progress;
};

// The i-th host trace belongs to the i-th device trace; or there is no host trace. A rank is told by
// its profile, else by the position. One trace alone is converted whichever rank it is; of several
// all ranks of the run must be there.
//
// Nothing is written unless every input is sound and the graph is free of cycles and deadlocks.
// Errors name the file, the place and what to do.
absl::StatusOr<ChakraWorkloadReport> ConvertPytorchWorkload(
    FileSystem& file_system, const std::vector<std::string>& host_traces,
    const std::vector<std::string>& device_traces, const std::string& output_prefix,
    const PytorchWorkloadOptions& options = {});

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_PYTORCH_WORKLOAD_H_
