// SPDX-License-Identifier: Apache-2.0
// What a run did and what each piece of work waited for: the graph that converters build,
// simulators and critical-path analyses read, and Chakra traces store.
//
//   rank 0  thread 1   [launch] --program--> [launch]
//                         | launch              | launch
//           stream 7   [matmul] --data,stream-> [fusion]
//                                                  | data
//           stream 20                           [all-reduce]  . . . joined with rank 1's . . .
//
// A node is work of one rank on one resource. Edges lie within a rank; ranks meet in communication,
// which communication_match.h joins. Both are columns: 38 bytes per node, 5 per edge, and a name is
// stored once.
#ifndef CHAKRA_EXPORT_GRAPH_EXECUTION_GRAPH_H_
#define CHAKRA_EXPORT_GRAPH_EXECUTION_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/buckets.h"
#include "xla_profiler/base/string_pool.h"

// The enumerators are in third_party/chakra/et_def.pb.h, which is too heavy for a header that so
// many files include.
namespace ChakraProtoMsg {
enum CollectiveCommType : int;
enum NodeType : int;
}  // namespace ChakraProtoMsg

namespace meridian {

// Why a piece of work had to wait for another.
enum class EdgeKind : uint8_t {
  // It consumes what the other produced.
  kData,
  // The program says so without data: a control predecessor, the caller of a call.
  kControl,
  // The stream of a device runs its work in order.
  kStream,
  // A host call launched it.
  kLaunch,
  // A host thread runs its calls in order.
  kProgram,
  // A host call or a stream waited for it.
  kSync,
  // It began when the other had just ended, and nothing in the trace says why it had not begun
  // before.
  kInferred,
};

inline constexpr std::array<EdgeKind, 7> kEdgeKinds = {
    EdgeKind::kData,    EdgeKind::kControl, EdgeKind::kStream,  EdgeKind::kLaunch,
    EdgeKind::kProgram, EdgeKind::kSync,    EdgeKind::kInferred};

// Returns e.g. "stream".
absl::string_view EdgeKindName(EdgeKind kind);

// A set of kinds: one edge may have several reasons.
class EdgeKinds {
 public:
  constexpr EdgeKinds() = default;
  constexpr EdgeKinds(EdgeKind kind)  // NOLINT: a kind is a set of one
      : bits_(static_cast<uint8_t>(1 << static_cast<int>(kind))) {}

