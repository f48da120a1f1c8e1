#include "chakra_export/xspace/comm_vocabulary.h"

#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

// ASTRA-sim wants the numbers of groups below this.
constexpr size_t kGroupLimit = 500;

}  // namespace

ProcessGroupList::ProcessGroupList(int64_t rank_count) : groups_(1) {
  for (int64_t rank = 0; rank < rank_count; ++rank) groups_[0].ranks.push_back(rank);
}

GroupIndex ProcessGroupList::Add(const std::vector<int64_t>& ranks) {
  // ASTRA-sim runs a group of all ranks as it runs the world, whatever its order.
  if (ranks.size() >= groups_[0].ranks.size()) return 0;
  const auto [it, is_new] = known_.emplace(ranks, static_cast<GroupIndex>(groups_.size()));
  if (is_new) groups_.push_back({absl::StrCat(groups_.size()), ranks});
  return it->second;
}

absl::Status ProcessGroupList::Check() const {
  if (groups_.size() <= kGroupLimit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the run has ", groups_.size() - 1, " groups; ASTRA-sim tells at most ",
                   kGroupLimit - 1, " apart; export fewer steps with --steps"));
}

}  // namespace meridian
