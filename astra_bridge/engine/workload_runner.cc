#include "astra_bridge/engine/workload_runner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/status_util.h"

namespace meridian {
namespace {

// AstraSim folds the tags of sends into this range.
constexpr int32_t kTags = 500'000'000;

// 73 years; the sum with any one delay fits into 64 bits.
constexpr int64_t kMaxTimeNs = int64_t{1} << 61;

constexpr int64_t kEventsPerReport = 1 << 16;

std::string RankName(const Workload& workload, int32_t rank) {
  const std::string& source = workload.ranks[rank].source;
  return source.empty() ? absl::StrCat("rank ", rank) : source;
}

}  // namespace

WorkloadRunner::WorkloadRunner(const Workload& workload, const GroupTable& groups,
                               const Topology& topology, const SystemConfig& system,
                               const SimulationOptions& options, TransferLog* log)
    : workload_(workload),
      groups_(groups),
      topology_(topology),
      system_(system),
      options_(options),
      log_(log),
      events_(topology.npus()),
      network_(topology, options.congestion, options.link_use, events_),
      collectives_(workload, groups, topology, system, options, log, network_, events_, *this),
      ranks_(workload.ranks.size()) {}

absl::Status WorkloadRunner::Run() {
  RETURN_IF_ERROR(SetUp());
  return Loop();
}

absl::Status WorkloadRunner::SetUp() {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    absl::StatusOr<DependencyGraph> graph = DependencyGraph::Create(workload_.ranks[r]);
    if (!graph.ok()) {
      return Annotate(graph.status(), RankName(workload_, static_cast<int32_t>(r)));
    }
    rank.graph = *std::move(graph);
    const uint32_t nodes = rank.graph.size();
    nodes_ += nodes;
    rank.comm_streams.assign(options_.comm_streams, kNone);
    rank.free_comm_streams = options_.comm_streams;
    if (options_.node_times) {
      rank.issue_ns.resize(nodes);
      rank.done_ns.resize(nodes);
    }
    rank.waits_for.resize(nodes);
    for (uint32_t node = 0; node < nodes; ++node) {
      rank.waits_for[node] = rank.graph.dependency_count(node);
      if (rank.waits_for[node] == 0) MakeReady(static_cast<int32_t>(r), node);
    }
  }
  return absl::OkStatus();
}

absl::Status WorkloadRunner::Loop() {
  for (int32_t rank = 0; rank < static_cast<int32_t>(ranks_.size()) && status_.ok(); ++rank) {
    IssueReady(rank);
    FinishIfIdle(rank);
  }
  Event event;
  int64_t events_until_report = kEventsPerReport;
  while (status_.ok() && events_.Pop(&event)) {
    if (event.time_ns > kMaxTimeNs) {
      return absl::InvalidArgumentError("the simulated run lasts longer than 73 years");
    }
    Handle(event);
    if (--events_until_report > 0) continue;
    events_until_report = kEventsPerReport;
    if (options_.progress) options_.progress(nodes_done_, nodes_);
  }
  RETURN_IF_ERROR(status_);
  return ranks_done_ == static_cast<int32_t>(ranks_.size()) ? absl::OkStatus() : Deadlock();
}

void WorkloadRunner::Handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kPrepared:
      collectives_.OnPrepared(event.subject);
      return;
    case EventKind::kReduce:
      collectives_.OnReduce(event.subject);
      return;
    case EventKind::kTaken:
      collectives_.OnTaken(event.subject);
      return;
    case EventKind::kCrossed:
      if (!network_.Arrives(event.subject)) return;
      if (!collectives_.Deliver(event.subject)) DeliverSend(event.subject);
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
    case EventKind::kRankIsDue:
      return;
  }
}

WorkloadRunner::Resource WorkloadRunner::ResourceOf(const WorkloadNode& node) {
  switch (node.type) {
    case WorkloadNodeType::kCompute:
      return node.on_host ? kHost : kDevice;
    case WorkloadNodeType::kCollective:
    case WorkloadNodeType::kSend:
      return kComm;
    case WorkloadNodeType::kReceive:
      break;
  }
  return kReceive;
}

void WorkloadRunner::MakeReady(int32_t r, uint32_t node) {
  Rank& rank = ranks_[r];
  rank.ready[ResourceOf(NodeOf(r, node))].push(rank.graph.priority(node));
}

WorkloadRunner::Resource WorkloadRunner::NextResource(const Rank& rank) {
  const std::array<bool, kResources> is_free = {!rank.host_busy, !rank.device_busy,
                                                rank.free_comm_streams > 0, true};
  size_t next = kResources;
  for (size_t resource = 0; resource < kResources; ++resource) {
    if (!is_free[resource] || rank.ready[resource].empty()) continue;
    if (next == kResources || rank.ready[resource].top() < rank.ready[next].top()) next = resource;
  }
  return static_cast<Resource>(next);
}

