// SPDX-License-Identifier: Apache-2.0
// Who takes part in a collective, as an HLO instruction says it: groups of ids that communicate
// among themselves, or source-target pairs. The ids are logical; device_assignment.h turns them
// into devices.
//
// XLA has written groups in five ways over time, all found in traces:
//   list          replica_groups={{0,4},{1,5}}               field 49, or 87 with the list inside
//   iota          [4,2]<=[2,4]T(1,0)                         field 92, or 87 with the iota inside
//                 0..7 reshaped to [2,4], transposed, cut into 4 groups of 2: {0,4},{1,5},{2,6},...
//   mesh axes     mesh['dp'=2,'tp'=2] {'tp'}                 field 93
//                 devices that differ only in their position along the axes named: {0,1},{2,3}
#ifndef XLA_PROFILER_HLO_REPLICA_GROUPS_H_
#define XLA_PROFILER_HLO_REPLICA_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "third_party/hlo/hlo.pb.h"

namespace meridian {

// How many ids the groups of one instruction may name together.
inline constexpr int64_t kMaxGroupIds = int64_t{1} << 22;

// Ordered groups of ids, in one array that copies share: thousands of instructions have the same.
class IdGroups {
 public:
  IdGroups() = default;
  IdGroups(std::initializer_list<std::vector<int64_t>> groups) {
    for (const std::vector<int64_t>& group : groups) Add(group);
  }

  size_t size() const { return rep_ == nullptr ? 0 : rep_->ends.size(); }
  bool empty() const { return size() == 0; }

  absl::Span<const int64_t> operator[](size_t index) const {
    const size_t begin = index == 0 ? 0 : rep_->ends[index - 1];
    return absl::MakeConstSpan(rep_->ids).subspan(begin, rep_->ends[index] - begin);
  }

  // The ids of all groups, in order.
  absl::Span<const int64_t> ids() const {
    return rep_ == nullptr ? absl::Span<const int64_t>() : absl::MakeConstSpan(rep_->ids);
  }

  void Add(absl::Span<const int64_t> group) {
    if (rep_ == nullptr) {
      rep_ = std::make_shared<Rep>();
    } else if (rep_.use_count() > 1) {
      rep_ = std::make_shared<Rep>(*rep_);
    }
    rep_->ids.insert(rep_->ids.end(), group.begin(), group.end());
    rep_->ends.push_back(rep_->ids.size());
  }

  friend bool operator==(const IdGroups& a, const IdGroups& b) {
    if (a.rep_ == b.rep_) return true;
    return a.size() == b.size() && a.ids() == b.ids() &&
           (a.empty() || a.rep_->ends == b.rep_->ends);
  }

 private:
  struct Rep {
    std::vector<int64_t> ids;
    std::vector<size_t> ends;
  };

  std::shared_ptr<Rep> rep_;
};

// Returns 0, 1, 2, ... reshaped to `dims`, transposed by `perm` (empty: not at all), flattened and
// cut into `num_groups` groups of `group_size`. InvalidArgument when these do not fit together.
absl::StatusOr<IdGroups> IotaGroups(int64_t num_groups, int64_t group_size,
                                    const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& perm);

// InvalidArgument when an id is negative or occurs twice in all groups together.
absl::Status CheckGroupIds(const IdGroups& groups);

// Returns e.g. "{0,4},{1,5}".
std::string ToString(const IdGroups& groups);

struct SourceTargetPair {
  int64_t source = 0;
  int64_t target = 0;

  friend bool operator==(const SourceTargetPair& a, const SourceTargetPair& b) {
    return a.source == b.source && a.target == b.target;
  }
};

// Returns the groups of an instruction; no groups mean "everybody". Groups and members come in XLA's
// order. InvalidArgument when they contradict themselves: an id twice or negative, dimensions that do
// not multiply up, a permutation that is none, more than kMaxGroupIds ids.
absl::StatusOr<IdGroups> ReplicaGroupsOf(const xla::HloInstructionProto& instruction);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_REPLICA_GROUPS_H_
