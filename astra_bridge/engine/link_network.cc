#include "astra_bridge/engine/link_network.h"

namespace meridian {

LinkTimes LinkTimesOf(const NetworkDimension& dimension, int64_t bytes) {
  const double sending = static_cast<double>(bytes) / dimension.bytes_per_ns;
  return {static_cast<int64_t>(dimension.latency_ns + sending), static_cast<int64_t>(sending)};
}

LinkNetwork::LinkNetwork(const Topology& topology, Congestion congestion, EventQueue& events,
                         LinkPaths* paths)
    : topology_(topology),
      aware_(congestion != Congestion::kUnaware),
      flows_(paths == nullptr ? nullptr
                              : std::make_unique<FlowNetwork>(topology.network(), *paths, events)),
      events_(events) {
  if (!aware_ || flows_ != nullptr) return;
  for (int32_t d = 0; d < topology.dimension_count(); ++d) {
    first_link_.push_back(static_cast<uint32_t>(links_.size()));
    if (topology.dimension(d).shape == BlockShape::kFullyConnected) continue;
    Link link;
    link.dimension = static_cast<int16_t>(d);
    links_.resize(links_.size() + 2 * static_cast<size_t>(topology.npus()), link);
  }
}

uint32_t LinkNetwork::NewMessage() {
  if (free_messages_ == kNone) {
    messages_.emplace_back();
    return static_cast<uint32_t>(messages_.size() - 1);
  }
  const uint32_t message = free_messages_;
  free_messages_ = messages_[message].next;
  return message;
}

uint32_t LinkNetwork::Send(int32_t source, int32_t destination, int64_t bytes,
                           uint32_t collective) {
  const uint32_t number = NewMessage();
  Message& message = messages_[number];
  if (!aware_) {
    events_.Schedule(events_.now_ns() + UncongestedNs(source, destination, bytes),
                     EventKind::kCrossed, number);
    return number;
  }
  if (flows_ != nullptr) {
    flows_->Send(number, source, destination, bytes, collective);
    return number;
  }
  message.bytes = bytes;
  message.source = source;
  message.destination = destination;
  message.at = source;
  message.hops_left = 0;
  Leave(number);
  return number;
}

int32_t LinkNetwork::AtDestination(const Message& message) const {
  const int32_t step = topology_.Coordinate(message.destination, message.dimension) -
                       topology_.Coordinate(message.at, message.dimension);
  return message.at + step * topology_.stride(message.dimension);
}

int32_t LinkNetwork::Neighbour(int32_t dimension, int32_t rank, int32_t direction) const {
  const int32_t npus = topology_.dimension(dimension).npus;
  const int32_t next = topology_.Coordinate(rank, dimension) + direction;
  const int32_t around = next < 0 ? npus : next == npus ? -npus : 0;
  return rank + (direction + around) * topology_.stride(dimension);
}

void LinkNetwork::Leave(uint32_t number) {
  Message& message = messages_[number];
  if (message.hops_left == 0) {
    const int32_t dimension = topology_.FirstDifference(message.at, message.destination);
    const int32_t from = topology_.Coordinate(message.at, dimension);
    const int32_t to = topology_.Coordinate(message.destination, dimension);
    message.dimension = static_cast<int16_t>(dimension);
    message.direction = static_cast<int16_t>(topology_.Direction(dimension, from, to));
    message.hops_left = topology_.Hops(dimension, from, to);
  }
  const int32_t dimension = message.dimension;
  const uint32_t first = first_link_[dimension];
  switch (topology_.dimension(dimension).shape) {
    case BlockShape::kRing:
    case BlockShape::kMesh:
      Enter(first + 2 * message.at + (message.direction < 0 ? 1 : 0), number);
      return;
    case BlockShape::kSwitch:
      if (message.hops_left == 2) {
        Enter(first + 2 * message.at, number);
      } else {
        Enter(first + 2 * AtDestination(message) + 1, number);
      }
      return;
    case BlockShape::kFullyConnected:
      Enter(DirectLink(dimension, message.at, AtDestination(message)), number);
      return;
    case BlockShape::kLinks:
      return;
  }
}

bool LinkNetwork::Arrives(uint32_t number) {
  Message& message = messages_[number];
  if (aware_ && flows_ == nullptr) {
    const BlockShape shape = topology_.dimension(message.dimension).shape;
    --message.hops_left;
    if (shape == BlockShape::kRing || shape == BlockShape::kMesh) {
      message.at = Neighbour(message.dimension, message.at, message.direction);
    } else if (message.hops_left == 0) {
      message.at = AtDestination(message);
    }
    if (message.hops_left > 0 || message.at != message.destination) {
      Leave(number);
      return false;
    }
  }
  message.next = free_messages_;
  free_messages_ = number;
  return true;
}

uint32_t LinkNetwork::DirectLink(int32_t dimension, int32_t from, int32_t to) {
  // Ranks fit into 20 bits; the two differ in this dimension only.
  const uint64_t key = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
  const auto [entry, is_new] = direct_links_.try_emplace(key, 0);
  if (!is_new) return entry->second;
  if (free_links_.empty()) {
    free_links_.push_back(static_cast<uint32_t>(links_.size()));
    links_.emplace_back();
  }
  entry->second = free_links_.back();
  free_links_.pop_back();
  Link& link = links_[entry->second];
  link.dimension = static_cast<int16_t>(dimension);
  link.key = key;
  link.entered_ns = -1;
  return entry->second;
}

void LinkNetwork::Enter(uint32_t link_number, uint32_t message) {
  Link& link = links_[link_number];
  const int32_t source = messages_[message].source;
  if (link.entered_ns == events_.now_ns() && link.source != source) order_mattered_ = true;
  link.entered_ns = events_.now_ns();
  link.source = source;
  if (!link.busy) {
    Start(link_number, message);
    return;
  }
  messages_[message].next = kNone;
  if (link.first_waiting == kNone) {
    link.first_waiting = message;
  } else {
    messages_[link.last_waiting].next = message;
  }
  link.last_waiting = message;
}

void LinkNetwork::Start(uint32_t link_number, uint32_t number) {
  Link& link = links_[link_number];
  const Message& message = messages_[number];
  const LinkTimes times = LinkTimesOf(topology_.dimension(link.dimension), message.bytes);
  link.busy = true;
  events_.Schedule(events_.now_ns() + times.crossing_ns, EventKind::kCrossed, number);
  events_.Schedule(events_.now_ns() + times.sending_ns, EventKind::kLinkFree, link_number);
}

void LinkNetwork::OnLinkFree(uint32_t link_number) {
  if (flows_ != nullptr) {
    flows_->OnEvent();
    return;
  }
  Link& link = links_[link_number];
  link.busy = false;
  if (link.first_waiting != kNone) {
    const uint32_t message = link.first_waiting;
    link.first_waiting = messages_[message].next;
    Start(link_number, message);
    return;
  }
  const bool is_direct = topology_.dimension(link.dimension).shape == BlockShape::kFullyConnected;
  if (is_direct) {
    direct_links_.erase(link.key);
    free_links_.push_back(link_number);
  }
}

int64_t LinkNetwork::UncongestedNs(int32_t source, int32_t destination, int64_t bytes) const {
  if (flows_ != nullptr) return flows_->AloneNs(source, destination, bytes);
  const int32_t dimension = topology_.FirstDifference(source, destination);
  const NetworkDimension& block = topology_.dimension(dimension);
  const int32_t hops = topology_.Hops(dimension, topology_.Coordinate(source, dimension),
                                      topology_.Coordinate(destination, dimension));
  return static_cast<int64_t>(hops * block.latency_ns +
                              static_cast<double>(bytes) / block.bytes_per_ns);
}

}  // namespace meridian
