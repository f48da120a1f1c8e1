#include "astra_bridge/corrections/isolated_transfers.h"

#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<absl::Span<const int64_t>> IsolatedTransfers::PartsNs(
    absl::Span<const TransferPart> parts, uint64_t odd_trees) {
  const TransferPart& first = parts[0];
  const WorkloadNode& node = workload_.ranks[first.rank].nodes()[first.node];
  const Shape shape(node.type, node.op, node.bytes, PlaceOf(parts, node), node.algorithms,
                    node.involved_dimensions, odd_trees);
  auto known = known_ns_.find(shape);
  if (known == known_ns_.end()) {
    ASSIGN_OR_RETURN(std::vector<int64_t> parts_ns, Run(parts, odd_trees));
    known = known_ns_.emplace(shape, std::move(parts_ns)).first;
  }
  return absl::MakeConstSpan(known->second);
}

int32_t IsolatedTransfers::PlaceOf(absl::Span<const TransferPart> parts, const WorkloadNode& node) {
  const bool is_collective = node.type == WorkloadNodeType::kCollective;
  if (is_collective) {
    const auto known = places_of_groups_.find(node.group);
    if (known != places_of_groups_.end()) return known->second;
  }
  std::vector<int32_t> offsets;
  const auto add = [&](int32_t rank) {
    for (int32_t d = 0; d < topology_.dimension_count(); ++d) {
      offsets.push_back(topology_.Coordinate(rank, d) - topology_.Coordinate(parts[0].rank, d));
    }
  };
  for (const TransferPart& part : parts) add(part.rank);
  if (!is_collective) add(node.peer);
  const int32_t next = static_cast<int32_t>(places_.size());
  const int32_t place = places_.emplace(std::move(offsets), next).first->second;
  if (is_collective) places_of_groups_.emplace(node.group, place);
  return place;
}

absl::StatusOr<std::vector<int64_t>> IsolatedTransfers::Run(absl::Span<const TransferPart> parts,
                                                            uint64_t odd_trees) const {
  Workload alone;
  alone.ranks.resize(workload_.ranks.size());
  alone.algorithms = workload_.algorithms;
  for (const TransferPart& part : parts) {
    const WorkloadNode& node = workload_.ranks[part.rank].nodes()[part.node];
    alone.ranks[part.rank].Add(node);
    if (node.type == WorkloadNodeType::kSend) {
      WorkloadNode receive = node;
      receive.type = WorkloadNodeType::kReceive;
      receive.peer = part.rank;
      alone.ranks[node.peer].Add(receive);
    } else if (const auto group = workload_.groups.find(node.group);
               group != workload_.groups.end()) {
      alone.groups.insert(*group);
    }
  }
  SimulationOptions options;
  options.congestion = congestion_;
  options.transfers = true;
  options.odd_trees = odd_trees;
  ASSIGN_OR_RETURN(const SimulationResult result, Simulate(alone, network_, system_, options));
  MERIDIAN_CHECK(result.transfers.transfers().size() == 1);
  const Transfer& transfer = result.transfers.transfers()[0];
  std::vector<int64_t> parts_ns;
  for (const TransferPart& part : result.transfers.parts(transfer)) {
    parts_ns.push_back(part.end_ns - transfer.begin_ns);
  }
  return parts_ns;
}

}  // namespace meridian
