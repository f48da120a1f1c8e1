#include "astra_bridge/testing/fabrics.h"

#include <numeric>
#include <utility>

#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

Fabric FabricOf(std::vector<NetworkDimension> dimensions) {
  Fabric fabric;
  ContentHash hash;
  for (const NetworkDimension& dimension : dimensions) {
    hash.AddNumber(static_cast<uint64_t>(dimension.shape));
    hash.AddNumber(static_cast<uint64_t>(dimension.npus));
    hash.AddNumber(static_cast<uint64_t>(dimension.bytes_per_ns * 1e6));
    hash.AddNumber(static_cast<uint64_t>(dimension.latency_ns * 1e3));
  }
  fabric.network.source = "network.yml";
  fabric.network.dimensions = std::move(dimensions);
  fabric.system = DefaultSystemConfig(fabric.network);
  fabric.content_hash = hash.value();
  return fabric;
}

void UseAlgorithm(absl::string_view name, Fabric* fabric) {
  const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(name);
  MERIDIAN_CHECK(algorithm.ok());
  for (std::vector<CollectiveAlgorithm>& algorithms : fabric->system.algorithms) {
    algorithms.assign(fabric->network.dimensions.size(), *algorithm);
  }
}

std::shared_ptr<const FabricSet> OneFabric(Fabric fabric) {
  return std::make_shared<FabricSet>(FabricSet::ForAllEdges(std::move(fabric)));
}

CommEdge Edge(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants) {
  CommEdge edge;
  edge.kind = kind;
  edge.bytes = bytes;
  edge.participants = std::move(participants);
  edge.id = CanonicalText(edge);
  return edge;
}

std::vector<int32_t> Ranks(int32_t count) {
  std::vector<int32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace meridian
