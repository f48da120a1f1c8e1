#include "chakra_export/pytorch/workload_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/transitive_reduction.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

bool CanSimulate(const NodeCommunication& communication) {
  return communication.type != ChakraProtoMsg::COMM_COLL_NODE ||
         communication.simulated.has_value();
}

// Gives groups numbers for names, and "" to that of all ranks.
class GroupNames {
 public:
  explicit GroupNames(int64_t world_size) : world_(static_cast<size_t>(world_size)) {
    std::iota(world_.begin(), world_.end(), 0);
  }

  GroupIndex Add(const std::vector<int64_t>& ranks, ExecutionGraphBuilder* builder) {
    const auto [it, is_new] = indices_.try_emplace(ranks);
    if (!is_new) return it->second;
    std::vector<int64_t> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    it->second = builder->AddGroup(sorted == world_ ? ProcessGroup{"", world_}
                                                    : ProcessGroup{absl::StrCat(++count_), ranks});
    return it->second;
  }

  size_t count() const { return count_; }

 private:
  std::vector<int64_t> world_;
  std::map<std::vector<int64_t>, GroupIndex> indices_;
  size_t count_ = 0;
};

// Returns the first node that the flavour has.
std::optional<TimelineIndex> FirstNode(const RankTimeline& timeline, EtFlavor flavor) {
  for (TimelineIndex i = 0; i < timeline.nodes.size(); ++i) {
    if (flavor == EtFlavor::kFull || !timeline.nodes[i].on_host) return i;
  }
  return std::nullopt;
}

// Returns how much later than the first rank each begins. Where nothing is communicated, nobody
// knows how the ranks' clocks relate, and all begin at once.
std::vector<int64_t> LateStartsNs(absl::Span<const RankInput> inputs, EtFlavor flavor) {
  std::vector<int64_t> starts_ns;
  for (const RankInput& input : inputs) {
    const std::optional<TimelineIndex> first = FirstNode(*input.timeline, flavor);
    if (!first.has_value() || input.communication->nodes.empty()) {
      return std::vector<int64_t>(inputs.size(), 0);
    }
    starts_ns.push_back(input.table->base_ns() + FloorToNs(input.timeline->nodes[*first].start_ps));
  }
  if (starts_ns.empty()) return starts_ns;
  const int64_t first_ns = *std::min_element(starts_ns.begin(), starts_ns.end());
  for (int64_t& start_ns : starts_ns) start_ns -= first_ns;
  return starts_ns;
}

// Adds one rank's nodes to the graph.
class RankBuilder {
 public:
  RankBuilder(const RankInput& input, uint32_t position, EtFlavor flavor, GroupNames* groups,
              ExecutionGraphBuilder* builder, WorkloadGraph* result)
      : table_(*input.table),
        timeline_(*input.timeline),
        communication_(*input.communication),
        position_(position),
        flavor_(flavor),
        groups_(*groups),
        builder_(*builder),
        result_(*result) {
    result_.communication_nodes.push_back(0);
    result_.lowered.push_back(communication_.lost_parts);
  }

  // The rank begins so much later than the first one.
  void Build(int64_t late_ns) {
    graph_node_.assign(timeline_.nodes.size(), kNoNodeIndex);
    if (flavor_ == EtFlavor::kFull) AddGroupTable();
    if (late_ns > 0) AddStartGap(late_ns);
    if (flavor_ == EtFlavor::kFull) {
      BuildFull();
    } else {
      BuildSimulation();
    }
  }

 private:
  // ---- Nodes.

  ResourceIndex ResourceOfTrack(TrackId track) {
    const Track& info = table_.track(track);
    Resource resource;
    resource.rank = communication_.rank;
    resource.kind =
        info.kind == TrackKind::kHost ? ResourceKind::kHostThread : ResourceKind::kStream;
    // Streams of further devices of the process are numbered apart.
    if (!absl::SimpleAtoi(info.thread, &resource.number)) resource.number = track;
    if (resource.kind == ResourceKind::kStream) {
      const auto [it, is_new] = device_of_stream_.try_emplace(resource.number, info.process);
      if (!is_new && it->second != info.process) resource.number = (int64_t{1} << 32) + track;
    }
    return builder_.AddResource(resource);
  }

