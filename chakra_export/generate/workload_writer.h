// Writes a made-up workload as Chakra traces: PREFIX.<rank>.et and PREFIX.comm_groups.json.
#ifndef CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_
#define CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generate_report.pb.h"
#include "chakra_export/generate/generated_workload.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct GeneratedWorkloadWriterOptions {
  // Called before each rank; may be null.
  std::function<void(int64_t rank)> progress;
};

// Ranks are built and written one after the other; the memory is that of one. No file is replaced
// before all are on the disk; what an earlier workload left under the prefix is removed.
// Computations have num_ops and tensor_size, which rooflines need, and nodes `microbatch` where
// they are of one. The same workload gives the same bytes.
absl::StatusOr<ChakraGenerateReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const GeneratedWorkloadWriterOptions& options = {});

// Returns the report as text for people.
std::string FormatGenerateReport(const ChakraGenerateReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_WORKLOAD_WRITER_H_
