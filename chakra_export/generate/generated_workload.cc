#include "chakra_export/generate/generated_workload.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int64_t kComputeStream = 0;
constexpr int64_t kCommunicationStream = 1;
constexpr int64_t kReceivesFromLowerRanksStream = 2;
constexpr int64_t kReceivesFromHigherRanksStream = 3;

constexpr double kMaxComputeNs = 1e17;
constexpr double kMaxTflops = 1e5;

ExecutionNode NewNode(absl::string_view name, ChakraProtoMsg::NodeType type,
                      ResourceIndex resource) {
  ExecutionNode node;
  node.name = name;
  node.type = type;
  node.resource = resource;
  return node;
}

// Refuses what chakra_inspect --check and the engine would.
absl::Status CheckCommBytes(const ExecutionGraph& graph) {
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* const communication = graph.communication(node);
    if (communication == nullptr || communication->bytes <= kMaxCommBytes) continue;
    return InvalidArgument(graph.name(node), " would move ", WithThousands(communication->bytes),
                           " bytes; at most ", WithThousands(kMaxCommBytes),
                           ": choose smaller sizes");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t DurationNs(const WorkCost& cost, double tflops) {
  // What is longer is refused later, and no integer's.
  constexpr double kMostNs = 4e18;
  return std::llround(std::min(static_cast<double>(cost.operations) / (tflops * 1000), kMostNs));
}

RankProgram::RankProgram(int64_t rank, ExecutionGraphBuilder* builder)
    : rank_(rank),
      builder_(builder),
      compute_(builder->AddResource({rank, ResourceKind::kStream, kComputeStream})),
      communication_(builder->AddResource({rank, ResourceKind::kStream, kCommunicationStream})) {}

NodeIndex RankProgram::Compute(absl::string_view name, const WorkCost& cost, int64_t duration_ns,
                               absl::Span<const NodeIndex> after) {
  ExecutionNode node = NewNode(name, ChakraProtoMsg::COMP_NODE, compute_);
  node.duration_ns = duration_ns;
  return AddInOrder(node, cost, after, &last_compute_);
}

NodeIndex RankProgram::Collective(absl::string_view name, ChakraProtoMsg::CollectiveCommType type,
                                  int64_t bytes, GroupIndex group,
                                  absl::Span<const NodeIndex> after) {
  ExecutionNode node = NewNode(name, ChakraProtoMsg::COMM_COLL_NODE, communication_);
  node.communication = Communication{bytes, type, group};
  return AddInOrder(node, {}, after, &last_communication_);
}

NodeIndex RankProgram::Send(absl::string_view name, const PeerMessage& message,
                            absl::Span<const NodeIndex> after) {
  ExecutionNode node = NewNode(name, ChakraProtoMsg::COMM_SEND_NODE, communication_);
  node.communication = Communication{message.bytes, {}, 0, rank_, message.peer, message.tag};
  return AddInOrder(node, {}, after, &last_communication_);
}

NodeIndex RankProgram::Receive(absl::string_view name, const PeerMessage& message,
                               absl::Span<const NodeIndex> after) {
  const int64_t stream =
      message.peer < rank_ ? kReceivesFromLowerRanksStream : kReceivesFromHigherRanksStream;
  ExecutionNode node = NewNode(name, ChakraProtoMsg::COMM_RECV_NODE,
                               builder_->AddResource({rank_, ResourceKind::kStream, stream}));
  node.communication = Communication{message.bytes, {}, 0, message.peer, rank_, message.tag};
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
  costs_.push_back(cost);
  node.id = costs_.size();
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

absl::StatusOr<ChakraWorkloadReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const std::function<void(int64_t rank)>& progress) {
  EtWorkloadWriter traces(file_system, prefix);
  for (int64_t rank = 0; rank < workload.rank_count(); ++rank) {
    if (progress) progress(rank);
    ExecutionGraphBuilder builder;
    RankProgram program(rank, &builder);
    workload.AddRank(rank, &program);
    ExecutionGraph graph = std::move(builder).Build();
    RETURN_IF_ERROR(CheckCommBytes(graph));
    RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
    const auto add_cost = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
      if (graph.communication(node) != nullptr) return;
      const WorkCost& cost = program.costs()[node];
      SetRoofline(cost.operations, cost.bytes, message->mutable_attr());
    };
    RETURN_IF_ERROR(AddEtGraph(graph, {nullptr, add_cost, nullptr}, &traces));
  }
  return traces.Commit(workload.rank_count());
}

absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidArgument(flag, "=", value, ": expected ", low, " to ", high);
}

absl::Status CheckTflops(double tflops) {
  // Written so that NaN is refused.
  if (tflops > 0 && tflops <= kMaxTflops) return absl::OkStatus();
  return InvalidArgument("--tflops=", tflops, ": expected more than 0 and at most ",
                         static_cast<int64_t>(kMaxTflops), ", e.g. --tflops=300");
}

absl::Status CheckDivides(absl::string_view flag, int64_t value, absl::string_view divisor_text,
                          int64_t divisor) {
  const int64_t below = value - value % divisor;
  if (value == below) return absl::OkStatus();
  return InvalidArgument(flag, "=", value, " does not divide by ", divisor_text, "; ",
                         below > 0 ? absl::StrCat(below, " or ") : std::string(), below + divisor,
                         " would");
}

absl::Status CheckCount(absl::int128 count, absl::string_view what, int64_t most,
                        absl::string_view remedy) {
  if (count <= most) return absl::OkStatus();
  return InvalidArgument("the workload would have ", WithThousands(SaturateToInt64(count)), " ",
                         what, "; at most ", WithThousands(most), ": ", remedy);
}

absl::Status CheckComputation(absl::int128 operations, double tflops, absl::string_view remedy) {
  return CheckDuration(static_cast<double>(operations) / (tflops * 1000), remedy);
}

absl::Status CheckDuration(double ns, absl::string_view remedy) {
  if (ns <= kMaxComputeNs) return absl::OkStatus();
  return InvalidArgument("a rank would compute for more than three years: ", remedy);
}

absl::Status CheckAllGatherBytes(int64_t bytes, absl::string_view remedy) {
  if (bytes >= kMinAllGatherBytes) return absl::OkStatus();
  return InvalidArgument("an all-gather would have ", bytes, " bytes per rank; at least ",
                         kMinAllGatherBytes, ", or ASTRA-sim may never end: ", remedy);
}

ProcessGroup RankLayout::Row(int64_t rank, int64_t stride, int64_t count,
                             int64_t first_number) const {
  ProcessGroup group;
  if (NamedGroups(count) > 0) {
    group.name = absl::StrCat(first_number + rank / (stride * count) * stride + rank % stride);
  }
  const int64_t first = rank - rank / stride % count * stride;
  for (int64_t i = 0; i < count; ++i) group.ranks.push_back(first + i * stride);
  return group;
}

}  // namespace meridian