  NodeIndex AddNode(ExecutionNode node, TimelineIndex origin) {
    node.id = ++last_id_;
    result_.origins.push_back({position_, origin});
    return builder_.AddNode(node);
  }

  int64_t UnixNs(int64_t ps) const { return table_.base_ns() + FloorToNs(ps); }

  // What a node communicates in this flavour; nothing for computation.
  absl::Span<const NodeCommunication> CommunicationOf(TimelineIndex index) const {
    const auto it = communication_.nodes.find(index);
    if (it == communication_.nodes.end()) return {};
    const bool runs = flavor_ == EtFlavor::kFull ||
                      std::all_of(it->second.begin(), it->second.end(), CanSimulate);
    return runs ? absl::MakeConstSpan(it->second) : absl::Span<const NodeCommunication>();
  }

  // Adds a node, or one for each communication of a kernel: they stand together, from graph_node_
  // on.
  void AddTimelineNode(TimelineIndex index) {
    const TimelineNode& from = timeline_.nodes[index];
    ExecutionNode node;
    node.name = from.row == kNoRow ? kHostGapOpKind : table_.name(from.row);
    node.resource = ResourceOfTrack(from.track);
    node.start_ns = UnixNs(from.start_ps);
    node.duration_ns = std::max<int64_t>(0, UnixNs(from.end_ps()) - node.start_ns);
    const absl::Span<const NodeCommunication> communication = CommunicationOf(index);
    graph_node_[index] = static_cast<NodeIndex>(builder_.node_count());
    // What a kernel does at once, its stream does one after the other when it is run again, receives
    // aside: each takes its share of the time.
    const auto shares = std::max<int64_t>(
        1, std::count_if(communication.begin(), communication.end(), [](const auto& one) {
          return one.type != ChakraProtoMsg::COMM_RECV_NODE;
        }));
    for (const NodeCommunication& one : communication) {
      ExecutionNode communicating = node;
      SetCommunication(one, &communicating);
      if (one.type != ChakraProtoMsg::COMM_RECV_NODE) communicating.duration_ns /= shares;
      ++result_.communication_nodes.back();
      AddNode(communicating, index);
    }
    if (!communication.empty()) return;
    if (!from.on_host) CountLowered(index);
    AddNode(node, index);
  }

  size_t NodeCountOf(TimelineIndex index) const {
    return std::max<size_t>(1, CommunicationOf(index).size());
  }

  void SetCommunication(const NodeCommunication& from, ExecutionNode* node) {
    node->type = from.type;
    node->duration_ns = from.transfer_ps / kPsPerNs;
    Communication communication;
    communication.bytes = from.bytes;
    communication.source = from.source;
    communication.target = from.target;
    if (from.type == ChakraProtoMsg::COMM_COLL_NODE) {
      communication.type = from.collective;
      if (flavor_ == EtFlavor::kSimulation && from.collective != *from.simulated) {
        communication.type = *from.simulated;
        ++result_.approximated;
      }
      communication.group = groups_.Add(from.ranks, &builder_);
    } else {
      communication.tag = static_cast<int32_t>(from.instance % kCommTagLimit);
    }
    node->communication = communication;
  }

  void CountLowered(TimelineIndex index) {
    const auto unmatched = communication_.unmatched.find(index);
    if (unmatched != communication_.unmatched.end()) {
      ++result_.lowered.back()[unmatched->second];
    } else if (communication_.nodes.contains(index)) {
      ++result_.lowered.back()["ASTRA-sim cannot run its kind"];
    }
  }

  void AddStartGap(int64_t late_ns) {
    const std::optional<TimelineIndex> first = FirstNode(timeline_, flavor_);
    if (!first.has_value()) return;
    const TimelineNode& node = timeline_.nodes[*first];
    start_gap_ = AddGap(node.track, UnixNs(node.start_ps) - late_ns, late_ns);
  }

  NodeIndex AddGap(TrackId track, int64_t start_ns, int64_t duration_ns) {
    ExecutionNode gap;
    gap.name = kHostGapOpKind;
    gap.resource = ResourceOfTrack(track);
    gap.start_ns = start_ns;
    gap.duration_ns = duration_ns;
    return AddNode(gap, kNoTimelineNode);
  }

