#include "astra_bridge/engine/send_matcher.h"

namespace meridian {

std::optional<uint32_t> SendMatcher::Arrive(const SendKey& key) {
  const auto entry = channels_.try_emplace(key).first;
  Channel& channel = entry->second;
  if (channel.receives.empty()) {
    ++channel.arrived;
    return std::nullopt;
  }
  const uint32_t node = channel.receives.front();
  channel.receives.pop_front();
  if (channel.receives.empty()) channels_.erase(entry);
  return node;
}

bool SendMatcher::Receive(const SendKey& key, uint32_t node) {
  const auto entry = channels_.try_emplace(key).first;
  Channel& channel = entry->second;
  if (channel.arrived == 0) {
    channel.receives.push_back(node);
    return false;
  }
  if (--channel.arrived == 0) channels_.erase(entry);
  return true;
}

std::vector<WaitingReceive> SendMatcher::WaitingReceives() const {
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int32_t>, int64_t> arrived_bytes;
  for (const auto& [key, channel] : channels_) {
    if (channel.arrived > 0) arrived_bytes[{key.source, key.destination, key.tag}] = key.bytes;
  }
  std::vector<WaitingReceive> waiting;
  for (const auto& [key, channel] : channels_) {
    const auto other = arrived_bytes.find({key.source, key.destination, key.tag});
    for (const uint32_t node : channel.receives) {
      WaitingReceive& receive = waiting.emplace_back();
      receive.key = key;
      receive.node = node;
      if (other != arrived_bytes.end()) receive.other_bytes = other->second;
    }
  }
  return waiting;
}

}  // namespace meridian
