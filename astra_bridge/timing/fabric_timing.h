// SPDX-License-Identifier: Apache-2.0
// What the engines have in common: the fabric of each edge is found, edges that move nothing are
// left out, the others are sorted, and the engine runs what is not known already. There are two
// memories, asked one after the other, with the same keys:
//
//   memory of the process   times and failures; lives as long as the timing
//   TimingCache             times only; a file that outlives the process and may be left out
//
// A key is the text of all that a time depends on: engine, version, contents of the fabric, and
// kind, bytes, algorithm and participants of the edges in canonical order.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

class FabricTiming : public NetworkTiming {
 public:
  TimingEngine engine() const final { return engine_; }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) final;
  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) final;

 protected:
  using Times = absl::StatusOr<std::vector<double>>;

  // `rule` says how TogetherNs makes the times of a batch. Without a cache (null) nothing outlives
  // the timing.
  FabricTiming(TimingEngine engine, BatchRule rule, std::shared_ptr<const FabricSet> fabrics,
               std::shared_ptr<TimingCache> cache)
      : engine_(std::move(engine)),
        rule_(rule),
        fabrics_(std::move(fabrics)),
        cache_(std::move(cache)) {}

  // Returns how long each edge takes when all start at once. They are in canonical order and use
  // the network, with devices the network has. isolated_ns holds what each takes alone; it is empty
  // for one edge, whose time alone is asked for.
  virtual Times TogetherNs(const Fabric& fabric, absl::Span<const CommEdge> edges,
                           absl::Span<const double> isolated_ns) = 0;

 private:
  // Also checks that the fabric has the devices of the edge.
  absl::StatusOr<const Fabric*> FabricOf(const CommEdge& edge) const;

  // Returns the part of all keys that tells the engine and the fabric.
  std::string KeyPrefix(const Fabric& fabric) const;

  absl::StatusOr<double> KnownIsolatedNs(const std::string& key, const Fabric& fabric,
                                         const CommEdge& edge);

  // Returns the `count` times of the key: remembered, from the cache, or what `run` gives.
  Times Known(const std::string& key, size_t count, absl::FunctionRef<Times()> run);

  const TimingEngine engine_;
  const BatchRule rule_;
  const std::shared_ptr<const FabricSet> fabrics_;
  const std::shared_ptr<TimingCache> cache_;
  absl::Mutex mutex_;
  // Times in ns in the order of the key's edges. Runs are deterministic: one that failed is not
  // worth another try.
  absl::flat_hash_map<std::string, Times> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
