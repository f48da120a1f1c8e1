#include "astra_bridge/engine/simulation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <queue>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/collective_runner.h"
#include "astra_bridge/engine/deadlock.h"
#include "astra_bridge/engine/dependency_graph.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/links_config.h"
#include "astra_bridge/engine/send_matcher.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload_check.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// 73 years; the sum with any one delay fits into 64 bits.
constexpr int64_t kMaxTimeNs = int64_t{1} << 61;

constexpr int64_t kEventsPerReport = 1 << 16;

// Runs the nodes of all ranks: issues what is ready and finds its resource free, and goes on when
// it is over.
class WorkloadRunner {
 public:
  // With `keep_order` events of one instant happen in AstraSim's order. Without, it is quicker, and
  // what Run returns holds only if order_mattered() is false afterwards.
  WorkloadRunner(const Workload& workload, const GroupTable& groups, const Topology& topology,
                 const SystemConfig& system, const SimulationOptions& options, bool keep_order)
      : workload_(workload),
        system_(system),
        options_(options),
        keep_order_(keep_order),
        events_(topology.npus()),
        network_(topology, options.congestion, events_, options.paths),
        collectives_(
            workload, groups, topology, system, options, keep_order ? nullptr : &order_, network_,
            events_, [this](int32_t rank, uint32_t node) { OnNodeDone(rank, node); },
            [this](int32_t rank, uint32_t operation) { IssueOperation(rank, operation); }),
        ranks_(workload.ranks.size()) {}