  // Lets all nodes of the first wait for all nodes of the second.
  void AddDependencies(TimelineIndex node, TimelineIndex source, EdgeKinds kinds) {
    for (size_t i = 0; i < NodeCountOf(node); ++i) {
      AddDependencyOn(graph_node_[node] + static_cast<NodeIndex>(i), source, kinds);
    }
  }

  void AddDependencyOn(NodeIndex node, TimelineIndex source, EdgeKinds kinds) {
    for (size_t i = 0; i < NodeCountOf(source); ++i) {
      AddDependency(node, graph_node_[source] + static_cast<NodeIndex>(i), kinds);
    }
  }

  void AddDependency(NodeIndex node, NodeIndex source, EdgeKinds kinds) {
    builder_.AddDependency(node, source, kinds);
    has_dependency_.resize(std::max<size_t>(has_dependency_.size(), node + 1));
    has_dependency_[node] = true;
  }

  // What waits for nothing waits for the rank to begin.
  void WaitForStart() {
    if (start_gap_ == kNoNodeIndex) return;
    has_dependency_.resize(builder_.node_count());
    for (NodeIndex node = start_gap_ + 1; node < builder_.node_count(); ++node) {
      if (!has_dependency_[node]) {
        builder_.AddDependency(node, start_gap_, EdgeKind::kProgram);
      }
    }
  }

  // ---- The full flavour.

