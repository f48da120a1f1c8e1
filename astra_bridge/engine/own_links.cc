#include "astra_bridge/engine/own_links.h"

#include <cstddef>
#include <cstdint>

namespace meridian {
namespace {

// In larger groups it would take too long to look at each two members.
constexpr int32_t kMaxDirectMembers = 64;

enum class Use : uint8_t { kNone, kRings, kOther };

class LinkOwners {
 public:
  LinkOwners(const GroupTable& groups, const NetworkConfig& network, LinkPaths& paths)
      : groups_(groups),
        paths_(paths),
        owners_(2 * network.links.size(), kNobody),
        own_(groups.groups().size(), true) {}

  // Notes that the way is taken by messages of the group, or of none (kNobody).
  void Take(int32_t from, int32_t to, int64_t group) {
    for (const uint32_t link : paths_.Find(from, to).links) {
      int64_t& owner = owners_[link];
      if (owner != kNobody) Lose(owner);
      if (owner != kNobody || group == kNobody) Lose(group);
      owner = group == kNobody ? kMessages : group;
    }
  }

  void TakeRing(uint32_t group) {
    const int32_t size = groups_.size(group);
    for (int32_t i = 0; i < size; ++i) {
      Take(groups_.rank(group, i), groups_.rank(group, (i + 1) % size), group);
    }
  }

  void TakeAll(uint32_t group) {
    Lose(group);
    for (int32_t i = 0; i < groups_.size(group); ++i) {
      for (int32_t k = 0; k < groups_.size(group); ++k) {
        if (i != k) Take(groups_.rank(group, i), groups_.rank(group, k), group);
      }
    }
  }

  void Lose(int64_t group) {
    if (group >= 0) own_[group] = false;
  }

  static constexpr int64_t kNobody = -1;

  const std::vector<bool>& own() const { return own_; }

 private:
  // Owner of links that messages between two ranks take.
  static constexpr int64_t kMessages = -2;

  const GroupTable& groups_;
  LinkPaths& paths_;
  // Groups by one-way link.
  std::vector<int64_t> owners_;
  std::vector<bool> own_;
};

bool IsRing(const WorkloadNode& node, bool is_world, const Workload& workload,
            const NetworkConfig& network, const SystemConfig& system) {
  const std::vector<CollectiveAlgorithm>& algorithms = node.algorithms == kSystemAlgorithms
                                                           ? system.algorithms_of(node.op)
                                                           : workload.algorithms[node.algorithms];
  if (algorithms.size() != 1) return !is_world;
  return algorithms[0].kind == CollectiveAlgorithm::Kind::kRing &&
         (!is_world || network.dimensions.size() == 1);
}

}  // namespace

std::vector<bool> GroupsWithOwnLinks(const Workload& workload, const GroupTable& groups,
                                     const NetworkConfig& network, LinkPaths& paths,
                                     const SystemConfig& system) {
  std::vector<Use> uses(groups.groups().size(), Use::kNone);
  LinkOwners owners(groups, network, paths);
  for (size_t r = 0; r < workload.ranks.size(); ++r) {
    const int32_t rank = static_cast<int32_t>(r);
    for (const WorkloadNode& node : workload.ranks[r].nodes()) {
      if (node.type == WorkloadNodeType::kSend) owners.Take(rank, node.peer, LinkOwners::kNobody);
      if (node.type != WorkloadNodeType::kCollective) continue;
      const absl::StatusOr<Membership> place = groups.Find(rank, node.group);
      if (!place.ok()) continue;
      const bool is_world = groups.groups()[place->group].members.empty();
      Use& use = uses[place->group];
      if (!IsRing(node, is_world, workload, network, system)) {
        use = Use::kOther;
      } else if (use == Use::kNone) {
        use = Use::kRings;
      }
    }
  }
  for (uint32_t group = 0; group < uses.size(); ++group) {
    if (uses[group] == Use::kRings) owners.TakeRing(group);
    if (uses[group] != Use::kOther) continue;
    if (groups.size(group) > kMaxDirectMembers) return std::vector<bool>(uses.size(), false);
    owners.TakeAll(group);
  }
  return owners.own();
}

}  // namespace meridian
