// SPDX-License-Identifier: Apache-2.0
// Which comm edges can slow each other down: those that have a domain in common. Partitioning
// traffic intervals by domains makes them smaller, more alike, and thus fewer to simulate.
//
//   none          all edges meet
//   fabric        edges meet on their fabric; exact
//   kind          all-reduces meet all-reduces, and so on; an assumption
//   link_domain   edges meet where their messages may use the same link; exact. A domain is a block
//                 of a ring or mesh dimension (see engine/topology.h), or one NPU's links in a
//                 block that is fully connected or a switch
#ifndef ASTRA_BRIDGE_PREDICTION_EDGE_DOMAINS_H_
#define ASTRA_BRIDGE_PREDICTION_EDGE_DOMAINS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

enum class TrafficPartition : uint8_t { kNone, kFabric, kKind, kLinkDomain };

// Returns the partitions by their names in flags and reports.
std::vector<std::pair<absl::string_view, TrafficPartition>> TrafficPartitionNames();
absl::string_view TrafficPartitionName(TrafficPartition partition);

class EdgeDomains {
 public:
  // Edges are on devices. InvalidArgument, naming the edge, for one whose fabric does not exist.
  static absl::StatusOr<EdgeDomains> Find(absl::Span<const CommEdge> edges,
                                          TrafficPartition partition, const FabricSet& fabrics);

  // Returns one domain that all edges are in: all meet.
  static EdgeDomains OneForAll(size_t edges);

  // Returns the domains of an edge, numbers below domain_count(); at least one for an edge that
  // uses the network.
  absl::Span<const uint32_t> Of(size_t edge) const { return sets_[set_of_edge_[edge]]; }
  uint32_t domain_count() const { return domain_count_; }

 private:
  EdgeDomains() = default;

  // Position in sets_ of each edge's set, indexed by edge.
  std::vector<uint32_t> set_of_edge_;
  // Sets of domains; edges of the same participants share one.
  std::vector<std::vector<uint32_t>> sets_;
  uint32_t domain_count_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_EDGE_DOMAINS_H_
