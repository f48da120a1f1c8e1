// How long the transfers of a workload take with the network to themselves. Each shape (what is
// moved, how much, among whom) is simulated once.
#ifndef ASTRA_BRIDGE_ISOLATED_TRANSFERS_H_
#define ASTRA_BRIDGE_ISOLATED_TRANSFERS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/transfer_log.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

class IsolatedTransfers {
 public:
  // All must outlive this object.
  IsolatedTransfers(const Workload& workload, const NetworkConfig& network,
                    const SystemConfig& system, Congestion congestion)
      : workload_(workload), network_(network), system_(system), congestion_(congestion) {}

  // Returns how long each part of a transfer of the workload takes when all begin at once. Valid as
  // long as this object is.
  absl::StatusOr<absl::Span<const int64_t>> PartsNs(absl::Span<const TransferPart> parts);

 private:
  // All that its times depend on: type, collective, bytes, group, algorithms and involved
  // dimensions, sender and receiver.
  using Shape = std::tuple<WorkloadNodeType, EngineCollective, int64_t, int32_t, int32_t, uint64_t,
                           int32_t, int32_t>;

  absl::StatusOr<std::vector<int64_t>> Run(absl::Span<const TransferPart> parts) const;

  const Workload& workload_;
  const NetworkConfig& network_;
  const SystemConfig& system_;
  const Congestion congestion_;
  absl::flat_hash_map<Shape, std::vector<int64_t>> known_ns_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ISOLATED_TRANSFERS_H_
