#include "chakra_export/pytorch/pytorch_nodes.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/kineto/kineto_steps.h"

namespace meridian {
namespace {

class RankBuilder {
 public:
  RankBuilder(const RankInput& input, uint32_t position, EtFlavor flavor, ProcessGroupList* groups,
              uint32_t* kernels, PytorchNodes* result)
      : table_(*input.table),
        timeline_(*input.timeline),
        communication_(*input.communication),
        position_(position),
        flavor_(flavor),
        groups_(*groups),
        kernels_(*kernels),
        result_(*result),
        steps_(table_) {
    result_.lowered.push_back(communication_.lost_parts);
  }

  absl::Status Build() {
    FindNeeded();
    first_node_.reserve(timeline_.nodes.size() + 1);
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      first_node_.push_back(static_cast<NodeIndex>(nodes().size()));
      if (is_needed_[i]) AddNodes(i);
    }
    first_node_.push_back(static_cast<NodeIndex>(nodes().size()));
    for (const DependencyEdge& edge : timeline_.edges) RETURN_IF_ERROR(AddEdges(edge));
    return absl::OkStatus();
  }

 private:
  std::vector<RunNode>& nodes() { return result_.graph.nodes; }

  // Where hosts are going to be folded away, only calls that launch or wait tell anything.
  void FindNeeded() {
    is_needed_.assign(timeline_.nodes.size(), true);
    if (flavor_ == EtFlavor::kFull) return;
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      is_needed_[i] = !timeline_.nodes[i].on_host;
    }
    for (const DependencyEdge& edge : timeline_.edges) {
      if (timeline_.nodes[edge.node].track == timeline_.nodes[edge.source].track) continue;
      is_needed_[edge.node] = is_needed_[edge.source] = true;
    }
  }

  Resource ResourceOfTrack(TrackId track) {
    const auto [known, is_new_track] = resources_.try_emplace(track);
    if (!is_new_track) return known->second;
    const Track& info = table_.track(track);
    Resource& resource = known->second;
    resource.rank = communication_.rank;
    resource.kind =
        info.kind == TrackKind::kHost ? ResourceKind::kHostThread : ResourceKind::kStream;
    // Streams of further devices of the process are numbered apart.
    if (!absl::SimpleAtoi(info.thread, &resource.number)) resource.number = track;
    if (resource.kind == ResourceKind::kStream) {
      const auto [it, is_new] = device_of_stream_.try_emplace(resource.number, info.process);
      if (!is_new && it->second != info.process) resource.number = (int64_t{1} << 32) + track;
    }
    return resource;
  }

  int64_t UnixNs(int64_t ps) const { return table_.base_ns() + FloorToNs(ps); }

  // What a node communicates in this flavour; nothing for computation.
  absl::Span<const NodeCommunication> CommunicationOf(TimelineIndex index) const {
    const auto it = communication_.nodes.find(index);
    if (it == communication_.nodes.end()) return {};
    const bool runs =
        absl::c_all_of(it->second, [&](const auto& part) { return RunsIn(flavor_, part); });
    return runs ? absl::MakeConstSpan(it->second) : absl::Span<const NodeCommunication>();
  }

  // Adds a node, or one for each communication of a kernel.
  void AddNodes(TimelineIndex index) {
    const TimelineNode& from = timeline_.nodes[index];
    RunNode node;
    node.name = from.row == kNoRow ? kHostGapOpKind : table_.name(from.row);
    node.resource = ResourceOfTrack(from.track);
    node.start_ns = UnixNs(from.start_ps);
    node.end_ns = std::max(node.start_ns, UnixNs(from.end_ps()));
    node.duration_ns = node.end_ns - node.start_ns;
    if (from.row == kNoRow) node.op_kind = kHostGapOpKind;
    node.step = steps_.At(from.launched_ps);
    if (from.on_host) {
      AddProgramOrder(from.track);
      return Push(node, index);
    }
    node.kernel = kernels_++;
    const absl::Span<const NodeCommunication> communication = CommunicationOf(index);
    if (communication.empty()) {
      node.op_kind = WorkKind(index);
      return Push(node, index);
    }
    // What a kernel does at once, its stream does one after the other when it is run again,
    // receives aside: each takes its share of the time.
    const auto shares = std::max<int64_t>(1, absl::c_count_if(communication, [](const auto& one) {
                                            return one.type != ChakraProtoMsg::COMM_RECV_NODE;
                                          }));
    for (const NodeCommunication& one : communication) {
      RunNode communicating = node;
      communicating.instance_start_ns = node.start_ns + one.waited_ps / kPsPerNs;
      communicating.duration_ns = one.transfer_ps / kPsPerNs;
      if (SetCommunication(one, flavor_, &groups_, &communicating)) ++result_.approximated;
      if (one.type != ChakraProtoMsg::COMM_RECV_NODE) communicating.duration_ns /= shares;
      Push(communicating, index);
    }
  }

