#include "astra_bridge/schedule/edge_domains.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

struct PartitionName {
  TrafficSnapshotPartition partition;
  absl::string_view name;
};

constexpr PartitionName kNames[] = {
    {TrafficSnapshotPartition::kNone, "none"},
    {TrafficSnapshotPartition::kFabric, "fabric"},
    {TrafficSnapshotPartition::kKind, "kind"},
    {TrafficSnapshotPartition::kLinkDomain, "link_domain"},
};

// Links of one dimension that messages share: the fabric, the dimension, and the smallest NPU of
// the block, or the NPU that the links belong to.
using LinkDomain = std::tuple<const Fabric*, int32_t, int32_t>;

bool IsOneDomain(BlockShape shape) {
  return shape == BlockShape::kRing || shape == BlockShape::kMesh;
}

std::vector<int32_t> SortedUnique(std::vector<int32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Appends the links of one dimension that messages among the participants may use. A message is
// brought to its target's coordinate dimension by dimension, the first one first: when dimension d
// has its turn, the coordinates below it are the target's, and those above it the source's.
void AppendLinkDomains(const Fabric* fabric, const Topology& topology, int32_t dimension,
                       absl::Span<const int32_t> participants, std::vector<LinkDomain>* domains) {
  const int32_t stride = topology.stride(dimension);
  const int32_t above = stride * topology.dimension(dimension).npus;
  std::vector<int32_t> low, own, high;
  for (const int32_t device : participants) {
    low.push_back(device % stride);
    own.push_back(device % above - device % stride);
    high.push_back(device - device % above);
  }
  low = SortedUnique(std::move(low));
  own = SortedUnique(std::move(own));
  high = SortedUnique(std::move(high));
  if (own.size() == 1) return;
  if (IsOneDomain(topology.dimension(dimension).shape)) own = {0};
  for (const int32_t l : low) {
    for (const int32_t o : own) {
      for (const int32_t h : high) domains->push_back({fabric, dimension, l + o + h});
    }
  }
}

}  // namespace

std::optional<TrafficSnapshotPartition> TrafficSnapshotPartitionFromName(absl::string_view name) {
  for (const PartitionName& known : kNames) {
    if (known.name == name) return known.partition;
  }
  return std::nullopt;
}

absl::string_view TrafficSnapshotPartitionName(TrafficSnapshotPartition partition) {
  for (const PartitionName& known : kNames) {
    if (known.partition == partition) return known.name;
  }
  return "";
}

// Numbers domains and sets of them.
class EdgeDomainFinder {
 public:
  EdgeDomainFinder(TrafficSnapshotPartition partition, const FabricSet& fabrics)
      : partition_(partition), fabrics_(fabrics) {}

  absl::StatusOr<EdgeDomains> Run(absl::Span<const CommEdge> edges) {
    for (const CommEdge& edge : edges) {
      const absl::StatusOr<const Fabric*> fabric = fabrics_.Find(edge.topology_key);
      if (!fabric.ok()) {
        return Annotate(fabric.status(), absl::StrCat("edge ", Printable(edge.id)));
      }
      result_.set_of_edge_.push_back(SetOf(*fabric, edge));
    }
    result_.domain_count_ = static_cast<uint32_t>(numbers_.size());
    return std::move(result_);
  }

 private:
  uint32_t SetOf(const Fabric* fabric, const CommEdge& edge) {
    // Edges of equal keys have equal domains.
    std::pair<LinkDomain, std::vector<int32_t>> key;
    switch (partition_) {
      case TrafficSnapshotPartition::kNone:
        break;
      case TrafficSnapshotPartition::kFabric:
        key.first = {fabric, 0, 0};
        break;
      case TrafficSnapshotPartition::kKind:
        key.first = {nullptr, 0, static_cast<int32_t>(edge.kind)};
        break;
      case TrafficSnapshotPartition::kLinkDomain:
        key = {{fabric, 0, 0}, edge.participants};
        break;
    }
    const auto [it, added] = sets_.emplace(key, static_cast<uint32_t>(result_.sets_.size()));
    if (!added) return it->second;
    std::vector<LinkDomain> domains = {key.first};
    if (partition_ == TrafficSnapshotPartition::kLinkDomain) {
      domains = LinkDomainsOf(fabric, edge.participants);
    }
    std::vector<uint32_t> set;
    for (const LinkDomain& domain : domains) set.push_back(NumberOf(domain));
    result_.sets_.push_back(std::move(set));
    return it->second;
  }

  std::vector<LinkDomain> LinkDomainsOf(const Fabric* fabric,
                                        absl::Span<const int32_t> participants) {
    std::unique_ptr<Topology>& topology = topologies_[fabric];
    if (topology == nullptr) topology = std::make_unique<Topology>(fabric->network);
    std::vector<LinkDomain> domains;
    for (int32_t d = 0; d < topology->dimension_count(); ++d) {
      AppendLinkDomains(fabric, *topology, d, participants, &domains);
    }
    return domains;
  }

  uint32_t NumberOf(const LinkDomain& domain) {
    return numbers_.emplace(domain, static_cast<uint32_t>(numbers_.size())).first->second;
  }

  const TrafficSnapshotPartition partition_;
  const FabricSet& fabrics_;
  absl::flat_hash_map<std::pair<LinkDomain, std::vector<int32_t>>, uint32_t> sets_;
  absl::flat_hash_map<LinkDomain, uint32_t> numbers_;
  std::map<const Fabric*, std::unique_ptr<Topology>> topologies_;
  EdgeDomains result_;
};

absl::StatusOr<EdgeDomains> EdgeDomains::Find(absl::Span<const CommEdge> edges,
                                              TrafficSnapshotPartition partition,
                                              const FabricSet& fabrics) {
  return EdgeDomainFinder(partition, fabrics).Run(edges);
}

EdgeDomains EdgeDomains::OneForAll(size_t edges) {
  EdgeDomains domains;
  domains.set_of_edge_.assign(edges, 0);
  domains.sets_ = {{0}};
  domains.domain_count_ = 1;
  return domains;
}

}  // namespace meridian
