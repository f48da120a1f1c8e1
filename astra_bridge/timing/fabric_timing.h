// What the engines have in common. Each edge's fabric is found, edges that move nothing are left
// out, what is left is sorted, the cache is asked, and the engine runs what it did not know. Within
// a process the same edge is run once, with a cache or without.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/fabric_set.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

class FabricTiming : public NetworkTiming {
 public:
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) final;
  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) final;

 protected:
  // The cache may be null: nothing is remembered.
  FabricTiming(std::shared_ptr<const FabricSet> fabrics, std::shared_ptr<TimingCache> cache)
      : fabrics_(std::move(fabrics)), cache_(std::move(cache)) {}

  virtual BatchRule batch_rule() const = 0;

  // Returns how long the edge takes alone. It uses the network, with devices the network has.
  virtual absl::StatusOr<double> IsolatedNs(const Fabric& fabric, const CommEdge& edge) = 0;

  // Returns how long each of at least two such edges takes when all start at once. They are in
  // canonical order; isolated_ns holds what IsolatedNs gave.
  virtual absl::StatusOr<std::vector<double>> TogetherNs(const Fabric& fabric,
                                                         absl::Span<const CommEdge> edges,
                                                         absl::Span<const double> isolated_ns) = 0;

 private:
  // Checks that the fabric has the devices of the edge, too.
  absl::StatusOr<const Fabric*> FabricOf(const CommEdge& edge) const;

  absl::StatusOr<double> CachedIsolatedNs(const Fabric& fabric, const CommEdge& edge);
  // For edges of one fabric, in canonical order.
  absl::StatusOr<std::vector<double>> CachedTogetherNs(const Fabric& fabric,
                                                       absl::Span<const CommEdge> edges,
                                                       absl::Span<const double> isolated_ns);
  std::string CacheKey(const Fabric& fabric, absl::Span<const CommEdge> edges) const;

  const std::shared_ptr<const FabricSet> fabrics_;
  const std::shared_ptr<TimingCache> cache_;
  absl::Mutex mutex_;
  // Isolated times by cache key.
  absl::flat_hash_map<std::string, double> known_ns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
