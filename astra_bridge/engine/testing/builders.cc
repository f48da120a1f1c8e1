#include "astra_bridge/engine/testing/builders.h"

#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {

NetworkDimension Dimension(BlockShape shape, int32_t npus, double gibibytes_per_second,
                           double latency_ns) {
  NetworkDimension dimension;
  dimension.shape = shape;
  dimension.npus = npus;
  dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(gibibytes_per_second);
  dimension.latency_ns = latency_ns;
  return dimension;
}

NetworkConfig Network(std::vector<NetworkDimension> dimensions) {
  NetworkConfig network;
  network.dimensions = std::move(dimensions);
  return network;
}

SystemConfig SystemWith(const std::vector<std::string>& algorithms) {
  SystemConfig system;
  for (const std::string& name : algorithms) {
    const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(name);
    MERIDIAN_CHECK(algorithm.ok());
    for (std::vector<CollectiveAlgorithm>& list : system.algorithms) list.push_back(*algorithm);
  }
  return system;
}

WorkloadNode ComputeNode(uint64_t id, int64_t duration_ns) {
  WorkloadNode node;
  node.id = id;
  node.duration_ns = duration_ns;
  return node;
}

WorkloadNode CollectiveNode(uint64_t id, CollectiveKind op, int64_t bytes, int32_t group) {
  WorkloadNode node;
  node.id = id;
  node.type = WorkloadNodeType::kCollective;
  node.op = op;
  node.bytes = bytes;
  node.group = group;
  return node;
}

WorkloadNode SendNode(uint64_t id, int32_t to_rank, int64_t bytes, int32_t tag) {
  WorkloadNode node;
  node.id = id;
  node.type = WorkloadNodeType::kSend;
  node.peer = to_rank;
  node.bytes = bytes;
  node.tag = tag;
  return node;
}

WorkloadNode ReceiveNode(uint64_t id, int32_t from_rank, int64_t bytes, int32_t tag) {
  WorkloadNode node = SendNode(id, from_rank, bytes, tag);
  node.type = WorkloadNodeType::kReceive;
  return node;
}

WorkloadNode MemoryNode(uint64_t id, int64_t bytes) {
  WorkloadNode node;
  node.id = id;
  node.type = WorkloadNodeType::kMemory;
  node.tensor_bytes = bytes;
  return node;
}

Workload EveryRank(int32_t ranks, const WorkloadNode& node) {
  Workload workload;
  workload.ranks.resize(ranks);
  for (RankWorkload& rank : workload.ranks) rank.Add(node);
  return workload;
}

}  // namespace meridian
