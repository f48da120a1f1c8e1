// SPDX-License-Identifier: Apache-2.0
// Checks the Chakra traces of a workload: ids, dependencies, cycles, attributes, what ranks do
// together, and everything that makes ASTRA-sim abort or hang.
#ifndef CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
#define CHAKRA_EXPORT_INSPECT_ET_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/execution_graph.h"
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
};
inline constexpr size_t kEtRuleCount = static_cast<size_t>(EtRule::kEarlyMessage) + 1;

enum class Severity : uint8_t {
  // May do harm, or does with some tools.
  kWarning,
  // A simulation would abort, hang or mean something else.
  kError,
};

struct EtRuleInfo {
  EtRule rule;
  absl::string_view name;
  Severity severity;
};

const EtRuleInfo& RuleInfo(EtRule rule);

// Parses a comma list of names, e.g. "host_node,memory_node".
absl::StatusOr<std::set<EtRule>> ParseRules(absl::string_view names);

struct EtProblem {
  EtRule rule = EtRule::kNoNodes;
  // Rank and id of the Chakra node; absent for what concerns the whole workload.
  std::optional<int64_t> rank;
  std::optional<uint64_t> node;
  // Where the node's record begins in the inflated file; absent when that is not known.
  std::optional<uint64_t> offset;
  // What is wrong and what to do about it.
  std::string message;
};

// Counts all problems and keeps the first kKeptPerRule of each rule.
class EtProblems {
 public:
  static constexpr size_t kKeptPerRule = 20;

  // Problems of the ignored rules are not added.
  explicit EtProblems(std::set<EtRule> ignored = {}) : ignored_(std::move(ignored)) {}

  void Add(EtProblem problem);

  // The problems that were kept, in the order in which they were added.
  const std::vector<EtProblem>& kept() const { return kept_; }
  int64_t count(EtRule rule) const { return counts_[static_cast<size_t>(rule)]; }
  int64_t errors() const { return Count(Severity::kError); }
  int64_t warnings() const { return Count(Severity::kWarning); }

 private:
  int64_t Count(Severity severity) const;

  std::set<EtRule> ignored_;
  std::array<int64_t, kEtRuleCount> counts_ = {};
  std::vector<EtProblem> kept_;
};

struct EtCheckOptions : EtReaderOptions {
  // The ranks of groups; those that METADATA nodes list are known as well.
  CommGroups groups;
  // Called once with each file that is open; may be null.
  std::function<void(const EtFile& file, const EtReader& reader)> on_file;
};

// Checks every node by itself and the ids of each rank. Errors are those of files that cannot be
// read; what is wrong with their content is added to *problems.
absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtCheckOptions& options, EtProblems* problems);

// Checks the whole: cycles, communication that does not match, deadlocks. The durations are the
// nodes' own.
void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_CHECK_H_