  absl::StatusOr<SimulationResult> Run() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(Loop());
    return TakeResult();
  }

  bool order_mattered() const { return order_.mattered || network_.order_mattered(); }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // What nodes of a rank need; one at a time, but kComm one per comm stream and kReceive any
  // number.
  enum Resource : size_t { kHost, kDevice, kComm, kReceive, kResources };

  // Priorities of nodes, smallest first.
  using ReadyNodes = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>>;

  struct Rank {
    DependencyGraph graph;
    // How many dependencies of each node are not over, indexed by node.
    std::vector<uint32_t> waits_for;
    // Nodes that are ready, indexed by resource.
    std::array<ReadyNodes, kResources> ready;
    // Nodes that are ready since one was skipped, and that one; they are looked at when the next
    // node ends.
    std::vector<uint32_t> overlooked;
    uint32_t last_skipped = 0;
    // How many more nodes each resource has room for; kReceive has room for all.
    std::array<uint32_t, kResources> free = {};
    // The node that occupies each comm stream, or kNone.
    std::vector<uint32_t> comm_streams;
    uint32_t issued = 0;
    uint32_t done = 0;
    uint32_t delayed = 0;
    // When all nodes were over; -1 before.
    int64_t finish_ns = -1;
    // What it did up to `summed_ns`, and how many nodes compute and communicate since.
    RankActivity activity;
    int64_t summed_ns = 0;
    uint32_t computing = 0;
    uint32_t communicating = 0;
    bool has_device = false;
    // When a node was last issued to each resource, and became ready for it, and in which event.
    static constexpr int64_t kSeveralEvents = -1;
    struct Turn {
      int64_t time_ns = -1;
      int64_t event = 0;
    };
    std::array<Turn, kResources> issued_in, ready_in;
    // Times indexed by node; empty unless SimulationOptions::node_times.
    std::vector<int64_t> issue_ns;
    std::vector<int64_t> done_ns;
  };

  struct Issued {
    int32_t rank = 0;
    // Position among the nodes of its rank.
    uint32_t node = 0;
  };

  // Remote memory of several ranks: one access at a time, in the order in which they were issued.
  struct SharedMemory {
    bool busy = false;
    std::deque<Issued> waiting;
  };

  // Sends that wait for their receive, and receives that wait for their send.
  struct Rendezvous {
    std::vector<Issued> sends;
    int64_t receives = 0;
  };

  absl::Status SetUp() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      ASSIGN_OR_RETURN(rank.graph, Annotate(DependencyGraph::Create(workload_.ranks[r]),
                                            RankName(workload_, static_cast<int32_t>(r))));
      const uint32_t nodes = rank.graph.size();
      nodes_ += nodes;
      rank.comm_streams.assign(options_.comm_streams, kNone);
      rank.free = {1, 1, static_cast<uint32_t>(options_.comm_streams), nodes};
      if (options_.node_times) {
        rank.issue_ns.resize(nodes);
        rank.done_ns.resize(nodes);
      }
      rank.has_device = HasDevice(workload_.ranks[r]);
      rank.waits_for.resize(nodes);
      for (uint32_t node = 0; node < nodes; ++node) {
        rank.waits_for[node] = rank.graph.dependency_count(node);
        if (rank.waits_for[node] == 0) Release(static_cast<int32_t>(r), node);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Loop() {
    for (int32_t rank = 0; rank < static_cast<int32_t>(ranks_.size()) && status_.ok(); ++rank) {
      IssueReady(rank);
      FinishIfIdle(rank);
    }
    Event event;
    int64_t events_until_report = kEventsPerReport;
    while (status_.ok() && events_.Pop(&event)) {
      if (!keep_order_ && order_mattered()) return absl::CancelledError("order matters");
      if (event.time_ns > kMaxTimeNs) {
        return InvalidArgument("the simulated run lasts longer than 73 years");
      }
      Handle(event);
      if (--events_until_report > 0) continue;
      events_until_report = kEventsPerReport;
      if (options_.progress) options_.progress(nodes_done_, nodes_);
    }
    RETURN_IF_ERROR(status_);
    return ranks_done_ == static_cast<int32_t>(ranks_.size()) ? absl::OkStatus() : Deadlock();
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kPrepared:
        collectives_.OnPrepared(event.subject);
        return;
      case EventKind::kReduce:
        collectives_.OnReduce(event.subject);
        return;
      case EventKind::kTaken:
        collectives_.OnReceived(event.subject);
        return;
      case EventKind::kCrossed:
        if (!network_.Arrives(event.subject)) return;
        if (!collectives_.Deliver(event.subject)) {
          OnSendDone(senders_[event.subject].rank, senders_[event.subject].node);
        }
        return;
      case EventKind::kLinkFree:
        network_.OnLinkFree(event.subject);
        return;
      case EventKind::kNodeDone:
        OnNodeDone(static_cast<int32_t>(event.subject), event.detail);
        return;
      case EventKind::kMemberDone:
        collectives_.OnMemberDone(event.subject, static_cast<int32_t>(event.detail));
        return;
      case EventKind::kSendDone:
        OnSendDone(static_cast<int32_t>(event.subject), event.detail);
        return;
      case EventKind::kStarted:
        Start(static_cast<int32_t>(event.subject), event.detail);
        return;
      case EventKind::kReady:
        --ranks_[event.subject].delayed;
        ++node_events_;
        MakeReady(static_cast<int32_t>(event.subject), event.detail);
        IssueReady(static_cast<int32_t>(event.subject));
        return;
      case EventKind::kMemoryFree:
        OnMemoryFree(static_cast<int32_t>(event.subject));
        return;
      case EventKind::kRankIsDue:
        return;
    }
  }

  // Operations of custom algorithms are sends, receives and computations like others, but need no
  // resource.
  const WorkloadNode& NodeOf(int32_t rank, uint32_t node) const {
    if (node >= kFirstOperation) return collectives_.operation(node);
    return workload_.ranks[rank].nodes()[node];
  }

  static Resource ResourceOf(const WorkloadNode& node) {
    if (node.on_host) return kHost;
    if (node.type == WorkloadNodeType::kCompute) return kDevice;
    return node.type == WorkloadNodeType::kReceive ? kReceive : kComm;
  }

  // Called when all that a node depends on is over.
  void Release(int32_t r, uint32_t node) {
    const int64_t delay_ns = NodeOf(r, node).delay_ns;
    if (delay_ns == 0) {
      MakeReady(r, node);
      return;
    }
    ++ranks_[r].delayed;
    events_.ScheduleOnRank(r, events_.now_ns() + delay_ns, EventKind::kReady,
                           static_cast<uint32_t>(r), node);
  }

  void MakeReady(int32_t r, uint32_t node) {
    Rank& rank = ranks_[r];
    const Resource resource = ResourceOf(NodeOf(r, node));
    rank.ready[resource].push(rank.graph.priority(node));
    CheckTurn(rank.issued_in[resource]);
    Rank::Turn& ready_in = rank.ready_in[resource];
    const bool in_several = ready_in.time_ns == events_.now_ns() && ready_in.event != node_events_;
    ready_in = {events_.now_ns(), in_several ? Rank::kSeveralEvents : node_events_};
  }

  // A resource takes the first of its ready nodes. If nodes become ready for it and are issued to it
  // in different events of one instant, the order of these may decide which is the first.
  void CheckTurn(const Rank::Turn& turn) {
    if (turn.time_ns == events_.now_ns() && turn.event != node_events_) order_.mattered = true;
  }

  // Returns the resource whose first ready node is next, or kResources when none is free.
  static Resource NextResource(const Rank& rank) {
    size_t next = kResources;
    for (size_t resource = 0; resource < kResources; ++resource) {
      if (rank.free[resource] == 0 || rank.ready[resource].empty()) continue;
      if (next == kResources || rank.ready[resource].top() < rank.ready[next].top())
        next = resource;
    }
    return static_cast<Resource>(next);
  }

  void IssueReady(int32_t r) {
    Rank& rank = ranks_[r];
    for (const uint32_t node : rank.overlooked) MakeReady(r, node);
    rank.overlooked.clear();
    while (status_.ok()) {
      const Resource resource = NextResource(rank);
      if (resource == kResources) return;
      const uint32_t node = rank.graph.node_at(rank.ready[resource].top());
      rank.ready[resource].pop();
      Issue(r, node);
    }
  }

  void Issue(int32_t r, uint32_t position) {
    Rank& rank = ranks_[r];
    const WorkloadNode& node = NodeOf(r, position);
    ++rank.issued;
    if (options_.node_times) rank.issue_ns[position] = events_.now_ns();
    if (HasRoofline(node, system_) && node.tensor_bytes == 0) {
      Skip(r, position);
      return;
    }
    CountUnderWay(node, 1, &rank);
    const Resource resource = ResourceOf(node);
    CheckTurn(rank.ready_in[resource]);
    rank.issued_in[resource] = {events_.now_ns(), node_events_};
    --rank.free[resource];
    if (resource == kComm) {
      *std::find(rank.comm_streams.begin(), rank.comm_streams.end(), kNone) = position;
    }
    const bool lasts_its_duration = system_.replay_only ||
                                    node.type == WorkloadNodeType::kCompute ||
                                    (node.type == WorkloadNodeType::kCollective &&
                                     node.op == CollectiveKind::kCollectiveBroadcast);
    if (lasts_its_duration) {
      events_.ScheduleOnRank(r, events_.now_ns() + DurationNs(node), EventKind::kNodeDone,
                             static_cast<uint32_t>(r), position);
    } else if (node.type == WorkloadNodeType::kReceive) {
      IssueReceive(r, position);
    } else if (node.type == WorkloadNodeType::kMemory) {
      IssueMemory(r, position);
    } else if (node.overhead_ns > 0) {
      events_.ScheduleOnRank(r, events_.now_ns() + node.overhead_ns, EventKind::kStarted,
                             static_cast<uint32_t>(r), position);
    } else {
      Start(r, position);
    }
  }

  void IssueOperation(int32_t r, uint32_t operation) {
    const WorkloadNode& node = NodeOf(r, operation);
    if (node.type == WorkloadNodeType::kSend) {
      IssueSend(r, operation);
    } else if (node.type == WorkloadNodeType::kReceive) {
      IssueReceive(r, operation);
    } else {
      events_.ScheduleOnRank(r, events_.now_ns() + std::max<int64_t>(node.duration_ns, 1),
                             EventKind::kNodeDone, static_cast<uint32_t>(r), operation);
    }
  }

  // Starts a collective or send, which occupies a comm stream by now.
  void Start(int32_t r, uint32_t position) {
    if (NodeOf(r, position).type == WorkloadNodeType::kSend) {
      IssueSend(r, position);
      return;
    }
    const std::vector<uint32_t>& streams = ranks_[r].comm_streams;
    const auto stream = std::find(streams.begin(), streams.end(), position) - streams.begin();
    const absl::Status status = collectives_.Join(r, position, static_cast<int32_t>(stream));
    if (status.ok()) return;
    status_ =
        Annotate(status, absl::StrCat(RankName(workload_, r), ": node ", NodeOf(r, position).id));
  }

  // Ends a node at once, as AstraSim does with a computation of no bytes under a roofline. It does
  // not look at what waits for the node before something else of the rank ends.
  void Skip(int32_t r, uint32_t node) {
    Rank& rank = ranks_[r];
    ++rank.done;
    ++nodes_done_;
    if (options_.node_times) rank.done_ns[node] = events_.now_ns();
    rank.last_skipped = node;
    for (const uint32_t dependent : rank.graph.dependents(node)) {
      if (--rank.waits_for[dependent] == 0) rank.overlooked.push_back(dependent);
    }
  }

  int64_t DurationNs(const WorkloadNode& node) const {
    if (!HasRoofline(node, system_)) return std::max<int64_t>(node.duration_ns, 1);
    return static_cast<int64_t>(RooflineNs(node, system_));
  }

  void IssueSend(int32_t rank, uint32_t position) {
    if (const int64_t fixed_ns = NodeOf(rank, position).fixed_ns; fixed_ns != kSimulated) {
      events_.Schedule(events_.now_ns() + fixed_ns, EventKind::kSendDone,
                       static_cast<uint32_t>(rank), position);
      return;
    }
    if (options_.rendezvous) {
      const SendKey key = SendKeyOf(rank, NodeOf(rank, position).peer, NodeOf(rank, position));
      Rendezvous& meeting = rendezvous_[key];
      if (meeting.receives == 0) {
        meeting.sends.push_back({rank, position});
        return;
      }
      if (--meeting.receives == 0) rendezvous_.erase(key);
    }
    StartSend(rank, position);
  }

  void StartSend(int32_t rank, uint32_t position) {
    const WorkloadNode& node = NodeOf(rank, position);
    const uint32_t message = network_.Send(rank, node.peer, node.bytes);
    if (message >= senders_.size()) senders_.resize(message + 1);
    senders_[message] = {rank, position};
  }

  void IssueReceive(int32_t rank, uint32_t position) {
    const WorkloadNode& node = NodeOf(rank, position);
    const SendKey key = SendKeyOf(node.peer, rank, node);
    if (options_.rendezvous) {
      Rendezvous& meeting = rendezvous_[key];
      if (meeting.sends.empty()) {
        ++meeting.receives;
      } else {
        const Issued sender = meeting.sends.front();
        meeting.sends.erase(meeting.sends.begin());
        if (meeting.sends.empty()) rendezvous_.erase(key);
        StartSend(sender.rank, sender.node);
      }
    }
    if (!sends_.Receive(key, position)) return;
    events_.Schedule(events_.now_ns(), EventKind::kNodeDone, static_cast<uint32_t>(rank), position);
  }

  void IssueMemory(int32_t rank, uint32_t position) {
    if (system_.remote_memory.is_shared()) {
      SharedMemory& memory = memories_[system_.remote_memory.MemoryOf(rank)];
      if (memory.busy) {
        memory.waiting.push_back({rank, position});
        return;
      }
      memory.busy = true;
    }
    StartAccess(rank, position);
  }

  void StartAccess(int32_t rank, uint32_t position) {
    const RemoteMemory& memory = system_.remote_memory;
    const int64_t end_ns =
        events_.now_ns() +
        static_cast<int64_t>(memory.AccessNs(NodeOf(rank, position).tensor_bytes));
    const uint32_t subject = static_cast<uint32_t>(rank);
    events_.ScheduleOnRank(rank, end_ns, EventKind::kNodeDone, subject, position);
    // What the rank does next asks for the memory before it is free: others have their turn first.
    if (memory.is_shared()) {
      events_.ScheduleOnRank(rank, end_ns, EventKind::kMemoryFree, subject);
    }
  }

  void OnMemoryFree(int32_t rank) {
    SharedMemory& memory = memories_[system_.remote_memory.MemoryOf(rank)];
    memory.busy = !memory.waiting.empty();
    if (!memory.busy) return;
    const Issued next = memory.waiting.front();
    memory.waiting.pop_front();
    StartAccess(next.rank, next.node);
  }

  void OnSendDone(int32_t rank, uint32_t position) {
    const int32_t peer = NodeOf(rank, position).peer;
    const std::optional<uint32_t> receive =
        sends_.Arrive(SendKeyOf(rank, peer, NodeOf(rank, position)));
    OnNodeDone(rank, position);
    if (receive.has_value()) OnNodeDone(peer, *receive);
  }

  void OnNodeDone(int32_t r, uint32_t node) {
    if (node >= kFirstOperation) {
      collectives_.OnOperationDone(node);
      return;
    }
    Rank& rank = ranks_[r];
    const Resource resource = ResourceOf(NodeOf(r, node));
    ++rank.free[resource];
    if (resource == kComm) {
      *std::find(rank.comm_streams.begin(), rank.comm_streams.end(), node) = kNone;
    }
    ++rank.done;
    ++nodes_done_;
    ++node_events_;
    if (options_.node_times) rank.done_ns[node] = events_.now_ns();
    CountUnderWay(NodeOf(r, node), -1, &rank);
    for (const uint32_t dependent : rank.graph.dependents(node)) {
      if (--rank.waits_for[dependent] == 0) Release(r, dependent);
    }
    IssueReady(r);
    FinishIfIdle(r);
  }

  // Sums up what the rank did so far, and notes that a node more, or less, is under way.
  void CountUnderWay(const WorkloadNode& node, int32_t change, Rank* rank) {
    const int64_t elapsed_ns = events_.now_ns() - rank->summed_ns;
    if (elapsed_ns > 0) {
      rank->summed_ns = events_.now_ns();
      rank->activity.span_ns = rank->summed_ns;
      if (rank->computing > 0) rank->activity.computing_ns += elapsed_ns;
      if (rank->communicating > 0) rank->activity.communicating_ns += elapsed_ns;
      if (rank->communicating > 0 && rank->computing == 0) rank->activity.exposed_ns += elapsed_ns;
    }
    if (node.type != WorkloadNodeType::kCompute) {
      rank->communicating += change;
    } else if (Computes(node, rank->has_device)) {
      rank->computing += change;
    }
  }

  void FinishIfIdle(int32_t r) {
    Rank& rank = ranks_[r];
    if (rank.done < rank.issued || rank.delayed > 0 || !status_.ok()) return;
    if (rank.done == rank.graph.size()) {
      rank.finish_ns = events_.now_ns();
      ++ranks_done_;
      return;
    }
    // Nothing is ready and nothing under way, yet nodes are left.
    status_ = rank.overlooked.empty() ? Circle(r) : Overlooked(r);
  }

  absl::Status Overlooked(int32_t r) const {
    const Rank& rank = ranks_[r];
    return InvalidArgument(RankName(workload_, r), ": node ", NodeOf(r, rank.last_skipped).id,
                           ": tensor_size is 0: with roofline-enabled AstraSim skips it and never "
                           "runs what waits for it, here node ",
                           NodeOf(r, rank.overlooked[0]).id,
                           "; write a tensor_size and num_ops of 1 or more");
  }

  absl::Status Circle(int32_t rank) const {
    constexpr size_t kShown = 8;
    const RankWorkload& workload = workload_.ranks[rank];
    const DependencyGraph& graph = ranks_[rank].graph;
    const std::vector<uint32_t>& waits_for = ranks_[rank].waits_for;
    // Leads from a node that waits to a dependency that waits itself.
    const std::vector<size_t> circle = FindCircle(graph.size(), [&](size_t node) -> size_t {
      if (waits_for[node] == 0) return graph.size();
      for (const uint64_t id : workload.dependencies(node)) {
        const uint32_t dependency = graph.Find(workload, id);
        if (waits_for[dependency] > 0) return dependency;
      }
      return graph.size();
    });
    std::string text;
    for (size_t i = 0; i < std::min(circle.size(), kShown); ++i) {
      absl::StrAppend(&text, NodeOf(rank, circle[i]).id, " -> ");
    }
    if (circle.size() > kShown) absl::StrAppend(&text, "... -> ");
    return InvalidArgument(RankName(workload_, rank),
                           ": nodes depend on each other in a circle: ", text,
                           NodeOf(rank, circle[0]).id);
  }

  absl::Status Deadlock() const {
    std::vector<WaitingNode> waiting;
    const std::vector<OpenCollective> collectives = collectives_.OpenCollectives();
    for (const OpenCollective& open : collectives) {
      if (open.missing_ranks.empty()) {
        // All members wait for the same reason; one is enough.
        waiting.push_back({open.waiting_ranks[0], open.waiting_nodes[0], open.waiting_ranks,
                           "its chunks hold up each other in different dimensions; raise "
                           "active-chunks-per-dimension to preferred-dataset-splits"});
        continue;
      }
      for (size_t i = 0; i < open.waiting_ranks.size(); ++i) {
        waiting.push_back({open.waiting_ranks[i], open.waiting_nodes[i], open.missing_ranks, ""});
      }
    }
    const std::vector<WaitingReceive> receives = sends_.WaitingReceives();
    for (const WaitingReceive& receive : receives) {
      const bool is_custom = receive.node >= kFirstOperation;
      std::string note;
      if (is_custom) {
        note = absl::StrCat("its algorithm receives ", receive.key.bytes, " bytes with tag ",
                            receive.key.tag);
      } else if (receive.other_bytes.has_value()) {
        note = absl::StrCat("a send with this tag has ", *receive.other_bytes, " bytes, not ",
                            receive.key.bytes);
      }
      waiting.push_back({receive.key.destination,
                         is_custom ? collectives_.NodeOfOperation(receive.node) : receive.node,
                         absl::MakeConstSpan(&receive.key.source, 1), std::move(note)});
    }
    return InvalidArgument(DescribeDeadlock(workload_, waiting, events_.now_ns()));
  }

  SimulationResult TakeResult() {
    SimulationResult result;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      result.finish_ns.push_back(rank.finish_ns);
      result.activity.push_back(rank.activity);
      for (size_t node = 0; node < rank.done_ns.size(); ++node) {
        result.nodes.push_back({static_cast<int32_t>(r), workload_.ranks[r].nodes()[node].id,
                                rank.issue_ns[node], rank.done_ns[node]});
      }
    }
    return result;
  }

  const Workload& workload_;
  const SystemConfig& system_;
  const SimulationOptions& options_;
  const bool keep_order_;
  OrderWatch order_;
  // Number of the event of a node that is under way.
  int64_t node_events_ = 0;

  EventQueue events_;
  LinkNetwork network_;
  CollectiveRunner collectives_;
  std::vector<Rank> ranks_;
  SendMatcher sends_;
  absl::flat_hash_map<SendKey, Rendezvous> rendezvous_;
  // By RemoteMemory::MemoryOf.
  absl::flat_hash_map<int64_t, SharedMemory> memories_;
  // Senders indexed by the number of the message in the network; those of collectives are not set.
  std::vector<Issued> senders_;
  int64_t nodes_ = 0;
  int64_t nodes_done_ = 0;
  int32_t ranks_done_ = 0;
  absl::Status status_;
};

