// What the ranks of a simulated run do, free of any file: per rank a graph of nodes.
//
//   rank 0   compute 1 --> all-reduce 2 --> send 3 (to rank 1)
//   rank 1   compute 1 --> all-reduce 2 --> receive 3 (from rank 0)
//
// A node is ready when all it depends on has finished. Of the ready nodes of a rank the one with
// the smallest id is issued first, as soon as its resource is free: a rank runs one compute node,
// one host compute node and (with one comm stream) one collective or send at a time; receives wait
// without occupying anything. Ranks meet only in communication:
//   * the k-th collective that a member issues in a group is one operation with the k-th of every
//     other member;
//   * the k-th send of a (source, destination, tag, bytes) meets the k-th such receive.
#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

enum class WorkloadNodeType : uint8_t { kCompute, kCollective, kSend, kReceive };

// The group of all ranks, in the order of their ids.
inline constexpr int32_t kWorldGroup = 0;

// The algorithms that the system configuration names.
inline constexpr int32_t kSystemAlgorithms = -1;

// Only the members that the type names matter.
struct WorkloadNode {
  // Unique within its rank.
  uint64_t id = 0;
  WorkloadNodeType type = WorkloadNodeType::kCompute;

  // Compute: on the host, beside what the device computes.
  bool on_host = false;
  // Compute and broadcast: how long it lasts, at least 1 ns. With replay_only: any node.
  int64_t duration_ns = 0;
  // Compute under a roofline, which then decides how long it lasts: operations, and bytes moved.
  int64_t operations = 0;
  int64_t tensor_bytes = 0;

  // Communication: bytes as in Chakra's comm_size. All-gather: what one rank puts in; other
  // collectives: the whole buffer of a rank.
  int64_t bytes = 0;

  // Collective.
  CollectiveKind op = CollectiveKind::kAllReduce;
  int32_t group = kWorldGroup;
  // Position in Workload::algorithms, or kSystemAlgorithms.
  int32_t algorithms = kSystemAlgorithms;
  // Bit d: dimension d of the network takes part. For the world only.
  uint64_t involved_dimensions = ~uint64_t{0};

  // Send and receive: the other rank.
  int32_t peer = 0;
  int32_t tag = 0;

  // For timelines; may be empty.
  std::string name;
};

// The nodes of one rank.
class RankWorkload {
 public:
  // Where the nodes came from, for messages, e.g. "run/llama.3.et"; may be empty.
  std::string source;

  // Dependencies are ids of nodes of this rank, added before or after.
  void Add(WorkloadNode node, absl::Span<const uint64_t> dependencies = {});

  absl::Span<const WorkloadNode> nodes() const { return nodes_; }
  // Of the node at that position.
  absl::Span<const uint64_t> dependencies(size_t node) const;

  void Reserve(size_t nodes, size_t dependencies);

 private:
  std::vector<WorkloadNode> nodes_;
  // Of all nodes, in the order of the nodes.
  std::vector<uint64_t> dependencies_;
  std::vector<size_t> dependencies_end_;
};

// Members in the order of the logical ring, by group id. Ids are positive.
using WorkloadGroups = std::map<int32_t, std::vector<int32_t>>;

struct Workload {
  // As many as the network has NPUs. A rank may be without nodes; it is done at 0 ns.
  std::vector<RankWorkload> ranks;
  WorkloadGroups groups;
  // Where the groups came from, for messages; may be empty.
  std::string groups_source;
  // Algorithm lists, one entry per network dimension, that nodes may name in place of the system's.
  std::vector<std::vector<CollectiveAlgorithm>> algorithms;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_H_
