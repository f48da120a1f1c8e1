// SPDX-License-Identifier: Apache-2.0
// Looks through the Chakra traces of a workload and says what is in them and what is wrong.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et_tools/et_check.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct EtSummaryOptions : EtCheckOptions {
  // What keeps the nodes from making a graph is an error, not a problem.
  bool needs_graph = false;
};

// Returns statistics and problems. Dependencies on nodes that do not exist are problems, and left
// out of the graph. When there is no graph (ids that occur twice, values that cannot be meant) one
// problem is no_graph and the report has no statistics.
// Errors are those of files that cannot be read, with file, offset and reason.
absl::StatusOr<ChakraReport> SummarizeEtFiles(FileSystem& file_system, const EtFiles& files,
                                              const EtSummaryOptions& options = {});

// Return the statistics, and the problems, as text for people.
std::string FormatChakraStats(const ChakraReport& report);
std::string FormatChakraProblems(const ChakraReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_
