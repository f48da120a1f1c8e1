// SPDX-License-Identifier: Apache-2.0
// The ways of messages through a network of links: as few links as possible. Where several links
// lead as near, the destination decides, so that messages to different NPUs spread over them: with k
// links in the order of the file, number d mod k is taken for destination d, the next choice on the
// way sees d / k.
#ifndef ASTRA_BRIDGE_ENGINE_LINK_PATHS_H_
#define ASTRA_BRIDGE_ENGINE_LINK_PATHS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "astra_bridge/engine/network_config.h"

namespace meridian {

struct LinkPath {
  // Links in one direction: 2 l is link l from its first end to its second, 2 l + 1 the other way.
  absl::InlinedVector<uint32_t, 6> links;
  double latency_ns = 0;
  // Bandwidth of the slowest.
  double bytes_per_ns = 0;
};

class LinkPaths {
 public:
  // The network is valid and must outlive this object.
  explicit LinkPaths(const NetworkConfig& network);

  // Returns the way between two different NPUs; it lives as long as this object.
  const LinkPath& Find(int32_t source, int32_t destination);

 private:
  // Returns how many links each device is away from the destination.
  const std::vector<int32_t>& DistancesTo(int32_t destination);
  // Appends the links that lead from the device nearer to the destination, in the file's order.
  void NextLinks(int32_t device, const std::vector<int32_t>& distances,
                 std::vector<uint32_t>* next) const;
  LinkPath Walk(int32_t source, int32_t destination);

  int32_t EndOf(uint32_t one_way) const {
    return network_.links[one_way / 2].ends[1 - one_way % 2];
  }

  const NetworkConfig& network_;
  const int32_t devices_;
  // Links from each device, in the order of the file; those of device d begin at first_[d].
  std::vector<uint32_t> from_;
  std::vector<uint32_t> first_;
  // Distances by destination, of as many as fit into a limit.
  absl::flat_hash_map<int32_t, std::vector<int32_t>> distances_;
  // Ways by source << 32 | destination.
  absl::node_hash_map<uint64_t, LinkPath> known_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_LINK_PATHS_H_