// Whether each group has the links that its messages take to itself, unless other messages between
// two ranks take them. If groups share links, order matters sooner or later.
bool GroupsHaveTheirLinks(const Workload& workload, const Topology& topology) {
  for (const auto& [id, ranks] : workload.groups) {
    if (ranks.size() < 2) continue;
    const std::optional<int32_t> dimension = CommonDimension(topology, ranks);
    if (!dimension.has_value()) return false;
    const NetworkDimension& block = topology.dimension(*dimension);
    if (static_cast<int32_t>(ranks.size()) < block.npus &&
        block.shape != BlockShape::kFullyConnected) {
      return false;
    }
  }
  if (topology.dimension_count() == 1) return true;
  // Messages that change their dimension on the way would meet those of any group.
  for (size_t r = 0; r < workload.ranks.size(); ++r) {
    for (const WorkloadNode& node : workload.ranks[r].nodes()) {
      if (node.type == WorkloadNodeType::kCollective && node.group == kWorldGroup) return false;
      if (node.type != WorkloadNodeType::kSend) continue;
      const int32_t ends[] = {static_cast<int32_t>(r), node.peer};
      if (!CommonDimension(topology, ends).has_value()) return false;
    }
  }
  return true;
}

bool HasFixedTransfers(const Workload& workload) {
  return absl::c_any_of(workload.ranks, [](const RankWorkload& rank) {
    return absl::c_any_of(rank.nodes(),
                          [](const WorkloadNode& node) { return node.fixed_ns != kSimulated; });
  });
}

