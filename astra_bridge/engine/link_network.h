// SPDX-License-Identifier: Apache-2.0
// Moves messages between ranks and says when they arrive.
//
// Congestion-unaware: a message takes trunc(hops * latency + bytes / bandwidth) of the first
// dimension in which the two ranks differ, whatever else is on the way.
//
// Congestion-aware: a message goes from link to link, dimension by dimension, as a whole:
//
//   gets a link at t -->  at the next device at t + trunc(latency + bytes / bandwidth)
//                         link free again at    t + trunc(bytes / bandwidth)
//
// Networks of links, when aware, share them fairly instead (flow_network.h); when unaware, a message
// takes what it takes there alone.
//
// A link sends one message at a time; the others wait in the order they came. Links that carry
// nothing cost no memory where their number grows with the square of the ranks (fully connected
// blocks).
#ifndef ASTRA_BRIDGE_ENGINE_LINK_NETWORK_H_
#define ASTRA_BRIDGE_ENGINE_LINK_NETWORK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/flow_network.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/topology.h"

namespace meridian {

// How long a link needs for a message.
struct LinkTimes {
  // Time until the message is at the other end.
  int64_t crossing_ns = 0;
  // Time until the link can send the next one.
  int64_t sending_ns = 0;
};

LinkTimes LinkTimesOf(const NetworkDimension& dimension, int64_t bytes);

class LinkNetwork {
 public:
  // All must outlive this object. `paths` are those of a network of links; null for others.
  LinkNetwork(const Topology& topology, Congestion congestion, EventQueue& events,
              LinkPaths* paths = nullptr);

  // Puts a message between two different ranks on the network and returns its number. Each time
  // it has crossed a link, and in any case at its destination, there is an event kCrossed. `collective`
  // is the number of the one that it is of, if any.
  uint32_t Send(int32_t source, int32_t destination, int64_t bytes,
                uint32_t collective = FlowNetwork::kNoCollective);

  // To be called for events kCrossed. True when the message is at its destination, else it moves
  // on. Its number may be given to another message from the next Send on.
  bool Arrives(uint32_t message);

  // To be called for events kLinkFree.
  void OnLinkFree(uint32_t link);

  bool is_aware() const { return aware_; }
  // Whether a message's time depends on those with which it shares links, even within a ring.
  bool shares_fairly() const { return aware_ && flows_ != nullptr; }

  // Whether messages of different ranks came to one link in the same instant, so that the order of
  // events within it decided which of them was first. Congestion-aware networks only.
  bool order_mattered() const { return order_mattered_; }

  // Returns what a message takes when the network is congestion-unaware.
  int64_t UncongestedNs(int32_t source, int32_t destination, int64_t bytes) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Message {
    int64_t bytes = 0;
    int32_t source = 0;
    int32_t destination = 0;
    // The rank it is at, or was before the switch that it is at.
    int32_t at = 0;
    // Links still to cross in `dimension`.
    int32_t hops_left = 0;
    int16_t dimension = 0;
    int16_t direction = 0;
    // The next message in the queue of a link, or in the list of free numbers.
    uint32_t next = kNone;
  };

  struct Link {
    bool busy = false;
    int16_t dimension = 0;
    uint32_t first_waiting = kNone;
    uint32_t last_waiting = kNone;
    // The rank it comes from << 32 | the rank it leads to, of a link of a fully connected block.
    uint64_t key = 0;
    // When the last message came to it, and from which rank.
    int64_t entered_ns = -1;
    int32_t source = 0;
  };

  uint32_t NewMessage();
  // Returns the rank that has the destination's coordinate in the message's dimension, and the
  // others of the rank it is at.
  int32_t AtDestination(const Message& message) const;
  // Returns the next rank up (direction 1) or down (-1) a ring or mesh.
  int32_t Neighbour(int32_t dimension, int32_t rank, int32_t direction) const;
  // Takes the message at a rank to its next link.
  void Leave(uint32_t message);
  void Enter(uint32_t link, uint32_t message);
  void Start(uint32_t link, uint32_t message);
  // Returns the link between two ranks of a fully connected block.
  uint32_t DirectLink(int32_t dimension, int32_t from, int32_t to);

  const Topology& topology_;
  const bool aware_;
  // Of a network of links; null for others.
  const std::unique_ptr<FlowNetwork> flows_;
  bool order_mattered_ = false;
  EventQueue& events_;

  std::vector<Message> messages_;
  uint32_t free_messages_ = kNone;

  // Rings, meshes and switches have two links per rank r: 2 r up (or to the switch) and 2 r + 1
  // down (or from it). Then come those of fully connected blocks, as needed.
  std::vector<Link> links_;
  // Number of the first link of rank 0 in each dimension.
  std::vector<uint32_t> first_link_;
  // Links of fully connected blocks that carry something, by Link::key.
  absl::flat_hash_map<uint64_t, uint32_t> direct_links_;
  std::vector<uint32_t> free_links_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_LINK_NETWORK_H_
