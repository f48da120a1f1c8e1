#include "forecast/job_on_network.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Sums of a few times below this do not overflow.
constexpr int64_t kLongestPs = int64_t{1} << 60;

constexpr size_t kNoTransfer = ~size_t{0};

constexpr int kUndampedRounds = 1;

// Returns the transfer as an edge; nullopt when no network can time it.
std::optional<CommEdge> EdgeOf(const GraphMeeting& meeting, size_t number) {
  if (!meeting.transfer.has_value()) return std::nullopt;
  const std::optional<CollectiveKind> kind = TimedKindOf(meeting.transfer->kind);
  if (!kind.has_value()) return std::nullopt;
  CommEdge edge;
  edge.id = absl::StrCat(number);
  edge.kind = *kind;
  edge.bytes = meeting.transfer->bytes;
  edge.participants = meeting.transfer->ranks;
  // A message to its own rank needs no network.
  if (edge.participants.size() > 1 && edge.participants[0] == edge.participants[1]) {
    return std::nullopt;
  }
  return UsesNetwork(edge) ? std::make_optional(std::move(edge)) : std::nullopt;
}

}  // namespace

absl::StatusOr<JobOnNetwork> JobOnNetwork::Create(PathGraph measured) {
  JobOnNetwork job;
  ASSIGN_OR_RETURN(const CriticalPath path, FindLongestPath(measured));
  job.graph_ = MakeWhatIfGraph(std::move(measured), path);
  const PathGraph& graph = job.graph_.graph;
  for (const Lane& lane : graph.lanes) {
    job.ranks_ = std::max(job.ranks_, static_cast<int32_t>(lane.rank) + 1);
  }
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  const EdgesByInstant outgoing(graph, &GraphEdge::from);
  job.transfer_of_event_.assign(graph.events.size(), kNoTransfer);
  for (const GraphMeeting& meeting : graph.meetings) {
    const size_t number = job.transfers_.size();
    std::optional<CommEdge> edge = EdgeOf(meeting, number);
    if (!edge.has_value()) continue;
    const int64_t met_ps = graph.Time(meeting.instant);
    int64_t lasts_ps = 0;
    for (const EdgeId departure : outgoing.Of(meeting.instant)) {
      const InstantId end = graph.edges[departure].to;
      if (job.graph_.IsFrozen(graph.edges[departure])) continue;
      lasts_ps = std::max(lasts_ps, graph.Time(end) - met_ps);
    }
    if (lasts_ps <= 0) continue;
    for (const EdgeId departure : outgoing.Of(meeting.instant)) {
      const InstantId end = graph.edges[departure].to;
      const GraphEventId event = graph.instants[end].event;
      if (event != kNoEvent) job.transfer_of_event_[event] = number;
      for (const EdgeId id : incoming.Of(end)) {
        const GraphEdge& timed = graph.edges[id];
        if (timed.event != event || timed.bound_by != BoundBy::kGpuCommunication) continue;
        if (!job.graph_.IsFrozen(timed)) job.timed_edges_.push_back({id, number});
      }
    }
    for (const EdgeId id : incoming.Of(meeting.instant)) {
      const InstantId from = graph.edges[id].from;
      const GraphEventId event = graph.instants[from].event;
      const int32_t rank = static_cast<int32_t>(job.graph_.RankOf(event));
      job.arrivals_.push_back({from, number, rank});
      const bool is_sender =
          edge->kind == CollectiveKind::kPointToPoint && rank == edge->participants[0];
      if (is_sender) job.AddSender(meeting.instant, event, number, incoming);
    }
    job.transfers_.push_back(*std::move(edge));
    job.measured_ns_.push_back(static_cast<double>(lasts_ps) / kPsPerNs);
  }
  if (job.transfers_.empty()) {
    return absl::InvalidArgumentError(
        "no transfer between ranks is known, so that another network would change nothing; "
        "expected traces of all ranks, with collectives");
  }
  job.CountUnknownEvents();
  ASSIGN_OR_RETURN(job.order_, PathOrder::Create(graph));
  ASSIGN_OR_RETURN(const LongestPaths paths, FindLongestPaths(graph, *job.order_));
  job.measured_schedule_ = job.ScheduleAt(paths.lengths_ps, job.measured_ns_);
  return job;
}

void JobOnNetwork::CountUnknownEvents() {
  const PathGraph& graph = graph_.graph;
  std::vector<bool> communicates(graph.events.size());
  for (const GraphEdge& edge : graph.edges) {
    if (edge.event != kNoEvent && edge.bound_by == BoundBy::kGpuCommunication &&
        !graph_.IsFrozen(edge)) {
      communicates[edge.event] = true;
    }
  }
  for (GraphEventId event = 0; event < graph.events.size(); ++event) {
    if (communicates[event] && transfer_of_event_[event] == kNoTransfer) {
      ++unknown_events_;
    }
    transfer_of_event_[event] = std::min(transfer_of_event_[event], transfers_.size());
  }
}

