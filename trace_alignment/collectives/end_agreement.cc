#include "trace_alignment/collectives/end_agreement.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace meridian {
namespace {

constexpr int64_t kMinExecutions = 4;
constexpr int64_t kVariationFactor = 4;
constexpr int64_t kDurationDivisor = 32;

// What the executions of one instruction by one group have shown so far.
class Executions {
 public:
  // Adds an execution; the members are those of all ranks of the group, in the order of ranks.
  void Add(absl::Span<const CollectiveMember> members) {
    lags_ps_.resize(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      const int64_t lag_ps = members[i].end_ps - members[0].end_ps;
      if (count_ > 0) variation_ps_ = std::max(variation_ps_, std::abs(lag_ps - lags_ps_[i]));
      lags_ps_[i] = lag_ps;
      shortest_ps_ = std::min(shortest_ps_, members[i].end_ps - members[i].start_ps);
    }
    ++count_;
  }

  int64_t TolerancePs() const {
    if (count_ < kMinExecutions || variation_ps_ > kMaxRunTimePs / kVariationFactor) {
      return kNoTolerance;
    }
    return std::max(kVariationFactor * variation_ps_, shortest_ps_ / kDurationDivisor);
  }

 private:
  int64_t count_ = 0;
  // How long after the first member each member ended in the last execution.
  std::vector<int64_t> lags_ps_;
  int64_t variation_ps_ = 0;
  int64_t shortest_ps_ = kMaxRunTimePs;
};

// Returns the members in the order of ranks; in the table those of one node stand in the order of
// their starts. `sorted` is room for them.
absl::Span<const CollectiveMember> ByRank(absl::Span<const CollectiveMember> members,
                                          std::vector<CollectiveMember>* sorted) {
  const auto by_rank = [](const CollectiveMember& a, const CollectiveMember& b) {
    return a.rank < b.rank;
  };
  if (std::is_sorted(members.begin(), members.end(), by_rank)) return members;
  sorted->assign(members.begin(), members.end());
  std::sort(sorted->begin(), sorted->end(), by_rank);
  return *sorted;
}

bool IsUsable(const CollectiveTable& table, const CollectiveInstance& instance) {
  return IsSynchronising(table.OpOf(instance).kind) && instance.missing == 0 &&
         instance.member_count >= 2 && instance.group != CollectiveInstance::kNoGroup;
}

}  // namespace

std::vector<int64_t> EndTolerances(const CollectiveTable& table) {
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Executions> executions;
  std::vector<CollectiveMember> sorted;
  for (const CollectiveInstance& instance : table.instances()) {
    if (!IsUsable(table, instance)) continue;
    executions[{instance.op, instance.group}].Add(ByRank(table.MembersOf(instance), &sorted));
  }
  std::vector<int64_t> tolerances_ps;
  tolerances_ps.reserve(table.instances().size());
  for (const CollectiveInstance& instance : table.instances()) {
    tolerances_ps.push_back(IsUsable(table, instance)
                                ? executions[{instance.op, instance.group}].TolerancePs()
                                : kNoTolerance);
  }
  return tolerances_ps;
}

}  // namespace meridian
