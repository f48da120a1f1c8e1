// Plans of collectives, made once for all that are alike, with what the short cut for rings finds.
#ifndef ASTRA_BRIDGE_ENGINE_PLAN_CACHE_H_
#define ASTRA_BRIDGE_ENGINE_PLAN_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/ring_lockstep.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// What a collective is, the same for all its members.
struct CollectiveShape {
  CollectiveKind op = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  // Position in the group table.
  uint32_t group = 0;
  // As in WorkloadNode.
  int32_t algorithms = kSystemAlgorithms;
  uint64_t involved_dimensions = ~uint64_t{0};

  std::tuple<CollectiveKind, int64_t, uint32_t, int32_t, uint64_t> key() const {
    return {op, bytes, group, algorithms, involved_dimensions};
  }
  template <typename H>
  friend H AbslHashValue(H h, const CollectiveShape& shape) {
    return H::combine(std::move(h), shape.key());
  }
  friend bool operator==(const CollectiveShape& a, const CollectiveShape& b) {
    return a.key() == b.key();
  }
};

// Returns the member so many places further along the ring of the phase; members are ranks, or
// positions in a group.
int32_t MemberAhead(const CollectivePhase& phase, int32_t member, int32_t steps);

class PlanCache {
 public:
  struct Entry {
    CollectiveShape shape;
    CollectivePlan plan;
    // Absent until somebody asked; then empty when there is no short cut.
    std::optional<std::optional<LockstepResult>> lockstep;
  };

  // All must outlive this object.
  PlanCache(const Workload& workload, const GroupTable& groups, const Topology& topology,
            const SystemConfig& system, const LinkNetwork& network);

  // Returns the plan of such a collective; it lives as long as the cache. Errors are those of
  // PlanCollective.
  absl::StatusOr<Entry*> Find(const CollectiveShape& shape);

  // Returns what happens when all members start at once and nothing else happens, or nullopt when
  // that has to be simulated.
  std::optional<LockstepResult> Lockstep(Entry* entry) const;

 private:
  // Returns how messages get from each member to the next, if in the same way for all.
  std::optional<RingStep> FindRingStep(const Entry& entry) const;
  std::optional<RingStep> StepBetween(int32_t source, int32_t destination, int64_t bytes) const;

  const Workload& workload_;
  const GroupTable& groups_;
  const Topology& topology_;
  const SystemConfig& system_;
  const LinkNetwork& network_;
  absl::flat_hash_map<CollectiveShape, std::unique_ptr<Entry>> entries_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_PLAN_CACHE_H_