void WorkloadRunner::IssueReady(int32_t r) {
  Rank& rank = ranks_[r];
  while (status_.ok()) {
    const Resource resource = NextResource(rank);
    if (resource == kResources) return;
    const uint32_t node = rank.graph.node_at(rank.ready[resource].top());
    rank.ready[resource].pop();
    Issue(r, node);
  }
}

void WorkloadRunner::Issue(int32_t r, uint32_t position) {
  Rank& rank = ranks_[r];
  const WorkloadNode& node = NodeOf(r, position);
  ++rank.issued;
  if (options_.node_times) rank.issue_ns[position] = events_.now_ns();
  int32_t comm_stream = 0;
  switch (ResourceOf(node)) {
    case kHost:
      rank.host_busy = true;
      break;
    case kDevice:
      rank.device_busy = true;
      break;
    case kComm:
      comm_stream = TakeCommStream(r, position);
      break;
    case kReceive:
    case kResources:
      break;
  }
  const bool lasts_its_duration = system_.replay_only || node.type == WorkloadNodeType::kCompute ||
                                  (node.type == WorkloadNodeType::kCollective &&
                                   node.op == CollectiveKind::kCollectiveBroadcast);
  if (lasts_its_duration) {
    events_.ScheduleOnRank(r, events_.now_ns() + DurationNs(node), EventKind::kNodeDone,
                           static_cast<uint32_t>(r), position);
  } else if (node.type == WorkloadNodeType::kCollective) {
    IssueCollective(r, position, comm_stream);
  } else if (node.type == WorkloadNodeType::kSend) {
    IssueSend(r, position);
  } else {
    IssueReceive(r, position);
  }
}

int64_t WorkloadRunner::DurationNs(const WorkloadNode& node) const {
  const bool has_roofline = system_.roofline_enabled && !system_.replay_only &&
                            node.type == WorkloadNodeType::kCompute && !node.on_host;
  if (!has_roofline) return std::max<int64_t>(node.duration_ns, 1);
  // Without bytes AstraSim skips the node.
  if (node.tensor_bytes == 0) return 0;
  const double operations = static_cast<double>(node.operations);
  const double intensity = operations / static_cast<double>(node.tensor_bytes);
  const double per_second =
      std::min(system_.local_memory_bandwidth * 1e9 * intensity, system_.peak_performance * 1e12);
  return per_second == 0 ? 0 : static_cast<int64_t>(operations / per_second * 1e9);
}

int32_t WorkloadRunner::TakeCommStream(int32_t r, uint32_t node) {
  Rank& rank = ranks_[r];
  const auto free = std::find(rank.comm_streams.begin(), rank.comm_streams.end(), kNone);
  *free = node;
  --rank.free_comm_streams;
  return static_cast<int32_t>(free - rank.comm_streams.begin());
}

void WorkloadRunner::Release(int32_t r, uint32_t node) {
  Rank& rank = ranks_[r];
  switch (ResourceOf(NodeOf(r, node))) {
    case kHost:
      rank.host_busy = false;
      return;
    case kDevice:
      rank.device_busy = false;
      return;
    case kComm:
      *std::find(rank.comm_streams.begin(), rank.comm_streams.end(), node) = kNone;
      ++rank.free_comm_streams;
      return;
    case kReceive:
    case kResources:
      return;
  }
}

void WorkloadRunner::IssueCollective(int32_t rank, uint32_t position, int32_t comm_stream) {
  const WorkloadNode& node = NodeOf(rank, position);
  const absl::StatusOr<Membership> membership = groups_.Find(rank, node.group);
  if (!membership.ok()) {
    Fail(rank, position, membership.status());
    return;
  }
  CollectiveCall call;
  call.shape.op = node.op;
  call.shape.bytes = node.bytes;
  call.shape.group = membership->group;
  call.shape.algorithms = node.algorithms;
  call.shape.involved_dimensions = node.involved_dimensions;
  call.rank = rank;
  call.member = membership->member;
  call.node = position;
  call.comm_stream = comm_stream;
  const absl::Status status = collectives_.Join(call);
  if (!status.ok()) Fail(rank, position, status);
}

SendKey WorkloadRunner::KeyOf(int32_t source, int32_t destination, const WorkloadNode& node) {
  return {source, destination, node.tag % kTags, node.bytes};
}