  void BuildFull() {
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) AddTimelineNode(i);
    for (const DependencyEdge& edge : timeline_.edges) {
      AddDependencies(edge.node, edge.source, edge.kinds);
    }
    WaitForStart();
  }

  void AddGroupTable() {
    ExecutionNode node;
    node.name = "process_group:init";
    node.type = ChakraProtoMsg::METADATA_NODE;
    node.resource = builder_.AddResource({communication_.rank, ResourceKind::kHostThread, 0});
    AddNode(node, kNoTimelineNode);
  }

  // ---- The simulation flavour.

  struct Collective {
    uint32_t instance = 0;
    TimelineIndex kernel = 0;
    NodeIndex node = 0;
  };

  void BuildSimulation() {
    const EdgesByNode edges(timeline_.edges, timeline_.nodes.size());
    version_.assign(timeline_.nodes.size(), 0);
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      if (timeline_.nodes[i].on_host) {
        PassHostNode(i, edges.Of(i));
      } else {
        AddDeviceNode(i, edges.Of(i));
      }
    }
    ChainCollectives();
    WaitForStart();
  }

  // Of each stream the last work that is known to have ended.
  using Knowledge = absl::flat_hash_map<TrackId, TimelineIndex>;

  static bool Learn(TrackId stream, TimelineIndex work, Knowledge* knowledge) {
    const auto [it, is_new] = knowledge->try_emplace(stream, work);
    if (!is_new && it->second >= work) return false;
    it->second = work;
    return true;
  }

  // A thread knows what it waited for, and what a thread that it waited for knew. It learns seldom,
  // so that a new copy for each time is cheap.
  void PassHostNode(TimelineIndex index, absl::Span<const DependencyEdge> incoming) {
    std::vector<Knowledge>& versions = knowledge_[timeline_.nodes[index].track];
    if (versions.empty()) versions.emplace_back();
    Knowledge learned;
    for (const DependencyEdge& edge : incoming) {
      const TimelineNode& source = timeline_.nodes[edge.source];
      if (!source.on_host) {
        Learn(source.track, edge.source, &learned);
      } else if (source.track != timeline_.nodes[index].track) {
        for (const auto& [stream, work] : knowledge_[source.track][version_[edge.source]]) {
          Learn(stream, work, &learned);
        }
      }
    }
    if (!learned.empty()) {
      Knowledge next = versions.back();
      bool is_new = false;
      for (const auto& [stream, work] : learned) is_new |= Learn(stream, work, &next);
      if (is_new) versions.push_back(std::move(next));
    }
    version_[index] = static_cast<uint32_t>(versions.size() - 1);
  }

  void AddDeviceNode(TimelineIndex index, absl::Span<const DependencyEdge> incoming) {
    std::vector<DependencyEdge> sources;
    for (const DependencyEdge& edge : incoming) {
      const TimelineNode& source = timeline_.nodes[edge.source];
      if (source.on_host) {
        AddKnowledgeOf(edge.source, index, &sources);
      } else {
        sources.push_back(edge);
      }
    }
    NodeIndex gap = AddGapBefore(index, sources);
    if (gap == kNoNodeIndex && sources.empty()) gap = AddGapBeforeFirstSend(index);
    AddTimelineNode(index);
    for (size_t i = 0; i < NodeCountOf(index) && gap != kNoNodeIndex; ++i) {
      AddDependency(graph_node_[index] + static_cast<NodeIndex>(i), gap, EdgeKind::kLaunch);
    }
    for (const DependencyEdge& source : sources) {
      if (gap != kNoNodeIndex) {
        AddDependencyOn(gap, source.source, source.kinds);
      } else {
        AddDependencies(index, source.source, source.kinds);
      }
    }
    const absl::Span<const NodeCommunication> communication = CommunicationOf(index);
    if (!communication.empty()) {
      for (size_t i = 0; i < communication.size(); ++i) {
        if (communication[i].type != ChakraProtoMsg::COMM_COLL_NODE) continue;
        collectives_.push_back(
            {communication[i].instance, index, graph_node_[index] + static_cast<NodeIndex>(i)});
      }
    } else if (last_compute_ == kNoTimelineNode ||
               timeline_.nodes[index].end_ps() >= timeline_.nodes[last_compute_].end_ps()) {
      last_compute_ = index;
    }
  }

  // Of what the thread had waited for when it launched the work, what the work's stream did not
  // know yet.
  void AddKnowledgeOf(TimelineIndex call, TimelineIndex index,
                      std::vector<DependencyEdge>* sources) {
    const TrackId thread = timeline_.nodes[call].track;
    const TrackId stream = timeline_.nodes[index].track;
    uint32_t& seen = seen_version_[{thread, stream}];
    if (version_[call] <= seen) return;
    seen = version_[call];
    Knowledge& known = known_to_stream_[stream];
    for (const auto& [other, work] : knowledge_[thread][seen]) {
      if (other == stream || work >= index) continue;
      if (Learn(other, work, &known)) sources->push_back({index, work, EdgeKind::kSync});
    }
  }

  // Adds a node for the time in which nothing was computed although everything the work waits for
  // had ended; kNoNodeIndex when there is none. The work's sources get the last computation, since
  // which the time counts.
  NodeIndex AddGapBefore(TimelineIndex index, std::vector<DependencyEdge>& sources) {
    const TimelineNode& work = timeline_.nodes[index];
    if (last_compute_ == kNoTimelineNode) return kNoNodeIndex;
    const int64_t compute_end_ps = timeline_.nodes[last_compute_].end_ps();
    if (compute_end_ps > work.start_ps) return kNoNodeIndex;
    int64_t ready_ps = compute_end_ps;
    for (const DependencyEdge& source : sources) {
      ready_ps = std::max(ready_ps, timeline_.nodes[source.source].end_ps());
    }
    sources.push_back({index, last_compute_, EdgeKind::kProgram});
    const int64_t start_ns = UnixNs(ready_ps);
    const int64_t duration_ns = UnixNs(work.start_ps) - start_ns;
    return duration_ns > 0 ? AddGap(work.track, start_ns, duration_ns) : kNoNodeIndex;
  }

  // A simulator that sends at time 0 aborts when a link is so fast that this takes no time; a gap
  // of no length lets it begin first.
  NodeIndex AddGapBeforeFirstSend(TimelineIndex index) {
    const absl::Span<const NodeCommunication> communication = CommunicationOf(index);
    const bool sends = std::any_of(
        communication.begin(), communication.end(),
        [](const NodeCommunication& one) { return one.type == ChakraProtoMsg::COMM_SEND_NODE; });
    if (!sends || start_gap_ != kNoNodeIndex) return kNoNodeIndex;
    const TimelineNode& node = timeline_.nodes[index];
    return AddGap(node.track, UnixNs(node.start_ps), 0);
  }

  // A send occupies its rank, but always ends, and a receive occupies nothing: only collectives can
  // wait for each other in a circle.
  void ChainCollectives() {
    std::sort(collectives_.begin(), collectives_.end(),
              [](const Collective& a, const Collective& b) { return a.instance < b.instance; });
    for (size_t i = 1; i < collectives_.size(); ++i) {
      // A broadcast's root may end before others begin, so that its place is not its own time's.
      if (collectives_[i].kernel < collectives_[i - 1].kernel) continue;
      AddDependency(collectives_[i].node, collectives_[i - 1].node, EdgeKind::kControl);
    }
  }

  const EventTable& table_;
  const RankTimeline& timeline_;
  const RankCommunication& communication_;
  const uint32_t position_;
  const EtFlavor flavor_;
  GroupNames& groups_;
  ExecutionGraphBuilder& builder_;
  WorkloadGraph& result_;

  uint64_t last_id_ = 0;
  NodeIndex start_gap_ = kNoNodeIndex;
  // Whether each node of the graph waits for another one; as long as the last that does.
  std::vector<bool> has_dependency_;
  // The graph's first node of each node of the timeline.
  std::vector<NodeIndex> graph_node_;
  absl::flat_hash_map<int64_t, std::string> device_of_stream_;

  // All that each thread ever knew, from nothing on; and which of these each host node knew.
  absl::node_hash_map<TrackId, std::vector<Knowledge>> knowledge_;
  std::vector<uint32_t> version_;
  absl::flat_hash_map<TrackId, Knowledge> known_to_stream_;
  // What the thread knew when it last launched work of the stream, by thread and stream.
  absl::flat_hash_map<std::pair<TrackId, TrackId>, uint32_t> seen_version_;
  // The computation that was the last to end so far.
  TimelineIndex last_compute_ = kNoTimelineNode;
  std::vector<Collective> collectives_;
};

