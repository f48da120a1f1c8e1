#include "chakra_export/generate/generated_workload.h"

#include <cmath>
#include <utility>

#include "chakra_export/graph/transitive_reduction.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int64_t kComputeStream = 0;
constexpr int64_t kCommunicationStream = 1;
constexpr int64_t kReceivesFromLowerRanksStream = 2;
constexpr int64_t kReceivesFromHigherRanksStream = 3;

ExecutionNode MessageNode(absl::string_view name, ChakraProtoMsg::NodeType type,
                          const PeerMessage& message) {
  ExecutionNode node;
  node.name = name;
  node.type = type;
  node.communication.emplace();
  node.communication->bytes = message.bytes;
  node.communication->tag = message.tag;
  return node;
}

}  // namespace

int64_t DurationNs(const WorkCost& cost, double tflops) {
  return std::llround(static_cast<double>(cost.operations) / (tflops * 1000));
}

RankProgram::RankProgram(int64_t rank, ExecutionGraphBuilder* builder)
    : rank_(rank),
      builder_(builder),
      compute_(builder->AddResource({rank, ResourceKind::kStream, kComputeStream})),
      communication_(builder->AddResource({rank, ResourceKind::kStream, kCommunicationStream})) {}

NodeIndex RankProgram::Compute(absl::string_view name, const WorkCost& cost, int64_t duration_ns,
                               absl::Span<const NodeIndex> after) {
  ExecutionNode node;
  node.name = name;
  node.type = ChakraProtoMsg::COMP_NODE;
  node.resource = compute_;
  node.duration_ns = duration_ns;
  compute_ns_ += duration_ns;
  operations_ += cost.operations;
  return AddInOrder(node, cost, after, &last_compute_);
}

NodeIndex RankProgram::Collective(absl::string_view name, ChakraProtoMsg::CollectiveCommType type,
                                  int64_t bytes, GroupIndex group,
                                  absl::Span<const NodeIndex> after) {
  ExecutionNode node;
  node.name = name;
  node.type = ChakraProtoMsg::COMM_COLL_NODE;
  node.resource = communication_;
  node.communication.emplace();
  node.communication->bytes = bytes;
  node.communication->type = type;
  node.communication->group = group;
  return AddInOrder(node, {}, after, &last_communication_);
}

NodeIndex RankProgram::Send(absl::string_view name, const PeerMessage& message,
                            absl::Span<const NodeIndex> after) {
  ExecutionNode node = MessageNode(name, ChakraProtoMsg::COMM_SEND_NODE, message);
  node.resource = communication_;
  node.communication->source = rank_;
  node.communication->target = message.peer;
  return AddInOrder(node, {}, after, &last_communication_);
}

NodeIndex RankProgram::Receive(absl::string_view name, const PeerMessage& message,
                               absl::Span<const NodeIndex> after) {
  ExecutionNode node = MessageNode(name, ChakraProtoMsg::COMM_RECV_NODE, message);
  node.resource = builder_->AddResource(
      {rank_, ResourceKind::kStream,
       message.peer < rank_ ? kReceivesFromLowerRanksStream : kReceivesFromHigherRanksStream});
  node.communication->source = message.peer;
  node.communication->target = rank_;
  return Add(node, {}, after);
}

NodeIndex RankProgram::AddInOrder(const ExecutionNode& node, const WorkCost& cost,
                                  absl::Span<const NodeIndex> after, NodeIndex* last) {
  const NodeIndex index = Add(node, cost, after);
  if (*last != kNoNodeIndex) builder_->AddDependency(index, *last, EdgeKind::kStream);
  *last = index;
  return index;
}

NodeIndex RankProgram::Add(ExecutionNode node, const WorkCost& cost,
                           absl::Span<const NodeIndex> after) {
  notes_.push_back({cost, microbatch_});
  if (node.communication.has_value()) ++communication_count_;
  node.id = notes_.size();
  const NodeIndex index = builder_->AddNode(node);
  for (const NodeIndex source : after) builder_->AddDependency(index, source, EdgeKind::kData);
  return index;
}

absl::StatusOr<ExecutionGraph> BuildWorkloadGraph(const GeneratedWorkload& workload) {
  ExecutionGraphBuilder builder;
  for (int64_t rank = 0; rank < workload.rank_count(); ++rank) {
    RankProgram program(rank, &builder);
    workload.AddRank(rank, &program);
  }
  ExecutionGraph graph = std::move(builder).Build();
  RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
  return graph;
}

}  // namespace meridian
