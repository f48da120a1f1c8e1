// SPDX-License-Identifier: Apache-2.0
// Which nodes of different ranks are one communication.
//
//   rank 0   send 4 ----------+       all-reduce 9, group "1" --+
//   rank 1   receive 7 <------+       all-reduce 8, group "1" --+--> one instance
//
// The k-th collective of a group on one rank is one with the k-th on every other, and so are the
// k-th send and the k-th receive of one source, target and tag; on a rank the order is that of the
// ids, which is that of the launches.
#ifndef CHAKRA_EXPORT_GRAPH_COMMUNICATION_MATCH_H_
#define CHAKRA_EXPORT_GRAPH_COMMUNICATION_MATCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// Nodes that do not fit together.
struct MatchProblem {
  enum class Kind : uint8_t {
    // A member, sender or receiver lacks a counterpart.
    kMissingPeer,
    // The members disagree about the type or the bytes.
    kDisagreement,
    // The rank is no member of the group.
    kNotAMember,
  };
  Kind kind = Kind::kMissingPeer;
  NodeIndex node = kNoNodeIndex;
  // Says what is wrong and names the nodes.
  std::string text;
};

class CommunicationMatch {
 public:
  using Instance = uint32_t;
  static constexpr Instance kNoInstance = std::numeric_limits<Instance>::max();

  // Only the ranks of the graph are matched: a group's other ranks, and peers of messages that are
  // in no trace at hand, are taken to be there.
  explicit CommunicationMatch(const ExecutionGraph& graph);

  size_t instance_count() const { return first_member_.size() - 1; }

  // Returns the nodes of an instance: of a collective in the order of its group, of a message the
  // send, then the receive. Some are missing when their rank is not in the graph, or as a problem
  // says.
  absl::Span<const NodeIndex> members(Instance instance) const {
    return absl::MakeConstSpan(members_).subspan(
        first_member_[instance], first_member_[instance + 1] - first_member_[instance]);
  }

  // Returns kNoInstance for a node that does not communicate.
  Instance instance_of(NodeIndex node) const { return instance_of_[node]; }

  // In the order of ranks and ids. Without any, every instance is complete.
  const std::vector<MatchProblem>& problems() const { return problems_; }

 private:
  friend class CommunicationMatcher;

  // By instance: where its members begin; one entry more, the end of the last instance's.
  std::vector<uint32_t> first_member_ = {0};
  std::vector<NodeIndex> members_;
  // The instance of each graph node, or kNoInstance; indexed by node.
  std::vector<Instance> instance_of_;
  std::vector<MatchProblem> problems_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_COMMUNICATION_MATCH_H_
