#include "chakra_export/graph/graph_replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Instance = CommunicationMatch::Instance;

constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();
constexpr int64_t kNotYet = -1;
// An explanation of a deadlock names this many nodes at most.
constexpr size_t kMaxExplainedNodes = 12;

// Returns the slot that each node takes, of which each runs one node at a time; kNoSlot for a node
// that excludes no other. Slots count from 0.
std::vector<uint32_t> FindSlots(const ExecutionGraph& graph, ReplayResources resources) {
  std::vector<uint32_t> slots(graph.node_count(), kNoSlot);
  if (resources == ReplayResources::kUnlimited) return slots;
  // The slots of a simulator, by rank and what runs there: host, computation, communication.
  std::map<std::pair<int64_t, int>, uint32_t> simulator_slots;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.type(node) == ChakraProtoMsg::COMM_RECV_NODE) continue;
    const int place = graph.resource(node).kind == ResourceKind::kHostThread ? 0
                      : graph.type(node) == ChakraProtoMsg::COMP_NODE        ? 1
                                                                             : 2;
    slots[node] = resources == ReplayResources::kPerResource
                      ? graph.resource_index(node)
                      : simulator_slots
                            .emplace(std::make_pair(graph.rank(node), place),
                                     static_cast<uint32_t>(simulator_slots.size()))
                            .first->second;
  }
  return slots;
}

class Replayer {
 public:
  Replayer(const ExecutionGraph& graph, const CommunicationMatch& match,
           const ReplayOptions& options)
      : graph_(graph),
        match_(match),
        options_(options),
        successors_(graph),
        slot_of_(FindSlots(graph, options.resources)),
        waiting_(graph.node_count()),
        slots_(std::max(graph.resources().size(), 3 * graph.Ranks().size())),
        issued_members_(match.instance_count(), 0) {
    replay_.starts_ns.assign(graph.node_count(), kNotYet);
    replay_.ends_ns.assign(graph.node_count(), kNotYet);
    replay_.causes.assign(graph.node_count(), kNoNodeIndex);
  }

