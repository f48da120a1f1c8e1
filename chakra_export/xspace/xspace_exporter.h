// SPDX-License-Identifier: Apache-2.0
// From the profiles of a run to Chakra traces: PREFIX.<rank>.et and PREFIX.comm_groups.json.
//
//   read work, match collectives -> refuse bad clocks -> nodes -> stream and data edges -> merge ->
//   calls -> what all runs share (run/run_workload.h) -> write
//
// Clocks are taken as they are; aligning them is `combine`'s matter.
#ifndef CHAKRA_EXPORT_XSPACE_XSPACE_EXPORTER_H_
#define CHAKRA_EXPORT_XSPACE_XSPACE_EXPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/work_nodes.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraWorkloadReport;

enum class EtIntent : uint8_t {
  // What ran, with its times.
  kProfiled,
  // The programs as they were compiled, without times.
  kPostTransformed,
  // The same before the compiler fused, copied and combined, as far as that can be undone.
  kPreTransformed,
};

struct XSpaceExportOptions : ProfiledRunOptions {
  EtFlavor flavor = EtFlavor::kSimulation;
  EtIntent intent = EtIntent::kProfiled;
  WorkGranularity granularity = WorkGranularity::kKernel;
  // The steps to export; absent for everything.
  std::optional<NumberRange> steps;
  // Export even when collectives end before they began elsewhere.
  bool allow_violations = false;
};

// The graph of a run as it is exported, in memory.
struct XSpaceGraph {
  ExecutionGraph graph;
  // By node: whether it is computation of a device. Gaps are not, nor is communication that a
  // simulator could not run, though both run where computation does.
  std::vector<bool> computes;
};

// Builds and checks what ExportXSpaces would write of the run; of the options those about reading
// and progress do not matter. Errors are the same.
absl::StatusOr<XSpaceGraph> BuildXSpaceGraph(const ProfiledRun& run,
                                             const XSpaceExportOptions& options);

// Nothing is written unless everything is read, built and checked. FailedPrecondition for clocks
// with violations, InvalidArgument for input that is not one whole run.
absl::StatusOr<ChakraWorkloadReport> ExportXSpaces(FileSystem& file_system,
                                                   const std::vector<std::string>& traces,
                                                   const std::string& prefix,
                                                   const XSpaceExportOptions& options = {});
// The same of a run that was read already.
absl::StatusOr<ChakraWorkloadReport> ExportXSpaces(FileSystem& file_system, const ProfiledRun& run,
                                                   const std::string& prefix,
                                                   const XSpaceExportOptions& options = {});

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_XSPACE_EXPORTER_H_