// A gap and a node, or one for each of its communications, come of one of a timeline, and one more
// per rank; an edge of a timeline leads from all nodes of one to all of the other.
absl::Status CheckSize(absl::Span<const RankInput> inputs) {
  double nodes = 0, edges = 0;
  for (const RankInput& input : inputs) {
    bool has_batches = false;
    for (const auto& [node, all] : input.communication->nodes) {
      has_batches |= all.size() > 1;
      nodes += static_cast<double>(all.size());
    }
    nodes += 2 * static_cast<double>(input.timeline->nodes.size()) + 1;
    edges += static_cast<double>(input.timeline->edges.size()) +
             4 * static_cast<double>(input.timeline->nodes.size());
    if (!has_batches) continue;
    const auto count = [&](TimelineIndex node) {
      const auto it = input.communication->nodes.find(node);
      return it == input.communication->nodes.end() ? 1.0 : static_cast<double>(it->second.size());
    };
    for (const DependencyEdge& edge : input.timeline->edges) {
      edges += count(edge.node) * count(edge.source) - 1;
    }
  }
  if (nodes < ExecutionGraph::kMaxNodes && edges < ExecutionGraph::kMaxDependencies) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      "the traces hold more than 2^32 nodes or edges; convert fewer ranks");
}

}  // namespace

absl::StatusOr<WorkloadGraph> BuildWorkloadGraph(absl::Span<const RankInput> inputs,
                                                 const WorkloadGraphOptions& options) {
  RETURN_IF_ERROR(CheckSize(inputs));
  WorkloadGraph result;
  ExecutionGraphBuilder builder;
  GroupNames groups(options.world_size);
  const std::vector<int64_t> late_starts_ns = options.clocks_agree
                                                  ? LateStartsNs(inputs, options.flavor)
                                                  : std::vector<int64_t>(inputs.size(), 0);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    RankBuilder(inputs[i], i, options.flavor, &groups, &builder, &result).Build(late_starts_ns[i]);
  }
  if (options.flavor == EtFlavor::kSimulation &&
      static_cast<int64_t>(groups.count()) > kMaxGroupNumber) {
    return absl::OutOfRangeError(absl::StrCat("there are ", groups.count(),
                                              " process groups, but ASTRA-sim takes at most ",
                                              kMaxGroupNumber, "; see --flavor=full"));
  }
  result.graph = std::move(builder).Build();
  ASSIGN_OR_RETURN(result.removed_edges, RemoveTransitiveEdges(&result.graph));
  return result;
}

}  // namespace meridian
