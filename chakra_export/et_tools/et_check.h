// SPDX-License-Identifier: Apache-2.0
// Checks the Chakra traces of a workload: ids, dependencies, cycles, attributes, what ranks do
// together, and everything that makes ASTRA-sim abort or hang.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_CHECK_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_CHECK_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// A rule that traces may break.
struct EtRule {
  absl::string_view name;
  // "error" when a simulation would abort or hang, or take it for something else; "warning" when a
  // breach may do harm, or does with some tools.
  absl::string_view severity;
};

// All rules, in the order in which they are reported.
inline constexpr EtRule kEtRules[] = {
    // The traces themselves.
    {"missing_rank", "error"},
    {"no_nodes", "error"},
    {"duplicate_id", "error"},
    {"dangling_dependency", "error"},
    {"cycle", "error"},
    {"bad_value", "error"},
    // The nodes do not make a graph, for one of the reasons above.
    {"no_graph", "error"},
    // What ranks do together.
    {"unmatched", "error"},
    {"disagreement", "error"},
    {"not_a_member", "error"},
    {"deadlock", "error"},
    // What ASTRA-sim aborts or hangs on.
    {"gzip", "error"},
    {"node_type", "error"},
    {"memory_node", "error"},
    {"host_node", "warning"},
    {"host_communication", "error"},
    {"missing_attribute", "error"},
    {"attribute_kind", "error"},
    {"attribute_width", "warning"},
    {"collective_type", "error"},
    {"comm_size", "error"},
    {"small_all_gather", "warning"},
    {"peer", "error"},
    {"tag", "error"},
    {"group_name", "error"},
    {"group_number", "warning"},
    {"unknown_group", "error"},
    {"no_groups", "warning"},
    {"group_of_one", "error"},
    {"involved_dim", "error"},
    {"early_message", "warning"},
    {"roofline", "warning"},
};

// Adds what is wrong to a report, which counts all problems and has the first kKeptPerRule of each
// rule.
class EtProblems {
 public:
  static constexpr int64_t kKeptPerRule = 20;

  // The rule is one of kEtRules, by its name. Rank and id of the Chakra node are absent for what
  // concerns the whole workload. The offset is where the node's record begins in the inflated file;
  // absent when that is not known. The message says what is wrong and what to do about it.
  void Add(absl::string_view rule, std::optional<int64_t> rank, std::optional<uint64_t> node,
           std::optional<uint64_t> offset, absl::string_view message);

  ChakraReport& report() { return report_; }

 private:
  ChakraReport report_;
};

// Describes each file in the report, and checks every node by itself and the ids of each rank.
// Errors are those of files that cannot be read; what is wrong with their content is added to
// *problems.
absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtGraphReaderOptions& options, EtProblems* problems);

// Checks the whole: cycles, communication that does not match, deadlocks. The durations are the
// nodes' own.
void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_CHECK_H_
