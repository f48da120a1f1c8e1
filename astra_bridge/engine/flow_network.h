// SPDX-License-Identifier: Apache-2.0
// Messages on a network of links that share it max-min fairly. Each is a flow over all links of its
// way at once, at a rate that no link on it can better without taking from a slower flow:
//
//   a: 0 -> 1, b: 0 -> 2 over links of 10, 4 behind the one to 2:   b gets 4, a the other 6
//
// A message is there when its last byte has left at its rate, and the latencies of its links have
// passed: alone, after trunc(latencies + bytes / bandwidth of the slowest link). Messages of one
// collective between the same two NPUs go one after the other, as on one connection.
//
// Rates change only when flows start or end, and only among flows that share links with those,
// directly or through others; only these are shared out anew, once per instant.
#ifndef ASTRA_BRIDGE_ENGINE_FLOW_NETWORK_H_
#define ASTRA_BRIDGE_ENGINE_FLOW_NETWORK_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"

namespace meridian {

class FlowNetwork {
 public:
  // All must outlive this object; the paths are those of the network.
  FlowNetwork(const NetworkConfig& network, LinkPaths& paths, EventQueue& events);

  static constexpr uint32_t kNoCollective = ~uint32_t{0};

  // Puts a message between two different NPUs on the network. When it is at its destination, there
  // is an event kCrossed of that number. `collective` is the number of the one that it is of.
  void Send(uint32_t message, int32_t source, int32_t destination, int64_t bytes,
            uint32_t collective = kNoCollective);

  // To be called for events kLinkFree: ends flows that are due, and shares the links out anew.
  void OnEvent();

  // Returns what a message takes that has the network to itself.
  int64_t AloneNs(int32_t source, int32_t destination, int64_t bytes);

 private:
  // A flow's place in the list of a link.
  struct Place {
    uint32_t link = 0;
    uint32_t position = 0;
  };

  static constexpr uint32_t kNone = ~uint32_t{0};

  // A way that messages take one after the other.
  struct Connection {
    const LinkPath* path = nullptr;
    bool is_busy = false;
    // Messages and their bytes, in the order in which they came.
    std::vector<std::pair<uint32_t, int64_t>> waiting;
  };

  struct Flow {
    uint32_t message = 0;
    // Position in connections_; kNone: it is the only message of its own.
    uint32_t connection = kNone;
    double latency_ns = 0;
    int64_t started_ns = 0;
    // What was left to send when the rate last changed, that long after the start.
    double bytes_left = 0;
    double elapsed_ns = 0;
    double bytes_per_ns = 0;
    // Grows with every change of rate, so that ends that are no longer true are told.
    uint32_t version = 0;
    // The last sharing that it took part in, and the last that gave it a rate.
    uint32_t sharing = 0;
    uint32_t shared = 0;
    absl::InlinedVector<Place, 6> places;
  };

  struct Link {
    double bytes_per_ns = 0;
    std::vector<uint32_t> flows;
    // Within a sharing: what is not given away yet, and to how many flows it is to go.
    double left = 0;
    uint32_t open = 0;
    uint32_t sharing = 0;

    double share() const { return left / open; }
  };

  // When a flow has sent all, if its rate stays, cut off to whole nanoseconds.
  struct End {
    int64_t time_ns = 0;
    uint32_t flow = 0;
    uint32_t version = 0;
    bool operator>(const End& other) const { return time_ns > other.time_ns; }
  };

  void Start(uint32_t message, int64_t bytes, const LinkPath& path, uint32_t connection);
  void StartNext(uint32_t connection);
  void AskForEvent(int64_t time_ns);
  void EndFlow(uint32_t flow);
  // Collects flows and links that depend on links that changed.
  void CollectChanged();
  void ShareOut();
  // Returns when the flow has sent all at that rate.
  int64_t SetRate(uint32_t flow, double bytes_per_ns);

  EventQueue& events_;
  LinkPaths& paths_;
  // Connections, and their positions by collective, source and destination.
  std::vector<Connection> connections_;
  absl::flat_hash_map<std::tuple<uint32_t, int32_t, int32_t>, uint32_t> connection_of_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_flows_;
  // Indexed as in LinkPath::links.
  std::vector<Link> links_;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  // The earliest event that was asked for and has not come.
  int64_t next_event_ns_;

  // Links whose flows changed since they were shared out.
  std::vector<uint32_t> changed_;
  // The sharing under way: its number and links.
  uint32_t sharing_ = 0;
  std::vector<uint32_t> shared_links_;
  std::vector<std::pair<double, uint32_t>> by_share_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_FLOW_NETWORK_H_
