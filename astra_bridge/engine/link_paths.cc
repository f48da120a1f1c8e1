#include "astra_bridge/engine/link_paths.h"

#include <algorithm>

namespace meridian {

LinkPaths::LinkPaths(const NetworkConfig& network)
    : network_(network),
      devices_(network.npus() + static_cast<int32_t>(network.switches.size())),
      first_(devices_ + 1, 0) {
  for (const NetworkLink& link : network.links) {
    for (const int32_t end : link.ends) ++first_[end + 1];
  }
  for (int32_t device = 0; device < devices_; ++device) first_[device + 1] += first_[device];
  from_.resize(2 * network.links.size());
  std::vector<uint32_t> filled(first_.begin(), first_.end() - 1);
  for (uint32_t one_way = 0; one_way < from_.size(); ++one_way) {
    from_[filled[network.links[one_way / 2].ends[one_way % 2]]++] = one_way;
  }
}

const std::vector<int32_t>& LinkPaths::DistancesTo(int32_t destination) {
  const auto known = distances_.find(destination);
  if (known != distances_.end()) return known->second;
  // Distances that are kept, of all destinations together.
  constexpr size_t kMaxKnownDistances = size_t{1} << 26;
  if ((distances_.size() + 1) * devices_ > kMaxKnownDistances) distances_.clear();
  std::vector<int32_t>& distances = distances_[destination];
  distances.assign(devices_, -1);
  distances[destination] = 0;
  std::vector<int32_t> reached = {destination};
  for (size_t i = 0; i < reached.size(); ++i) {
    const int32_t device = reached[i];
    for (uint32_t k = first_[device]; k < first_[device + 1]; ++k) {
      const int32_t next = EndOf(from_[k]);
      if (distances[next] >= 0) continue;
      distances[next] = distances[device] + 1;
      reached.push_back(next);
    }
  }
  return distances;
}

void LinkPaths::NextLinks(int32_t device, const std::vector<int32_t>& distances,
                          std::vector<uint32_t>* next) const {
  next->clear();
  for (uint32_t k = first_[device]; k < first_[device + 1]; ++k) {
    if (distances[EndOf(from_[k])] == distances[device] - 1) next->push_back(from_[k]);
  }
}

LinkPath LinkPaths::Walk(int32_t source, int32_t destination) {
  const std::vector<int32_t>& distances = DistancesTo(destination);
  LinkPath path;
  path.bytes_per_ns = kMaxBytesPerNs;
  uint32_t chooser = static_cast<uint32_t>(destination);
  std::vector<uint32_t> next;
  for (int32_t device = source; device != destination; device = EndOf(path.links.back())) {
    NextLinks(device, distances, &next);
    const uint32_t choices = static_cast<uint32_t>(next.size());
    path.links.push_back(next[chooser % choices]);
    chooser /= choices;
    const NetworkLink& link = network_.links[path.links.back() / 2];
    path.latency_ns += link.latency_ns;
    path.bytes_per_ns = std::min(path.bytes_per_ns, link.bytes_per_ns);
  }
  return path;
}

const LinkPath& LinkPaths::Find(int32_t source, int32_t destination) {
  const uint64_t key = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(destination);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, Walk(source, destination)).first->second;
}

}  // namespace meridian