// Whether it is noticed when the order of the events of one instant matters.
bool MayIgnoreOrder(const Workload& workload, const Topology& topology, const SystemConfig& system,
                    const SimulationOptions& options) {
  if (options.events_only || options.comm_streams > 1 || workload.has_custom() ||
      system.remote_memory.is_shared() || HasFixedTransfers(workload)) {
    return false;
  }
  if (options.congestion == Congestion::kUnaware) return true;
  if (topology.network().has_links()) return false;
  // Chunks of one rank that come to a link in one instant are not told apart.
  return system.active_chunks_per_dimension == 1 && GroupsHaveTheirLinks(workload, topology);
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options) {
  if (options.congestion == Congestion::kFair && !network.has_links()) {
    ASSIGN_OR_RETURN(const NetworkConfig links, AsLinks(network));
    return Simulate(workload, links, system, options);
  }
  RETURN_IF_ERROR(CheckWorkload(workload, network, system, options));
  if (network.has_links() && options.paths == nullptr) {
    LinkPaths paths(network);
    SimulationOptions with_paths = options;
    with_paths.paths = &paths;
    return Simulate(workload, network, system, with_paths);
  }
  const Topology topology(network);
  ASSIGN_OR_RETURN(const GroupTable groups, GroupTable::Create(workload));
  if (MayIgnoreOrder(workload, topology, system, options)) {
    WorkloadRunner runner(workload, groups, topology, system, options, /*keep_order=*/false);
    absl::StatusOr<SimulationResult> result = runner.Run();
    if (result.ok() && !runner.order_mattered()) return result;
  }
  return WorkloadRunner(workload, groups, topology, system, options, /*keep_order=*/true).Run();
}

}  // namespace meridian
