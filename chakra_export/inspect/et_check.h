// SPDX-License-Identifier: Apache-2.0
// Checks the Chakra traces of a workload: ids, dependencies, cycles, attributes, what ranks do
// together, and everything that makes ASTRA-sim abort or hang.
#ifndef CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
#define CHAKRA_EXPORT_INSPECT_ET_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/inspect/chakra_report.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

enum class EtRule : uint8_t {
  // The traces themselves.
  kMissingRank,
  kNoNodes,
  kDuplicateId,
  kDanglingDependency,
  kCycle,
  kBadValue,
  // The nodes do not make a graph, for one of the reasons above.
  kNoGraph,
  kDuplicateAttribute,
  kEmptyRecord,
  // What ranks do together.
  kUnmatched,
  kDisagreement,
  kMixedCollective,
  kNotAMember,
  kDeadlock,
  kIssueOrder,
  // What ASTRA-sim aborts or hangs on.
  kGzip,
  kNodeType,
  kMemoryNode,
  kHostNode,
  kHostNodeWithMessages,
  kHostCommunication,
  kMissingAttribute,
  kAttributeKind,
  kAttributeWidth,
  kCollectiveType,
  kCommSize,
  kSmallAllGather,
  kPeer,
  kTag,
  kGroupName,
  kGroupNumber,
  kUnknownGroup,
  kNoGroups,
  kGroupOfOne,
  kInvolvedDim,
  kEarlyMessage,
  kRoofline,
};
inline constexpr size_t kEtRuleCount = static_cast<size_t>(EtRule::kRoofline) + 1;

// Severity of a rule that a simulation would abort or hang on, or take for something else.
inline constexpr absl::string_view kErrorSeverity = "error";
// Severity of a rule whose breach may do harm, or does with some tools.
inline constexpr absl::string_view kWarningSeverity = "warning";

struct EtRuleInfo {
  EtRule rule;
  absl::string_view name;
  absl::string_view severity;
};

const EtRuleInfo& RuleInfo(EtRule rule);

// Parses a comma list of names, e.g. "host_node,memory_node".
absl::StatusOr<std::set<EtRule>> ParseRules(absl::string_view names);

// Adds what is wrong to a report, which counts all problems and has the first kKeptPerRule of each
// rule.
class EtProblems {
 public:
  static constexpr int64_t kKeptPerRule = 20;

  // Problems of the ignored rules are not added.
  explicit EtProblems(std::set<EtRule> ignored = {}) : ignored_(std::move(ignored)) {}

  // Rank and id of the Chakra node are absent for what concerns the whole workload. The offset is
  // where the node's record begins in the inflated file; absent when that is not known. The message
  // says what is wrong and what to do about it.
  void Add(EtRule rule, std::optional<int64_t> rank, std::optional<uint64_t> node,
           std::optional<uint64_t> offset, absl::string_view message);

  ChakraReport& report() { return report_; }

 private:
  std::set<EtRule> ignored_;
  ChakraReport report_;
};

struct EtCheckOptions : EtReaderOptions {
  // The ranks of groups; those that METADATA nodes list are known as well.
  CommGroups groups;
};

// Describes each file in the report, and checks every node by itself and the ids of each rank.
// Errors are those of files that cannot be read; what is wrong with their content is added to
// *problems.
absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtCheckOptions& options, EtProblems* problems);

// Checks the whole: cycles, communication that does not match, deadlocks. The durations are the
// nodes' own.
void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