void JobOnNetwork::AddSender(InstantId meeting, GraphEventId sender, size_t transfer,
                             const EdgesByInstant& incoming) {
  PathGraph& graph = graph_.graph;
  const InstantId end = graph_.end_instants[sender];
  if (end == kNoInstant || transfer_of_event_[sender] != kNoTransfer) return;
  const int64_t sends_ps = graph.Time(end) - graph.Time(meeting);
  if (sends_ps <= 0) return;
  GraphEdge sends{
      meeting, end, sends_ps, sender, EdgeType::kSyncDependency, BoundBy::kGpuCommunication};
  if (graph_.IsFrozen(sends)) return;
  transfer_of_event_[sender] = transfer;
  for (const EdgeId id : incoming.Of(end)) {
    GraphEdge& own = graph.edges[id];
    if (own.event != sender || own.bound_by != BoundBy::kGpuCommunication) continue;
    own.weight_ps = std::min(own.weight_ps, sends_ps);
    timed_edges_.push_back({id, transfer});
  }
  timed_edges_.push_back({static_cast<EdgeId>(graph.edges.size()), transfer});
  graph.edges.push_back(sends);
}

EdgeSchedule JobOnNetwork::ScheduleAt(const std::vector<int64_t>& times_ps,
                                      const std::vector<double>& lasts_ns) const {
  EdgeSchedule schedule;
  schedule.begins_ns.resize(transfers_.size());
  size_t next = 0;
  for (size_t number = 0; number < transfers_.size(); ++number) {
    std::map<int32_t, int64_t> by_rank;
    int64_t last_ns = 0;
    for (; next < arrivals_.size() && arrivals_[next].transfer == number; ++next) {
      const int64_t begin_ns = times_ps[arrivals_[next].instant] / kPsPerNs;
      by_rank[arrivals_[next].rank] = begin_ns;
      last_ns = std::max(last_ns, begin_ns);
    }
    for (const int32_t rank : transfers_[number].participants) {
      const auto begin = by_rank.find(rank);
      schedule.begins_ns[number].push_back(begin == by_rank.end() ? last_ns : begin->second);
    }
    schedule.ends_ns.push_back(last_ns + std::llround(lasts_ns[number]));
  }
  return schedule;
}

bool JobOnNetwork::Grows(const CommEdge& transfer) const {
  if (transfer.kind == CollectiveKind::kPointToPoint) return false;
  std::vector<int32_t> ranks = transfer.participants;
  std::sort(ranks.begin(), ranks.end());
  const int32_t stride = ranks[1] - ranks[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return false;
  }
  return stride * static_cast<int32_t>(ranks.size()) == ranks_;
}

int32_t JobOnNetwork::inner_ranks() const {
  int32_t inner = 1;
  for (const CommEdge& transfer : transfers_) {
    if (!Grows(transfer)) continue;
    inner = std::max(inner, ranks_ / static_cast<int32_t>(transfer.participants.size()));
  }
  return inner;
}

absl::StatusOr<JobOnNetwork::RunAgain> JobOnNetwork::Run(WhatIfGraph edited,
                                                         const Network& network) const {
  double change = 0;
  std::vector<GraphEdge>& edges = edited.graph.edges;
  ASSIGN_OR_RETURN(LongestPaths paths, FindLongestPaths(edited.graph, *order_));
  const std::vector<int64_t>& times_ps = paths.lengths_ps;
  std::vector<double> lasts_ns = measured_ns_;
  for (int runs = 0; runs < kMaxNetworkReplays; ++runs) {
    const int64_t before_ps = *std::max_element(times_ps.begin(), times_ps.end());
    ASSIGN_OR_RETURN(const std::vector<double> network_ns, network(ScheduleAt(times_ps, lasts_ns)));
    // Which transfers meet goes to and fro between two schedules; halfway they settle.
    for (size_t i = 0; i < lasts_ns.size(); ++i) {
      lasts_ns[i] = runs < kUndampedRounds ? network_ns[i] : (lasts_ns[i] + network_ns[i]) / 2;
    }
    for (const TimedEdge& timed : timed_edges_) {
      const double factor = lasts_ns[timed.transfer] / measured_ns_[timed.transfer];
      const double weight_ps = static_cast<double>(graph_.graph.edges[timed.edge].weight_ps);
      edges[timed.edge].weight_ps =
          std::llround(std::min(weight_ps * factor, static_cast<double>(kLongestPs)));
    }
    ASSIGN_OR_RETURN(paths, FindLongestPaths(edited.graph, *order_));
    const int64_t now_ps = *std::max_element(times_ps.begin(), times_ps.end());
    if (now_ps >= kLongestPs) {
      return absl::OutOfRangeError("the run would last longer than 13 days");
    }
    change = std::abs(static_cast<double>(now_ps - before_ps)) / static_cast<double>(now_ps);
    if (change <= kSettledChange) break;
  }
  ASSIGN_OR_RETURN(CriticalPath path, LongestPathOf(edited.graph, paths));
  PutTimes(times_ps, &edited);
  return RunAgain{std::move(edited), std::move(path), change};
}

}  // namespace meridian
