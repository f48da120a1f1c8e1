// SPDX-License-Identifier: Apache-2.0
// Brings sends and receives together: the k-th message of a source, destination, tag and number of
// bytes is for the k-th such receive, whichever of the two is first.
#ifndef ASTRA_BRIDGE_ENGINE_SEND_MATCHER_H_
#define ASTRA_BRIDGE_ENGINE_SEND_MATCHER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct SendKey {
  int32_t source = 0;
  int32_t destination = 0;
  int32_t tag = 0;
  int64_t bytes = 0;

  std::tuple<int32_t, int32_t, int32_t, int64_t> key() const {
    return {source, destination, tag, bytes};
  }
  template <typename H>
  friend H AbslHashValue(H h, const SendKey& key) {
    return H::combine(std::move(h), key.key());
  }
  friend bool operator==(const SendKey& a, const SendKey& b) { return a.key() == b.key(); }
};

// Returns the key of a send or receive. AstraSim folds tags into this range.
inline SendKey SendKeyOf(int32_t source, int32_t destination, const WorkloadNode& node) {
  constexpr int32_t kTags = 500'000'000;
  return {source, destination, node.tag % kTags, node.bytes};
}

// A receive whose message has not come.
struct WaitingReceive {
  SendKey key;
  // Position of the receive among the nodes of the destination.
  uint32_t node = 0;
  // Bytes of a message that has come and differs in nothing else, if there is one.
  std::optional<int64_t> other_bytes;
};

class SendMatcher {
 public:
  // A message has arrived. Returns the receive that waits for it; without one the message is kept.
  std::optional<uint32_t> Arrive(const SendKey& key);

  // Returns true when the message of the receive is there already, which is then taken; else the
  // receive waits.
  bool Receive(const SendKey& key, uint32_t node);

  // Returns the receives that wait, in no particular order.
  std::vector<WaitingReceive> WaitingReceives() const;

 private:
  // What waits under one key: messages that have arrived, or receives in their order, never both.
  struct Channel {
    int64_t arrived = 0;
    std::deque<uint32_t> receives;
  };

  absl::flat_hash_map<SendKey, Channel> channels_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SEND_MATCHER_H_