  constexpr bool Contains(EdgeKind kind) const { return (bits_ & EdgeKinds(kind).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

  constexpr EdgeKinds& operator|=(EdgeKinds other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr EdgeKinds operator|(EdgeKinds a, EdgeKinds b) { return a |= b; }
  friend constexpr bool operator==(EdgeKinds a, EdgeKinds b) { return a.bits_ == b.bits_; }
  friend constexpr bool operator!=(EdgeKinds a, EdgeKinds b) { return !(a == b); }

  // Returns one letter per kind, the first of its name except for sync, which is 'w' (wait): "ds".
  std::string Letters() const;

  // Returns nullopt for an empty text or an unknown letter.
  static std::optional<EdgeKinds> FromLetters(absl::string_view letters);

 private:
  uint8_t bits_ = 0;
};

// Letters of several sets, with commas between them: "d,ds,l".
std::string EdgeKindsText(absl::Span<const EdgeKinds> sets);
std::optional<std::vector<EdgeKinds>> ParseEdgeKinds(absl::string_view text);

// Position of a node in its graph.
using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNodeIndex = std::numeric_limits<NodeIndex>::max();

// Start of a node whose start is not known.
inline constexpr int64_t kNoTimeNs = std::numeric_limits<int64_t>::min();

// Rank of a peer that a node does not name.
inline constexpr int64_t kNoRank = -1;

// COMP_NODE, which nodes are unless they say otherwise.
inline constexpr ChakraProtoMsg::NodeType kComputationNode{4};

enum class ResourceKind : uint8_t {
  kHostThread,
  kStream,
  // On devices whose streams are not known, there is one resource for computation and one for
  // communication.
  kCompute,
  kCommunication,
};

// What runs work: a thread or stream of a rank. `number` is the thread's or stream's id.
struct Resource {
  int64_t rank = 0;
  ResourceKind kind = ResourceKind::kCompute;
  int64_t number = 0;

  friend bool operator<(const Resource& a, const Resource& b) {
    return std::tie(a.rank, a.kind, a.number) < std::tie(b.rank, b.kind, b.number);
  }
  friend bool operator==(const Resource& a, const Resource& b) {
    return std::tie(a.rank, a.kind, a.number) == std::tie(b.rank, b.kind, b.number);
  }
};
using ResourceIndex = uint32_t;

// Returns e.g. "stream 7" or "communication".
std::string ResourceName(const Resource& resource);

// Ranks that run collectives together, in the order that rings follow.
struct ProcessGroup {
  // "" is the group of all ranks.
  std::string name;
  std::vector<int64_t> ranks;
};
using GroupIndex = uint32_t;

// What a collective, send or receive node moves.
struct Communication {
  // As Chakra's comm_size: of an all-gather one rank's shard, else one rank's whole buffer.
  int64_t bytes = 0;
  // Type and group of a collective. The type is as the file has it, ALL_REDUCE when it has none.
  ChakraProtoMsg::CollectiveCommType type{};
  GroupIndex group = 0;
  // Ranks of a send or receive; kNoRank when the trace does not say.
  int64_t source = kNoRank;
  int64_t target = kNoRank;
  int32_t tag = 0;
};

// True for collectives, sends and receives; for sends and receives.
bool IsCommunication(ChakraProtoMsg::NodeType type);
bool IsMessage(ChakraProtoMsg::NodeType type);

// One node, as it is put into a graph.
struct ExecutionNode {
  // Unique within the rank; of nodes that are ready, simulators issue the smallest id first.
  uint64_t id = 0;
  absl::string_view name;
  ChakraProtoMsg::NodeType type = kComputationNode;
  ResourceIndex resource = 0;
  // Unix time; kNoTimeNs when it is not known.
  int64_t start_ns = kNoTimeNs;
  // How long it took; not negative.
  int64_t duration_ns = 0;
  // Present for collectives (whose group must be added before Build), sends and receives.
  std::optional<Communication> communication;
};

// `node` waits for `source`.
struct DependencyEdge {
  NodeIndex node = 0;
  NodeIndex source = 0;
  EdgeKinds kinds;
};

class ExecutionGraph {
 public:
  static constexpr size_t kMaxNodes = kNoNodeIndex;
  static constexpr size_t kMaxDependencies = std::numeric_limits<uint32_t>::max();

  size_t node_count() const { return ids_.size(); }
  size_t dependency_count() const { return sources_.size(); }
  const std::vector<Resource>& resources() const { return resources_; }
  const std::vector<ProcessGroup>& groups() const { return groups_; }
  // Returns the ranks that have a node or a resource, in ascending order.
  std::vector<int64_t> Ranks() const;

  uint64_t id(NodeIndex node) const { return ids_[node]; }
  absl::string_view name(NodeIndex node) const { return names_.Get(name_ids_[node]); }
  ChakraProtoMsg::NodeType type(NodeIndex node) const {
    return static_cast<ChakraProtoMsg::NodeType>(types_[node]);
  }
  // True for nodes that stand for time which nothing in the trace explains, told by their name.
  // They run where computation does, but are none.
  bool is_host_gap(NodeIndex node) const;
  ResourceIndex resource_index(NodeIndex node) const { return resource_ids_[node]; }
  const Resource& resource(NodeIndex node) const { return resources_[resource_ids_[node]]; }
  int64_t rank(NodeIndex node) const { return resource(node).rank; }
  int64_t start_ns(NodeIndex node) const { return starts_ns_[node]; }
  int64_t duration_ns(NodeIndex node) const { return durations_ns_[node]; }
  void set_duration_ns(NodeIndex node, int64_t duration_ns) { durations_ns_[node] = duration_ns; }

  // Returns null for a node that does not communicate.
  const Communication* communication(NodeIndex node) const {
    return communication_ids_[node] == kNoCommunication
               ? nullptr
               : &communications_[communication_ids_[node]];
  }

  // What the node waits for, in ascending order, and the reasons, one set for each.
  absl::Span<const NodeIndex> dependencies(NodeIndex node) const {
    return absl::MakeConstSpan(sources_).subspan(first_dependency_[node], DependencyCount(node));
  }
  absl::Span<const EdgeKinds> dependency_kinds(NodeIndex node) const {
    return absl::MakeConstSpan(kinds_).subspan(first_dependency_[node], DependencyCount(node));
  }

  // Removes every edge for which `keep` is false; it is called with the node and the position among
  // its dependencies, before any is removed from that node. Returns how many were removed.
  size_t RetainDependencies(absl::FunctionRef<bool(NodeIndex node, size_t position)> keep);

  // Adds the nodes of a graph of other ranks, after these; both have the same groups. OutOfRange
  // for more nodes or dependencies than a graph holds.
  absl::Status Append(const ExecutionGraph& other);

  // Returns how many dependencies have each kind, by its name; one that has several counts for each.
  std::map<std::string, int64_t> CountEdgeKinds() const;

  // Returns "ALL_REDUCE" and so on, "SEND" or "RECV" for a node that communicates.
  std::string CommunicationKind(NodeIndex node) const;

  // Returns e.g. "rank 3 node 17 (all-reduce.2)".
  std::string Describe(NodeIndex node) const;

 private:
  friend class ExecutionGraphBuilder;

  static constexpr uint32_t kNoCommunication = std::numeric_limits<uint32_t>::max();

  size_t DependencyCount(NodeIndex node) const {
    return first_dependency_[node + 1] - first_dependency_[node];
  }

  std::vector<Resource> resources_;
  std::vector<ProcessGroup> groups_;
  std::vector<Communication> communications_;
  StringPool names_;

  // One entry per node.
  std::vector<uint64_t> ids_;
  std::vector<int64_t> starts_ns_;
  std::vector<int64_t> durations_ns_;
  std::vector<uint32_t> name_ids_;
  std::vector<ResourceIndex> resource_ids_;
  std::vector<uint32_t> communication_ids_;
  std::vector<uint8_t> types_;
  // Where the node's edges begin; one entry more, the end of the last node's.
  std::vector<uint32_t> first_dependency_ = {0};

  // One entry per edge.
  std::vector<NodeIndex> sources_;
  std::vector<EdgeKinds> kinds_;
};

// Returns the time from the first start of a node to the last end; nullopt when a node that lasts
// has no start, or one before 1970, host gaps aside.
std::optional<int64_t> MeasuredSpanNs(const ExecutionGraph& graph);

// Takes nodes and edges in any order.
class ExecutionGraphBuilder {
 public:
  // Returns the resource's index, new or known.
  ResourceIndex AddResource(const Resource& resource);

  // Returns the index of the group of that name, which must have the same ranks when it is known.
  GroupIndex AddGroup(const ProcessGroup& group);

  // Makes room for so many nodes; more may be added.
  void Reserve(size_t nodes);

  // Returns the node's index; indices count up from 0. There must be fewer than kMaxNodes.
  NodeIndex AddNode(const ExecutionNode& node);

  // Lets `node` wait for `source`; several kinds between two nodes become one edge. There must be
  // fewer than kMaxDependencies.
  void AddDependency(NodeIndex node, NodeIndex source, EdgeKinds kinds);
  // Adds all at once, without a copy; there must be none yet.
  void AddDependencies(std::vector<DependencyEdge> edges);

  size_t node_count() const { return graph_.node_count(); }
  size_t dependency_count() const { return pending_.size(); }

  ExecutionGraph Build() &&;

 private:
  ExecutionGraph graph_;
  std::map<Resource, ResourceIndex> resource_indices_;
  ResourceIndex last_resource_ = 0;
  std::map<std::string, GroupIndex> group_indices_;
  std::vector<DependencyEdge> pending_;
};

// What each node waits for, of edges that may come in any order; those of a node stay in theirs.
class EdgesByNode : public Buckets<DependencyEdge> {
 public:
  EdgesByNode(absl::Span<const DependencyEdge> edges, size_t node_count);
};

// Which nodes wait for a node, in ascending order: the edges the other way round. 4 bytes per edge and
// node.
class SuccessorIndex : public Buckets<NodeIndex> {
 public:
  explicit SuccessorIndex(const ExecutionGraph& graph);
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_EXECUTION_GRAPH_H_
