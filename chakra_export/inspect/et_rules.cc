#include "chakra_export/inspect/et_rules.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace meridian {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;

// In the order of the enumerators.
constexpr EtRuleInfo kRules[] = {
    {EtRule::kMissingRank, "missing_rank", kError},
    {EtRule::kNoNodes, "no_nodes", kError},
    {EtRule::kDuplicateId, "duplicate_id", kError},
    {EtRule::kDanglingDependency, "dangling_dependency", kError},
    {EtRule::kCycle, "cycle", kError},
    {EtRule::kBadValue, "bad_value", kError},
    {EtRule::kNoGraph, "no_graph", kError},
    {EtRule::kDuplicateAttribute, "duplicate_attribute", kWarning},
    {EtRule::kEmptyRecord, "empty_record", kWarning},
    {EtRule::kUnmatched, "unmatched", kError},
    {EtRule::kDisagreement, "disagreement", kError},
    {EtRule::kNotAMember, "not_a_member", kError},
    {EtRule::kDeadlock, "deadlock", kError},
    {EtRule::kIssueOrder, "issue_order", kWarning},
    {EtRule::kGzip, "gzip", kError},
    {EtRule::kNodeType, "node_type", kError},
    {EtRule::kMemoryNode, "memory_node", kError},
    {EtRule::kHostNode, "host_node", kWarning},
    {EtRule::kHostNodeWithMessages, "host_node_with_messages", kError},
    {EtRule::kHostCommunication, "host_communication", kError},
    {EtRule::kMissingAttribute, "missing_attribute", kError},
    {EtRule::kAttributeKind, "attribute_kind", kError},
    {EtRule::kAttributeWidth, "attribute_width", kWarning},
    {EtRule::kCollectiveType, "collective_type", kError},
    {EtRule::kCommSize, "comm_size", kError},
    {EtRule::kSmallAllGather, "small_all_gather", kWarning},
    {EtRule::kPeer, "peer", kError},
    {EtRule::kTag, "tag", kError},
    {EtRule::kGroupName, "group_name", kError},
    {EtRule::kGroupNumber, "group_number", kWarning},
    {EtRule::kUnknownGroup, "unknown_group", kError},
    {EtRule::kNoGroups, "no_groups", kWarning},
    {EtRule::kGroupOfOne, "group_of_one", kError},
    {EtRule::kInvolvedDim, "involved_dim", kError},
    {EtRule::kEarlyMessage, "early_message", kWarning},
};

constexpr bool IsInOrder() {
  size_t i = 0;
  for (const EtRuleInfo& info : kRules) {
    if (static_cast<size_t>(info.rule) != i++) return false;
  }
  return i == kEtRuleCount;
}
static_assert(IsInOrder(), "one entry per rule, in the order of the enumerators");

}  // namespace

const EtRuleInfo& RuleInfo(EtRule rule) { return kRules[static_cast<size_t>(rule)]; }

absl::StatusOr<std::set<EtRule>> ParseRules(absl::string_view names) {
  std::set<EtRule> rules;
  if (names.empty()) return rules;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const size_t count = rules.size();
    for (const EtRuleInfo& info : kRules) {
      if (info.name == name) rules.insert(info.rule);
    }
    if (rules.size() > count) continue;
    const std::string known = absl::StrJoin(
        kRules, ", ", [](std::string* out, const EtRuleInfo& r) { absl::StrAppend(out, r.name); });
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no rule or comes twice; expected some of ", known));
  }
  return rules;
}

void EtProblems::Add(EtProblem problem) {
  if (ignored_.count(problem.rule) > 0) return;
  const int64_t count = ++counts_[static_cast<size_t>(problem.rule)];
  if (count <= static_cast<int64_t>(kKeptPerRule)) kept_.push_back(std::move(problem));
}

int64_t EtProblems::Count(Severity severity) const {
  int64_t count = 0;
  for (const EtRuleInfo& info : kRules) {
    if (info.severity == severity) count += counts_[static_cast<size_t>(info.rule)];
  }
  return count;
}

}  // namespace meridian