void WorkloadRunner::IssueSend(int32_t rank, uint32_t position) {
  if (options_.fixed_durations != nullptr) {
    if (const auto duration_ns = options_.fixed_durations->Find(rank, position)) {
      events_.Schedule(events_.now_ns() + *duration_ns, EventKind::kSendDone,
                       static_cast<uint32_t>(rank), position);
      return;
    }
  }
  const WorkloadNode& node = NodeOf(rank, position);
  const uint32_t message = network_.Send(rank, node.peer, node.bytes);
  if (message >= senders_.size()) senders_.resize(message + 1);
  senders_[message] = {rank, position, log_ == nullptr ? 0 : log_->Begin(events_.now_ns(), 1)};
}

void WorkloadRunner::IssueReceive(int32_t rank, uint32_t position) {
  const WorkloadNode& node = NodeOf(rank, position);
  if (!sends_.Receive(KeyOf(node.peer, rank, node), position)) return;
  events_.Schedule(events_.now_ns(), EventKind::kNodeDone, static_cast<uint32_t>(rank), position);
}

void WorkloadRunner::DeliverSend(uint32_t message) {
  const Sender sender = senders_[message];
  if (log_ != nullptr) {
    log_->EndPart(sender.transfer, 0, {sender.rank, sender.node, events_.now_ns()});
  }
  OnSendDone(sender.rank, sender.node);
}

void WorkloadRunner::OnSendDone(int32_t rank, uint32_t position) {
  const WorkloadNode& node = NodeOf(rank, position);
  const std::optional<uint32_t> receive = sends_.Arrive(KeyOf(rank, node.peer, node));
  OnNodeDone(rank, position);
  if (receive.has_value()) OnNodeDone(node.peer, *receive);
}

void WorkloadRunner::OnNodeDone(int32_t r, uint32_t node) {
  Rank& rank = ranks_[r];
  Release(r, node);
  ++rank.done;
  ++nodes_done_;
  if (options_.node_times) rank.done_ns[node] = events_.now_ns();
  for (const uint32_t dependent : rank.graph.dependents(node)) {
    if (--rank.waits_for[dependent] == 0) MakeReady(r, dependent);
  }
  IssueReady(r);
  FinishIfIdle(r);
}

void WorkloadRunner::FinishIfIdle(int32_t r) {
  Rank& rank = ranks_[r];
  if (rank.done < rank.issued || !status_.ok()) return;
  if (rank.done == rank.graph.size()) {
    rank.finish_ns = events_.now_ns();
    ++ranks_done_;
    return;
  }
  // Nothing is ready and nothing under way, yet nodes are left.
  status_ = Circle(r);
}

absl::Status WorkloadRunner::Circle(int32_t rank) const {
  constexpr size_t kShown = 8;
  const std::vector<uint32_t> circle =
      DependencyGraph::FindCircle(workload_.ranks[rank], ranks_[rank].waits_for);
  std::string text;
  for (size_t i = 0; i < std::min(circle.size(), kShown); ++i) {
    absl::StrAppend(&text, NodeOf(rank, circle[i]).id, " -> ");
  }
  if (circle.size() > kShown) absl::StrAppend(&text, "... -> ");
  return absl::InvalidArgumentError(absl::StrCat(RankName(workload_, rank),
                                                 ": nodes depend on each other in a circle: ", text,
                                                 NodeOf(rank, circle[0]).id));
}

void WorkloadRunner::Fail(int32_t rank, uint32_t node, const absl::Status& reason) {
  status_ =
      Annotate(reason, absl::StrCat(RankName(workload_, rank), ": node ", NodeOf(rank, node).id));
}

absl::Status WorkloadRunner::Deadlock() const {
  std::vector<WaitingNode> waiting;
  const std::vector<OpenCollective> collectives = collectives_.OpenCollectives();
  for (const OpenCollective& open : collectives) {
    if (open.missing_ranks.empty()) {
      // The same for all of them.
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
    std::string note;
    if (receive.other_bytes.has_value()) {
      note = absl::StrCat("a send with this tag has ", *receive.other_bytes, " bytes, not ",
                          receive.key.bytes);
    }
    waiting.push_back({receive.key.destination, receive.node,
                       absl::MakeConstSpan(&receive.key.source, 1), std::move(note)});
  }
  return absl::InvalidArgumentError(DescribeDeadlock(workload_, waiting, events_.now_ns()));
}

SimulationResult WorkloadRunner::TakeResult() {
  SimulationResult result;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    result.finish_ns.push_back(rank.finish_ns);
    for (size_t node = 0; node < rank.done_ns.size(); ++node) {
      result.nodes.push_back({static_cast<int32_t>(r), workload_.ranks[r].nodes()[node].id,
                              rank.issue_ns[node], rank.done_ns[node]});
    }
  }
  result.links = network_.links_used();
  result.unreceived_messages = sends_.Unreceived();
  return result;
}

}  // namespace meridian
