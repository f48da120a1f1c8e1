// SPDX-License-Identifier: Apache-2.0
// Workloads for tests, node by node.
#ifndef ASTRA_BRIDGE_PREDICTION_TESTING_WORKLOAD_BUILDER_H_
#define ASTRA_BRIDGE_PREDICTION_TESTING_WORKLOAD_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

// Where a node runs and what it waits for.
struct NodePlace {
  NodePlace(int64_t node_rank, int64_t node_stream, std::vector<NodeIndex> sources = {})
      : rank(node_rank), stream(node_stream), after(std::move(sources)) {}

  int64_t rank;
  int64_t stream;
  std::vector<NodeIndex> after;
};

// Ids of a rank count up in the order of the calls.
class WorkloadBuilder {
 public:
  GroupIndex Group(const std::string& name, std::vector<int64_t> ranks) {
    return builder_.AddGroup({name, std::move(ranks)});
  }

  NodeIndex Compute(const NodePlace& place, int64_t duration_ns) {
    ExecutionNode node;
    node.duration_ns = duration_ns;
    return Add(place, node);
  }

  NodeIndex Collective(const NodePlace& place, GroupIndex group, int64_t bytes,
                       ChakraProtoMsg::CollectiveCommType type = ChakraProtoMsg::ALL_REDUCE) {
    ExecutionNode node;
    node.type = ChakraProtoMsg::COMM_COLL_NODE;
    node.communication.emplace();
    node.communication->bytes = bytes;
    node.communication->type = type;
    node.communication->group = group;
    return Add(place, node);
  }

  // One collective on several ranks, on the same stream of each; `after` holds one node per rank,
  // or none. Returns the nodes in the order of ranks.
  std::vector<NodeIndex> CollectiveOnAll(
      const std::vector<int64_t>& ranks, int64_t stream, GroupIndex group, int64_t bytes,
      const std::vector<NodeIndex>& after = {},
      ChakraProtoMsg::CollectiveCommType type = ChakraProtoMsg::ALL_REDUCE) {
    std::vector<NodeIndex> nodes;
    for (size_t i = 0; i < ranks.size(); ++i) {
      NodePlace place(ranks[i], stream);
      if (!after.empty()) place.after = {after[i]};
      nodes.push_back(Collective(place, group, bytes, type));
    }
    return nodes;
  }

  NodeIndex Send(const NodePlace& place, int64_t target, int64_t bytes, int32_t tag) {
    return Message(place, ChakraProtoMsg::COMM_SEND_NODE, place.rank, target, bytes, tag);
  }

  NodeIndex Receive(const NodePlace& place, int64_t source, int64_t bytes, int32_t tag) {
    return Message(place, ChakraProtoMsg::COMM_RECV_NODE, source, place.rank, bytes, tag);
  }

  ExecutionGraph Build() && { return std::move(builder_).Build(); }

 private:
  NodeIndex Message(const NodePlace& place, ChakraProtoMsg::NodeType type, int64_t source,
                    int64_t target, int64_t bytes, int32_t tag) {
    ExecutionNode node;
    node.type = type;
    node.communication.emplace();
    node.communication->bytes = bytes;
    node.communication->source = source;
    node.communication->target = target;
    node.communication->tag = tag;
    return Add(place, node);
  }

  NodeIndex Add(const NodePlace& place, ExecutionNode node) {
    node.id = next_ids_[place.rank]++;
    node.name = "n";
    node.resource = builder_.AddResource({place.rank, ResourceKind::kStream, place.stream});
    const NodeIndex index = builder_.AddNode(node);
    for (const NodeIndex source : place.after) {
      builder_.AddDependency(index, source, EdgeKind::kData);
    }
    return index;
  }

  std::map<int64_t, uint64_t> next_ids_;
  ExecutionGraphBuilder builder_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_TESTING_WORKLOAD_BUILDER_H_
