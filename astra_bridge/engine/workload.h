// SPDX-License-Identifier: Apache-2.0
// What the ranks of a simulated run do, free of any file: per rank a graph of nodes.
//
//   rank 0   compute 1 --> all-reduce 2 --> send 3 (to rank 1)
//   rank 1   compute 1 --> all-reduce 2 --> receive 3 (from rank 0)
//
// A node is ready when all it depends on has finished. Of the ready nodes of a rank the one with
// the smallest id is issued first, as soon as its resource is free: a rank runs one compute node,
// one host node and (with one comm stream) one collective, send or access to remote memory at a
// time; receives wait without occupying anything. Ranks meet only in communication:
//   * the k-th collective that a member issues in a group is one operation with the k-th of every
//     other member;
//   * the k-th send of a (source, destination, tag, bytes) meets the k-th such receive.
#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

enum class WorkloadNodeType : uint8_t { kCompute, kCollective, kSend, kReceive, kMemory };

// The group of all ranks, in the order of their ids.
inline constexpr int32_t kWorldGroup = 0;

// Start of a node that was not measured.
inline constexpr int64_t kNotMeasured = -1;

// fixed_ns of a transfer that lasts what the network says.
inline constexpr int64_t kSimulated = -1;

// The algorithms that the system configuration names.
inline constexpr int32_t kSystemAlgorithms = -1;

// Only the members that the type names matter.
struct WorkloadNode {
  // Unique within its rank.
  uint64_t id = 0;
  WorkloadNodeType type = WorkloadNodeType::kCompute;

  // Compute and memory: the node runs on the host, beside what the device does.
  bool on_host = false;
  // Compute: it stands for time that nothing explains, and is no computation.
  bool is_host_gap = false;
  // It becomes ready so long after all that it depends on is over.
  int64_t delay_ns = 0;
  // When it was measured to start, Unix time; kNotMeasured when the trace does not say.
  int64_t measured_start_ns = kNotMeasured;
  // Compute and broadcast (with replay_only any node): how long it lasts, at least 1 ns.
  int64_t duration_ns = 0;
  // Compute under a roofline, which then decides how long it lasts: operations, and bytes moved.
  // Memory: bytes loaded from remote memory, or stored to it.
  int64_t operations = 0;
  int64_t tensor_bytes = 0;

  // Collective and send: how long it occupies its comm stream before it moves anything.
  int64_t overhead_ns = 0;
  // Collective and send: how long it lasts, from when the last member joins, instead of being
  // simulated; it meets nothing on the network then. Of a collective, all members have one or none
  // has. Those that do not tie all members together (CollectivePlan) are simulated all the same.
  int64_t fixed_ns = kSimulated;
  // Communication: bytes as in Chakra's comm_size. All-gather: what one rank puts in; other
  // collectives: the whole buffer of a rank.
  int64_t bytes = 0;

  // Collective: what is done, and among whom.
  CollectiveKind op = CollectiveKind::kAllReduce;
  int32_t group = kWorldGroup;
  // Position in Workload::algorithms, or kSystemAlgorithms.
  int32_t algorithms = kSystemAlgorithms;
  // Collective of the world: bit d is set when dimension d of the network takes part.
  uint64_t involved_dimensions = ~uint64_t{0};

  // Send and receive: the other rank.
  int32_t peer = 0;
  int32_t tag = 0;

  // Name in timelines; may be empty.
  std::string name;
};

// The nodes of one rank.
class RankWorkload {
 public:
  // Where the nodes came from, for messages, e.g. "run/llama.3.et"; may be empty.
  std::string source;

  // Dependencies are ids of nodes of this rank, which may be added before or after.
  void Add(WorkloadNode node, absl::Span<const uint64_t> dependencies = {});

  absl::Span<const WorkloadNode> nodes() const { return nodes_; }
  // Returns the nodes, whose ids must stay.
  absl::Span<WorkloadNode> mutable_nodes() { return absl::MakeSpan(nodes_); }
  // Returns the ids that the node at that position depends on.
  absl::Span<const uint64_t> dependencies(size_t node) const;

 private:
  std::vector<WorkloadNode> nodes_;
  // Dependencies of all nodes, in the order of the nodes; those of node i end at
  // dependencies_end_[i].
  std::vector<uint64_t> dependencies_;
  std::vector<size_t> dependencies_end_;
};

// Ranks of each group in the order of the logical ring, by group id. Ids are positive.
using WorkloadGroups = std::map<int32_t, std::vector<int32_t>>;

struct Workload {
  // One for each NPU of the network. A rank may be without nodes; it is done at 0 ns.
  std::vector<RankWorkload> ranks;
  WorkloadGroups groups;
  // Where the groups came from, for messages; may be empty.
  std::string groups_source;
  // Algorithm lists, one entry per network dimension, that nodes may name in place of the system's.
  std::vector<std::vector<CollectiveAlgorithm>> algorithms;
  // What each member does in collectives of each kind, where the system configuration names traces
  // (SystemConfig::custom): sends, receives and computations; peers are positions in the group.
  std::array<std::vector<RankWorkload>, kSimulatedCollectives> custom;
  // For collectives of which size (comm_size) they were written; absent when they do not say.
  std::array<std::optional<int64_t>, kSimulatedCollectives> custom_bytes;

  bool has_custom() const {
    return std::any_of(custom.begin(), custom.end(),
                       [](const std::vector<RankWorkload>& members) { return !members.empty(); });
  }
};

struct Group {
  int32_t id = kWorldGroup;
  // Ranks in the order of the ring. Empty: all ranks, in the order of their numbers, along the
  // dimensions of the network, which is how AstraSim treats any group that has them all.
  std::vector<int32_t> members;
};

struct Membership {
  // Number of the group in the table.
  uint32_t group = 0;
  // Position of the rank among the members.
  int32_t member = 0;
};

// The groups of a workload by number, and who is where in them. Group 0 is the world.
class GroupTable {
 public:
  // Fails on groups that are empty, members that are no ranks or there twice, and ids below 1.
  static absl::StatusOr<GroupTable> Create(const Workload& workload);

  const std::vector<Group>& groups() const { return groups_; }
  // Returns how many members the group of that number has.
  int32_t size(uint32_t group) const {
    return groups_[group].members.empty() ? ranks_
                                          : static_cast<int32_t>(groups_[group].members.size());
  }
  // Returns the rank at that position of the group.
  int32_t rank(uint32_t group, int32_t member) const {
    return groups_[group].members.empty() ? member : groups_[group].members[member];
  }

  // Returns where the rank is in the group of that id. NotFound when there is no such group,
  // InvalidArgument when the rank is not in it.
  absl::StatusOr<Membership> Find(int32_t rank, int32_t group_id) const;

 private:
  int32_t ranks_ = 0;
  std::vector<Group> groups_;
  // Numbers of groups by id.
  absl::flat_hash_map<int32_t, uint32_t> by_id_;
  // Positions of members by number of the group and rank; groups of all ranks have none here.
  absl::flat_hash_map<std::pair<uint32_t, int32_t>, int32_t> members_;
};

// Returns whether a device of the rank computes.
bool HasDevice(const RankWorkload& rank);
// Returns whether a node of such a rank counts as computing: what a device does, or a host where no
// device does anything.
bool Computes(const WorkloadNode& node, bool has_device);

// Returns the time from the first measured start of a node to the last end; nullopt when a node
// that lasts has no start, host gaps aside.
std::optional<int64_t> MeasuredSpanNs(const Workload& workload);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_H_
