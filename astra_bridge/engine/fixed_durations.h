// How long transfers last that are not simulated, by the nodes that issue them: a member's part of
// a collective from the last join on, the message of a send from the send on.
#ifndef ASTRA_BRIDGE_ENGINE_FIXED_DURATIONS_H_
#define ASTRA_BRIDGE_ENGINE_FIXED_DURATIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "astra_bridge/engine/workload.h"

namespace meridian {

class FixedDurations {
 public:
  // No node of the workload has one.
  explicit FixedDurations(const Workload& workload) {
    for (const RankWorkload& rank : workload.ranks) {
      duration_ns_.emplace_back(rank.nodes().size(), kSimulated);
    }
  }

  // The node is given by its position among those of its rank. Durations are 0 to kMaxDurationNs;
  // of a collective, all members have one or none has.
  void Set(int32_t rank, uint32_t node, int64_t duration_ns) {
    duration_ns_[rank][node] = duration_ns;
  }

  std::optional<int64_t> Find(int32_t rank, uint32_t node) const {
    const int64_t duration_ns = duration_ns_[rank][node];
    return duration_ns == kSimulated ? std::nullopt : std::optional<int64_t>(duration_ns);
  }

 private:
  static constexpr int64_t kSimulated = -1;

  // By rank and node.
  std::vector<std::vector<int64_t>> duration_ns_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_FIXED_DURATIONS_H_
