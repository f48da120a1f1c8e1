// SPDX-License-Identifier: Apache-2.0
// What the engines have in common: the fabric of an edge is found, edges that move nothing take no
// time, and the engine runs what is not known already. There are two memories, asked one after the
// other, with the same keys:
//
//   memory of the process   times and failures; lives as long as the timing
//   TimingCache             times only; a file that outlives the process and may be left out
//
// A key is the text of all that a time depends on: engine, version, contents of the fabric, and
// kind, bytes, algorithm and participants of the edge.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

class FabricTiming : public NetworkTiming {
 public:
  TimingEngine engine() const final { return engine_; }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) final;

 protected:
  // Without a cache (null) nothing outlives the timing.
  FabricTiming(TimingEngine engine, std::shared_ptr<const FabricSet> fabrics,
               std::shared_ptr<TimingCache> cache)
      : engine_(std::move(engine)), fabrics_(std::move(fabrics)), cache_(std::move(cache)) {}

  // Returns how many nanoseconds the edge takes alone. It uses the network, with devices the network
  // has.
  virtual absl::StatusOr<double> AloneNs(const Fabric& fabric, const CommEdge& edge) = 0;

 private:
  // Returns AloneNs: remembered, from the cache, or run.
  absl::StatusOr<double> KnownNs(const Fabric& fabric, const CommEdge& edge);

  const TimingEngine engine_;
  const std::shared_ptr<const FabricSet> fabrics_;
  const std::shared_ptr<TimingCache> cache_;
  absl::Mutex mutex_;
  // Times in ns. Runs are deterministic: one that failed is not worth another try.
  absl::flat_hash_map<std::string, absl::StatusOr<double>> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_TIMING_H_
