#include "astra_bridge/engine/flow_network.h"

#include <algorithm>
#include <limits>

namespace meridian {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Flows that would last longer last this long, which no simulation does.
constexpr double kLongestNs = static_cast<double>(int64_t{1} << 61);

int64_t WholeNs(double lasts_ns) { return static_cast<int64_t>(std::min(lasts_ns, kLongestNs)); }

}  // namespace

FlowNetwork::FlowNetwork(const NetworkConfig& network, LinkPaths& paths, EventQueue& events)
    : events_(events), paths_(paths), links_(2 * network.links.size()), next_event_ns_(kNever) {
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i].bytes_per_ns = network.links[i / 2].bytes_per_ns;
  }
}

void FlowNetwork::AskForEvent(int64_t time_ns) {
  if (time_ns >= next_event_ns_) return;
  next_event_ns_ = time_ns;
  events_.Schedule(time_ns, EventKind::kLinkFree, /*subject=*/0);
}

int64_t FlowNetwork::AloneNs(int32_t source, int32_t destination, int64_t bytes) {
  const LinkPath& path = paths_.Find(source, destination);
  return static_cast<int64_t>(path.latency_ns + static_cast<double>(bytes) / path.bytes_per_ns);
}

void FlowNetwork::Send(uint32_t message, int32_t source, int32_t destination, int64_t bytes,
                       uint32_t collective) {
  if (bytes == 0) {
    events_.Schedule(events_.now_ns() + AloneNs(source, destination, 0), EventKind::kCrossed,
                     message);
    return;
  }
  if (collective == kNoCollective) {
    Start(message, bytes, paths_.Find(source, destination), kNone);
    return;
  }
  const auto [known, is_new] = connection_of_.try_emplace(
      std::make_tuple(collective, source, destination), connections_.size());
  if (is_new) connections_.emplace_back().path = &paths_.Find(source, destination);
  Connection& connection = connections_[known->second];
  if (!connection.is_busy) {
    connection.is_busy = true;
    Start(message, bytes, *connection.path, known->second);
    return;
  }
  connection.waiting.push_back({message, bytes});
}

void FlowNetwork::StartNext(uint32_t number) {
  Connection& connection = connections_[number];
  connection.is_busy = !connection.waiting.empty();
  if (!connection.is_busy) return;
  const auto [message, bytes] = connection.waiting.front();
  connection.waiting.erase(connection.waiting.begin());
  Start(message, bytes, *connection.path, number);
}