  // Lets the thread's next node, which is about to be added, wait for the one before it.
  void AddProgramOrder(TrackId thread) {
    const auto next = static_cast<NodeIndex>(nodes().size());
    const auto [it, is_first] = last_of_thread_.try_emplace(thread, next);
    if (is_first) return;
    result_.graph.edges.push_back({next, it->second, EdgeKind::kProgram});
    it->second = next;
  }

  void Push(const RunNode& node, TimelineIndex origin) {
    nodes().push_back(node);
    result_.origins.push_back({position_, origin});
  }

  // Returns the op kind of computation, and counts communication that is none here.
  absl::string_view WorkKind(TimelineIndex index) {
    const auto unmatched = communication_.unmatched.find(index);
    if (unmatched != communication_.unmatched.end()) {
      ++result_.lowered.back()[unmatched->second];
      return kUnmatchedOpKind;
    }
    if (communication_.nodes.contains(index)) {
      ++result_.lowered.back()["ASTRA-sim cannot run its kind"];
      return kLocalOpKind;
    }
    const EventCategory category = table_.category(timeline_.nodes[index].row);
    if (category == EventCategory::kMemcpy) return kMemcpyOpKind;
    return category == EventCategory::kMemset ? kMemsetOpKind : "";
  }

  // Lets all nodes of the one wait for all nodes of the other, which traces that were made up could
  // let grow without bounds.
  absl::Status AddEdges(const DependencyEdge& edge) {
    if (edge.kinds == EdgeKind::kProgram) return absl::OkStatus();
    const size_t nodes_of_one = first_node_[edge.node + 1] - first_node_[edge.node];
    const size_t nodes_of_other = first_node_[edge.source + 1] - first_node_[edge.source];
    if (result_.graph.edges.size() + nodes_of_one * nodes_of_other >
        ExecutionGraph::kMaxDependencies) {
      return absl::OutOfRangeError("the traces hold more than 2^32 edges; convert fewer ranks");
    }
    for (NodeIndex node = first_node_[edge.node]; node < first_node_[edge.node + 1]; ++node) {
      nodes()[node].is_launched |= edge.kinds.Contains(EdgeKind::kLaunch);
      for (NodeIndex source = first_node_[edge.source]; source < first_node_[edge.source + 1];
           ++source) {
        result_.graph.edges.push_back({node, source, edge.kinds});
      }
    }
    return absl::OkStatus();
  }

  const EventTable& table_;
  const RankTimeline& timeline_;
  const RankCommunication& communication_;
  const uint32_t position_;
  const EtFlavor flavor_;
  ProcessGroupList& groups_;
  // How many kernels there are in all ranks so far.
  uint32_t& kernels_;
  PytorchNodes& result_;
  // Work belongs to the step in which it was launched.
  const KinetoSteps steps_;
  absl::flat_hash_map<TrackId, Resource> resources_;
  absl::flat_hash_map<int64_t, std::string> device_of_stream_;
  // By node of the timeline: whether it becomes nodes of the graph, and the first of these; one
  // entry more, the end.
  std::vector<bool> is_needed_;
  std::vector<NodeIndex> first_node_;
  absl::flat_hash_map<TrackId, NodeIndex> last_of_thread_;
};

}  // namespace

bool RunsIn(EtFlavor flavor, const NodeCommunication& communication) {
  return flavor == EtFlavor::kFull || communication.type != ChakraProtoMsg::COMM_COLL_NODE ||
         communication.simulated.has_value();
}

bool SetCommunication(const NodeCommunication& from, EtFlavor flavor, ProcessGroupList* groups,
                      RunNode* node) {
  node->instance = from.instance;
  if (from.type != ChakraProtoMsg::COMM_COLL_NODE) {
    node->SetMessage(from.type == ChakraProtoMsg::COMM_SEND_NODE, from.bytes, from.source,
                     from.target, static_cast<int32_t>(from.instance % kCommTagLimit));
    return false;
  }
  const bool is_approximated =
      flavor == EtFlavor::kSimulation && from.collective != *from.simulated;
  node->SetCollective(from.bytes, is_approximated ? *from.simulated : from.collective,
                      groups->Add(from.ranks));
  return is_approximated;
}

absl::StatusOr<PytorchNodes> MakePytorchNodes(absl::Span<const RankInput> inputs, EtFlavor flavor,
                                              const MatchedCommunication& communication) {
  PytorchNodes result;
  result.graph.rank_count = communication.world_size;
  ProcessGroupList groups(communication.world_size);
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(RankBuilder(inputs[i], i, flavor, &groups, &kernels, &result).Build());
  }
  result.graph.groups = groups.groups();
  // Where nothing is communicated, nobody knows how the ranks' clocks relate.
  result.graph.has_one_clock =
      communication.clocks_agree && absl::c_none_of(inputs, [](const RankInput& input) {
        return input.communication->nodes.empty();
      });
  return result;
}

}  // namespace meridian
