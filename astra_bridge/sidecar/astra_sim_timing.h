// Times edges with a user's AstraSim, one process per run. It carries out one communication of a
// rank at a time, so that of a batch only the makespan means something: every edge takes its
// isolated time * makespan / longest isolated time.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "astra_bridge/timing/fabric_set.h"
#include "astra_bridge/timing/fabric_timing.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class AstraSimTiming : public FabricTiming {
 public:
  AstraSimTiming(FileSystem& file_system, std::shared_ptr<const FabricSet> fabrics,
                 AstraBinary binary, AstraSimulatorOptions options,
                 std::shared_ptr<TimingCache> cache);

  TimingEngine engine() const override;

 protected:
  BatchRule batch_rule() const override { return BatchRule::kMakespanInflation; }
  absl::StatusOr<double> IsolatedNs(const Fabric& fabric, const CommEdge& edge) override;
  absl::StatusOr<std::vector<double>> TogetherNs(const Fabric& fabric,
                                                 absl::Span<const CommEdge> edges,
                                                 absl::Span<const double> isolated_ns) override;

 private:
  // Returns when the last rank is done with all edges. A run that failed is not tried again.
  absl::StatusOr<int64_t> MakespanNs(const Fabric& fabric, absl::Span<const CommEdge> edges);
  absl::StatusOr<int64_t> Run(const Fabric& fabric, absl::Span<const CommEdge> edges);

  FileSystem& file_system_;
  const AstraBinary binary_;
  const AstraSimulatorOptions options_;
  absl::Mutex mutex_;
  // By fabric and edges.
  absl::flat_hash_map<std::string, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_
