#include "astra_bridge/prediction/edge_domains.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/network_config.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Links of one dimension that messages share: the fabric, the dimension, and the smallest NPU of
// the block, or the NPU that the links belong to.
using LinkDomain = std::tuple<const Fabric*, size_t, int32_t>;

bool IsOneDomain(BlockShape shape) {
  return shape == BlockShape::kRing || shape == BlockShape::kMesh;
}

std::vector<int32_t> SortedUnique(std::vector<int32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Returns the links that messages among the participants may use. A message is brought to its
// target's coordinate dimension by dimension, the first one first: when dimension d has its turn,
// the coordinates below it are the target's, and those above it the source's.
std::vector<LinkDomain> LinkDomainsOf(const Fabric* fabric,
                                      absl::Span<const int32_t> participants) {
  std::vector<LinkDomain> domains;
  int32_t above = 1;
  for (size_t dimension = 0; dimension < fabric->network.dimensions.size(); ++dimension) {
    const NetworkDimension& block = fabric->network.dimensions[dimension];
    const int32_t stride = above;
    above *= block.npus;
    std::vector<int32_t> low, own, high;
    for (const int32_t device : participants) {
      low.push_back(device % stride);
      own.push_back(device % above - device % stride);
      high.push_back(device - device % above);
    }
    low = SortedUnique(std::move(low));
    own = SortedUnique(std::move(own));
    high = SortedUnique(std::move(high));
    if (own.size() == 1) continue;
    if (IsOneDomain(block.shape)) own = {0};
    for (const int32_t l : low) {
      for (const int32_t o : own) {
        for (const int32_t h : high) domains.push_back({fabric, dimension, l + o + h});
      }
    }
  }
  return domains;
}

}  // namespace

std::vector<std::pair<absl::string_view, TrafficPartition>> TrafficPartitionNames() {
  return {{"none", TrafficPartition::kNone},
          {"fabric", TrafficPartition::kFabric},
          {"kind", TrafficPartition::kKind},
          {"link_domain", TrafficPartition::kLinkDomain}};
}

absl::string_view TrafficPartitionName(TrafficPartition partition) {
  return TrafficPartitionNames()[static_cast<size_t>(partition)].first;
}

absl::StatusOr<EdgeDomains> EdgeDomains::Find(absl::Span<const CommEdge> edges,
                                              TrafficPartition partition,
                                              const FabricSet& fabrics) {
  EdgeDomains result;
  // Numbers of domains, and positions in result.sets_ by what decides over an edge's domains.
  absl::flat_hash_map<LinkDomain, uint32_t> numbers;
  absl::flat_hash_map<std::pair<LinkDomain, std::vector<int32_t>>, uint32_t> sets;
  for (const CommEdge& edge : edges) {
    const absl::StatusOr<const Fabric*> fabric = fabrics.Find(edge.topology_key);
    if (!fabric.ok()) {
      return Annotate(fabric.status(), absl::StrCat("edge ", Printable(edge.id)));
    }
    std::pair<LinkDomain, std::vector<int32_t>> key;
    switch (partition) {
      case TrafficPartition::kNone:
        break;
      case TrafficPartition::kFabric:
        key.first = {*fabric, 0, 0};
        break;
      case TrafficPartition::kKind:
        key.first = {nullptr, 0, static_cast<int32_t>(edge.kind)};
        break;
      case TrafficPartition::kLinkDomain:
        key = {{*fabric, 0, 0}, edge.participants};
        break;
    }
    const auto [position, is_new] = sets.emplace(key, static_cast<uint32_t>(result.sets_.size()));
    result.set_of_edge_.push_back(position->second);
    if (!is_new) continue;
    std::vector<LinkDomain> domains = {key.first};
    if (partition == TrafficPartition::kLinkDomain) {
      domains = LinkDomainsOf(*fabric, edge.participants);
    }
    std::vector<uint32_t>& set = result.sets_.emplace_back();
    for (const LinkDomain& domain : domains) {
      const uint32_t next = static_cast<uint32_t>(numbers.size());
      set.push_back(numbers.emplace(domain, next).first->second);
    }
  }
  result.domain_count_ = static_cast<uint32_t>(numbers.size());
  return result;
}

EdgeDomains EdgeDomains::OneForAll(size_t edges) {
  EdgeDomains domains;
  domains.set_of_edge_.assign(edges, 0);
  domains.sets_ = {{0}};
  domains.domain_count_ = 1;
  return domains;
}

}  // namespace meridian
