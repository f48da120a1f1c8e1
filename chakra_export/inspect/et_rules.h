// What can be wrong with Chakra traces, and the list of what is.
#ifndef CHAKRA_EXPORT_INSPECT_ET_RULES_H_
#define CHAKRA_EXPORT_INSPECT_ET_RULES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

enum class EtRule : uint8_t {
  // The traces themselves.
  kMissingRank,
  kNoNodes,
  kDuplicateId,
  kDanglingDependency,
  kCycle,
  kBadValue,
  // The nodes cannot be made a graph of, for one of the reasons above.
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
  // Absent for what concerns the workload.
  std::optional<int64_t> rank;
  std::optional<uint64_t> node;
  // Of the node's record, where it is known.
  std::optional<uint64_t> offset;
  // What is wrong and what to do about it.
  std::string message;
};

// Counts all problems and keeps the first of each rule.
class EtProblems {
 public:
  static constexpr size_t kKeptPerRule = 20;

  // Problems of these rules are not added.
  explicit EtProblems(std::set<EtRule> ignored = {}) : ignored_(std::move(ignored)) {}

  void Add(EtProblem problem);

  // In the order in which they were added.
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

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_RULES_H_
