// The groups of a workload by number, and who is where in them. Group 0 is the world.
#ifndef ASTRA_BRIDGE_ENGINE_GROUP_TABLE_H_
#define ASTRA_BRIDGE_ENGINE_GROUP_TABLE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct Group {
  int32_t id = kWorldGroup;
  // In the order of the ring. Empty: all ranks, in the order of their numbers, along the dimensions
  // of the network; so does AstraSim treat any group that has them all.
  std::vector<int32_t> members;
};

struct Membership {
  uint32_t group = 0;
  // Position among the members.
  int32_t member = 0;
};

class GroupTable {
 public:
  // Fails on groups that are empty or have one member only, members that are no ranks or there
  // twice, and ids below 1.
  static absl::StatusOr<GroupTable> Create(const Workload& workload);

  const std::vector<Group>& groups() const { return groups_; }
  int32_t size(uint32_t group) const {
    return groups_[group].members.empty() ? ranks_
                                          : static_cast<int32_t>(groups_[group].members.size());
  }
  int32_t rank(uint32_t group, int32_t member) const {
    return groups_[group].members.empty() ? member : groups_[group].members[member];
  }

  // NotFound when there is no such group, InvalidArgument when the rank is not in it.
  absl::StatusOr<Membership> Find(int32_t rank, int32_t group_id) const;

 private:
  int32_t ranks_ = 0;
  std::vector<Group> groups_;
  absl::flat_hash_map<int32_t, uint32_t> by_id_;
  // By group and rank; not for those of all ranks.
  absl::flat_hash_map<std::pair<uint32_t, int32_t>, int32_t> members_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_GROUP_TABLE_H_
