// SPDX-License-Identifier: Apache-2.0
// Writes a made-up workload as Chakra traces: PREFIX.<rank>.et and PREFIX.comm_groups.json.
#ifndef CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_
#define CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraGenerateReport;

// Ranks are built and written one after the other; the memory is that of one. No file is replaced
// before all are on the disk; what an earlier workload left under the prefix is removed.
// Computations have num_ops and tensor_size, which rooflines need, and nodes `microbatch` where
// they belong to one. The same workload gives the same bytes. `progress` is called before each rank
// and may be null.
absl::StatusOr<ChakraGenerateReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const std::function<void(int64_t rank)>& progress = nullptr);

// Returns the report as text for people.
std::string FormatGenerateReport(const ChakraGenerateReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_