  absl::StatusOr<GraphReplay> Run() {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      waiting_[node] = static_cast<uint32_t>(graph_.dependencies(node).size());
      if (waiting_[node] == 0) MakeReady(node);
    }
    RETURN_IF_ERROR(IssueReady());
    // All that ends at one time ends before anything is issued: of nodes that become ready
    // together, the smallest id goes first.
    while (!ends_.empty()) {
      now_ns_ = ends_.top().first;
      while (!ends_.empty() && ends_.top().first == now_ns_) {
        const NodeIndex node = ends_.top().second;
        ends_.pop();
        Finish(node);
      }
      RETURN_IF_ERROR(IssueReady());
    }
    if (finished_ < graph_.node_count()) {
      return FailedPrecondition("deadlock at ", now_ns_, " ns: ", ExplainDeadlock());
    }
    replay_.makespan_ns = now_ns_;
    return std::move(replay_);
  }

 private:
  using QueuedNode = std::pair<uint64_t, NodeIndex>;

  // What nodes of a resource queue for.
  struct Slot {
    // Which node holds it; kNoNodeIndex when it is free.
    NodeIndex holder = kNoNodeIndex;
    NodeIndex last_holder = kNoNodeIndex;
    // Ids and nodes, the smallest id on top.
    std::priority_queue<QueuedNode, std::vector<QueuedNode>, std::greater<QueuedNode>> queue;
  };

  void MakeReady(NodeIndex node) {
    // Until it is issued, this is since when it could have been.
    replay_.starts_ns[node] = now_ns_;
    const uint32_t number = slot_of_[node];
    if (number == kNoSlot) {
      issuable_.push_back(node);
      return;
    }
    slots_[number].queue.push({graph_.id(node), node});
    touched_slots_.push_back(number);
  }

  void Finish(NodeIndex node) {
    replay_.ends_ns[node] = now_ns_;
    ++finished_;
    const uint32_t number = slot_of_[node];
    if (number != kNoSlot) {
      slots_[number].holder = kNoNodeIndex;
      slots_[number].last_holder = node;
      touched_slots_.push_back(number);
    }
    for (const NodeIndex next : successors_.Of(node)) {
      if (--waiting_[next] > 0) continue;
      replay_.causes[next] = node;
      MakeReady(next);
    }
  }

  absl::Status IssueReady() {
    for (const uint32_t number : touched_slots_) TakeFromQueue(number);
    touched_slots_.clear();
    // The order matters to pricers that keep count.
    absl::c_sort(issuable_);
    for (const NodeIndex node : issuable_) RETURN_IF_ERROR(Issue(node));
    issuable_.clear();
    return absl::OkStatus();
  }

  void TakeFromQueue(uint32_t number) {
    Slot& slot = slots_[number];
    if (slot.holder != kNoNodeIndex || slot.queue.empty()) return;
    const NodeIndex node = slot.queue.top().second;
    slot.queue.pop();
    slot.holder = node;
    if (replay_.starts_ns[node] < now_ns_) replay_.causes[node] = slot.last_holder;
    issuable_.push_back(node);
  }

  absl::Status Issue(NodeIndex node) {
    replay_.starts_ns[node] = now_ns_;
    const Instance instance = match_.instance_of(node);
    if (instance == CommunicationMatch::kNoInstance) {
      return EndIn(graph_.duration_ns(node), node);
    }
    ++issued_members_[instance];
    if (options_.send_mode == SendMode::kEager && IsMessage(graph_.type(node))) {
      return IssueEager(node, instance);
    }
    const absl::Span<const NodeIndex> members = match_.members(instance);
    if (issued_members_[instance] < members.size()) return absl::OkStatus();
    RETURN_IF_ERROR(Price(members));
    for (size_t i = 0; i < members.size(); ++i)
      RETURN_IF_ERROR(EndIn(durations_ns_[i], members[i]));
    return absl::OkStatus();
  }

  absl::Status IssueEager(NodeIndex node, Instance instance) {
    const absl::Span<const NodeIndex> members = match_.members(instance);
    const bool sends = graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    if (sends) {
      RETURN_IF_ERROR(Price(members));
      RETURN_IF_ERROR(EndIn(durations_ns_[0], node));
      if (members.size() == 1) return absl::OkStatus();
      arrivals_ns_[instance] = now_ns_ + durations_ns_[0];
      const bool expected = issued_members_[instance] == 2;
      return expected ? EndIn(durations_ns_[0], members[1]) : absl::OkStatus();
    }
    if (members.size() == 1) {
      RETURN_IF_ERROR(Price(members));
      return EndIn(durations_ns_[0], node);
    }
    const auto arrival = arrivals_ns_.find(instance);
    if (arrival == arrivals_ns_.end()) return absl::OkStatus();
    return EndIn(std::max<int64_t>(arrival->second - now_ns_, 0), node);
  }

  // Fills in durations_ns_, one for each member.
  absl::Status Price(absl::Span<const NodeIndex> members) {
    durations_ns_.resize(members.size());
    for (size_t i = 0; i < members.size(); ++i) durations_ns_[i] = graph_.duration_ns(members[i]);
    if (options_.pricer == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(options_.pricer(members, now_ns_, absl::MakeSpan(durations_ns_)));
    for (size_t i = 0; i < members.size(); ++i) {
      if (durations_ns_[i] >= 0) continue;
      return absl::InternalError(
          absl::StrCat(graph_.Describe(members[i]), " was priced at ", durations_ns_[i], " ns"));
    }
    return absl::OkStatus();
  }

  absl::Status EndIn(int64_t duration_ns, NodeIndex node) {
    if (duration_ns > std::numeric_limits<int64_t>::max() - now_ns_) {
      return absl::OutOfRangeError(
          absl::StrCat(graph_.Describe(node), " would end after more than 292 years"));
    }
    ends_.push({now_ns_ + duration_ns, node});
    return absl::OkStatus();
  }

  bool IsFinished(NodeIndex node) const { return replay_.ends_ns[node] != kNotYet; }

  // True for a node that is ready, or waits only for the others of its communication.
  bool HasBegun(NodeIndex node) const { return waiting_[node] == 0; }

  bool IsIssued(NodeIndex node) const {
    if (!HasBegun(node)) return false;
    const uint32_t number = slot_of_[node];
    return number == kNoSlot || slots_[number].holder == node;
  }

  NodeIndex WaitsFor(NodeIndex node) const {
    if (!HasBegun(node)) {
      const absl::Span<const NodeIndex> sources = graph_.dependencies(node);
      return *absl::c_find_if(sources, [this](NodeIndex source) { return !IsFinished(source); });
    }
    if (!IsIssued(node)) return slots_[slot_of_[node]].holder;
    const absl::Span<const NodeIndex> members = match_.members(match_.instance_of(node));
    return *absl::c_find_if(members, [this](NodeIndex member) { return !IsIssued(member); });
  }

  // Walks from one unfinished node to what it waits for until the walk comes round.
  std::string ExplainDeadlock() const {
    NodeIndex node = 0;
    while (IsFinished(node)) ++node;
    std::vector<bool> visited(graph_.node_count(), false);
    while (!visited[node]) {
      visited[node] = true;
      node = WaitsFor(node);
    }
    std::vector<std::string> names = {graph_.Describe(node)};
    for (NodeIndex next = WaitsFor(node); next != node && names.size() < kMaxExplainedNodes;
         next = WaitsFor(next)) {
      names.push_back(graph_.Describe(next));
    }
    return absl::StrCat(absl::StrJoin(names, " waits for "), " waits for ", names[0]);
  }

  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const ReplayOptions& options_;
  const SuccessorIndex successors_;
  const std::vector<uint32_t> slot_of_;

  int64_t now_ns_ = 0;
  // How many dependencies of each node have not finished.
  std::vector<uint32_t> waiting_;
  std::vector<Slot> slots_;
  // Slots that were freed or queued for since the last issue.
  std::vector<uint32_t> touched_slots_;
  std::vector<NodeIndex> issuable_;
  // By instance: how many of its members have been issued.
  std::vector<uint32_t> issued_members_;
  // When eager messages that were sent arrive.
  std::map<Instance, int64_t> arrivals_ns_;
  std::vector<int64_t> durations_ns_;
  using End = std::pair<int64_t, NodeIndex>;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  size_t finished_ = 0;
  GraphReplay replay_;
};

}  // namespace

absl::StatusOr<GraphReplay> ReplayGraph(const ExecutionGraph& graph,
                                        const CommunicationMatch& match,
                                        const ReplayOptions& options) {
  if (!match.problems().empty()) return FailedPrecondition(match.problems()[0].text);
  if (options.send_mode != SendMode::kRendezvousIfPossible) {
    return Replayer(graph, match, options).Run();
  }
  ReplayOptions chosen = options;
  chosen.send_mode = SendMode::kRendezvous;
  absl::StatusOr<GraphReplay> replay = Replayer(graph, match, chosen).Run();
  if (!absl::IsFailedPrecondition(replay.status())) return replay;
  chosen.send_mode = SendMode::kEager;
  return Replayer(graph, match, chosen).Run();
}

absl::StatusOr<GraphReplay> ReplayAsSimulator(const ExecutionGraph& graph,
                                              const CommunicationMatch& match, SendMode send_mode) {
  ReplayOptions options;
  options.resources = ReplayResources::kSimulator;
  options.send_mode = send_mode;
  return ReplayGraph(graph, match, options);
}

}  // namespace meridian
