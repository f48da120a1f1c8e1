// Checks the Chakra traces of a workload: ids, dependencies, cycles, attributes, what ranks do
// together, and everything that makes ASTRA-sim abort or hang. Which rules there are: et_rules.h.
#ifndef CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
#define CHAKRA_EXPORT_INSPECT_ET_CHECK_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/inspect/et_rules.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct EtCheckOptions {
  InputFileOptions input;
  // The ranks of groups; those of METADATA nodes are known as well.
  CommGroups groups;
  // Called once with each file that is open; may be null.
  std::function<void(const EtFile& file, const EtReader& reader)> on_file;
  EtProgress progress;
};

// Looks at every node by itself and at the ids of each rank. Errors are those of files that cannot
// be read; what is wrong with their content is added to *problems.
absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtCheckOptions& options, EtProblems* problems);

// Looks at the whole: cycles, communication that does not match, deadlocks. The durations are the
// nodes' own.
void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