void FlowNetwork::Start(uint32_t message, int64_t bytes, const LinkPath& path,
                        uint32_t connection) {
  if (free_flows_.empty()) {
    free_flows_.push_back(static_cast<uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const uint32_t number = free_flows_.back();
  free_flows_.pop_back();
  Flow& flow = flows_[number];
  flow.message = message;
  flow.connection = connection;
  flow.latency_ns = path.latency_ns;
  flow.started_ns = events_.now_ns();
  flow.bytes_left = static_cast<double>(bytes);
  flow.elapsed_ns = 0;
  flow.bytes_per_ns = 0;
  bool is_alone = true;
  for (const uint32_t link : path.links) {
    std::vector<uint32_t>& flows = links_[link].flows;
    is_alone = is_alone && flows.empty();
    flow.places.push_back({link, static_cast<uint32_t>(flows.size())});
    flows.push_back(number);
  }
  if (is_alone) {
    AskForEvent(SetRate(number, path.bytes_per_ns));
    return;
  }
  changed_.insert(changed_.end(), path.links.begin(), path.links.end());
  AskForEvent(events_.now_ns());
}

void FlowNetwork::OnEvent() {
  if (events_.now_ns() >= next_event_ns_) next_event_ns_ = kNever;
  const auto is_outdated = [this](const End& end) {
    return flows_[end.flow].version != end.version;
  };
  while (!ends_.empty() && (is_outdated(ends_.top()) || ends_.top().time_ns <= events_.now_ns())) {
    const End end = ends_.top();
    ends_.pop();
    if (!is_outdated(end)) EndFlow(end.flow);
  }
  if (!changed_.empty()) {
    CollectChanged();
    ShareOut();
  }
  while (!ends_.empty() && is_outdated(ends_.top())) ends_.pop();
  if (ends_.empty()) return;
  AskForEvent(std::max(events_.now_ns(), ends_.top().time_ns));
}

void FlowNetwork::EndFlow(uint32_t number) {
  Flow& flow = flows_[number];
  const double lasted_ns = flow.elapsed_ns + flow.bytes_left / flow.bytes_per_ns + flow.latency_ns;
  events_.Schedule(std::max(events_.now_ns(), flow.started_ns + WholeNs(lasted_ns)),
                   EventKind::kCrossed, flow.message);
  for (const Place& place : flow.places) {
    std::vector<uint32_t>& flows = links_[place.link].flows;
    const uint32_t moved = flows.back();
    flows[place.position] = moved;
    flows.pop_back();
    // A way has each link once.
    for (Place& other : flows_[moved].places) {
      if (other.link == place.link) other.position = place.position;
    }
    if (!flows.empty()) changed_.push_back(place.link);
  }
  flow.places.clear();
  ++flow.version;
  free_flows_.push_back(number);
  if (flow.connection != kNone) StartNext(flow.connection);
}

void FlowNetwork::CollectChanged() {
  ++sharing_;
  shared_links_.clear();
  const auto add_link = [this](uint32_t number) {
    Link& link = links_[number];
    if (link.sharing == sharing_ || link.flows.empty()) return;
    link.sharing = sharing_;
    link.left = link.bytes_per_ns;
    link.open = static_cast<uint32_t>(link.flows.size());
    shared_links_.push_back(number);
  };
  for (const uint32_t link : changed_) add_link(link);
  changed_.clear();
  for (size_t i = 0; i < shared_links_.size(); ++i) {
    for (const uint32_t number : links_[shared_links_[i]].flows) {
      Flow& flow = flows_[number];
      if (flow.sharing == sharing_) continue;
      flow.sharing = sharing_;
      for (const Place& place : flow.places) add_link(place.link);
    }
  }
}

void FlowNetwork::ShareOut() {
  // A heap with the link on top that gives its flows least; shares of others only grow meanwhile.
  by_share_.clear();
  for (const uint32_t link : shared_links_) by_share_.emplace_back(links_[link].share(), link);
  const std::greater<std::pair<double, uint32_t>> order;
  std::make_heap(by_share_.begin(), by_share_.end(), order);
  while (!by_share_.empty()) {
    std::pop_heap(by_share_.begin(), by_share_.end(), order);
    const auto [share, number] = by_share_.back();
    by_share_.pop_back();
    Link& link = links_[number];
    if (link.open == 0) continue;
    if (link.share() > share) {
      by_share_.emplace_back(link.share(), number);
      std::push_heap(by_share_.begin(), by_share_.end(), order);
      continue;
    }
    for (const uint32_t flow : link.flows) {
      if (flows_[flow].shared == sharing_) continue;
      flows_[flow].shared = sharing_;
      for (const Place& place : flows_[flow].places) {
        links_[place.link].left -= share;
        --links_[place.link].open;
      }
      if (flows_[flow].bytes_per_ns != share) SetRate(flow, share);
    }
  }
}

int64_t FlowNetwork::SetRate(uint32_t number, double bytes_per_ns) {
  Flow& flow = flows_[number];
  const double elapsed_ns = static_cast<double>(events_.now_ns() - flow.started_ns);
  flow.bytes_left =
      std::max(0.0, flow.bytes_left - (elapsed_ns - flow.elapsed_ns) * flow.bytes_per_ns);
  flow.elapsed_ns = elapsed_ns;
  flow.bytes_per_ns = bytes_per_ns;
  const int64_t end_ns = flow.started_ns + WholeNs(elapsed_ns + flow.bytes_left / bytes_per_ns);
  ends_.push({end_ns, number, ++flow.version});
  return end_ns;
}

}  // namespace meridian
