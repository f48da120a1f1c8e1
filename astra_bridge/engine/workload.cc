#include "astra_bridge/engine/workload.h"

#include <utility>

namespace meridian {

void RankWorkload::Add(WorkloadNode node, absl::Span<const uint64_t> dependencies) {
  nodes_.push_back(std::move(node));
  dependencies_.insert(dependencies_.end(), dependencies.begin(), dependencies.end());
  dependencies_end_.push_back(dependencies_.size());
}

absl::Span<const uint64_t> RankWorkload::dependencies(size_t node) const {
  const size_t begin = node == 0 ? 0 : dependencies_end_[node - 1];
  return absl::MakeConstSpan(dependencies_).subspan(begin, dependencies_end_[node] - begin);
}

void RankWorkload::Reserve(size_t nodes, size_t dependencies) {
  nodes_.reserve(nodes);
  dependencies_.reserve(dependencies);
  dependencies_end_.reserve(nodes);
}

}  // namespace meridian
