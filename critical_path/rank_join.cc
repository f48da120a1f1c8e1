#include "critical_path/rank_join.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

// By how much the times of a graph grow when they count from another base.
absl::StatusOr<int64_t> ShiftPs(int64_t from_base_ns, int64_t to_base_ns) {
  int64_t shift_ns = 0, shift_ps = 0;
  if (__builtin_sub_overflow(from_base_ns, to_base_ns, &shift_ns) ||
      __builtin_mul_overflow(shift_ns, kPsPerNs, &shift_ps)) {
    return absl::OutOfRangeError("the traces of the ranks lie over 106 days apart");
  }
  return shift_ps;
}

absl::StatusOr<int64_t> Shifted(int64_t time_ps, int64_t shift_ps) {
  int64_t sum_ps = 0;
  if (__builtin_add_overflow(time_ps, shift_ps, &sum_ps)) {
    return absl::OutOfRangeError("the traces of the ranks lie over 106 days apart");
  }
  return sum_ps;
}

// Lets ends wait for meetings.
class MeetingAdder {
 public:
  // The departures of all meetings to come.
  MeetingAdder(const std::vector<NodeId>& departures, JoinedGraph* out)
      : out_(*out), graph_(out->graph) {
    constexpr EdgeId kNoEdge = std::numeric_limits<EdgeId>::max();
    for (const NodeId node : departures) cause_[node] = kNoEdge;
    for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
      const auto it = cause_.find(graph_.edges[id].to);
      if (it == cause_.end()) continue;
      if (it->second == kNoEdge ||
          graph_.edges[id].weight_ps > graph_.edges[it->second].weight_ps) {
        it->second = id;
      }
    }
  }

  NodeId AddMeeting(int64_t time_ps, GraphEventId last_event) {
    graph_.nodes.push_back({time_ps, last_event, /*is_start=*/true});
    return static_cast<NodeId>(graph_.nodes.size() - 1);
  }

  // What the end had waited for until now stays the reason when it came after the meeting.
  void AddDeparture(NodeId meeting, NodeId departure) {
    const int64_t met_ps = graph_.nodes[meeting].time_ps;
    const int64_t end_ps = graph_.nodes[departure].time_ps;
    if (met_ps > end_ps) {
      ++out_.against_time;
      return;
    }
    EdgeId& cause = cause_[departure];
    const bool is_other_rank = graph_.nodes[meeting].event != graph_.nodes[departure].event;
    GraphEdge edge{meeting, departure, 0, kNoEvent, EdgeType::kOperator, BoundBy::kNothing};
    if (is_other_rank) edge.type = EdgeType::kSyncDependency;
    if (cause < graph_.edges.size()) {
      GraphEdge& before = graph_.edges[cause];
      if (graph_.nodes[before.from].time_ps <= met_ps) {
        edge.weight_ps = end_ps - met_ps;
        edge.event = before.event;
        edge.bound_by = before.bound_by;
        before.weight_ps = 0;
        before.event = kNoEvent;
        before.bound_by = BoundBy::kNothing;
        cause = static_cast<EdgeId>(graph_.edges.size());
      }
    }
    graph_.edges.push_back(edge);
  }

 private:
  JoinedGraph& out_;
  PathGraph& graph_;
  // For each departure the edge that stands for the time before it.
  absl::flat_hash_map<NodeId, EdgeId> cause_;
};

class Joiner {
 public:
  explicit Joiner(JobGraph job) : job_(std::move(job)) {}

  absl::StatusOr<JoinedGraph> Join() {
    RETURN_IF_ERROR(CheckSize());
    graph_.base_ns = job_.ranks[0].graph.base_ns;
    for (const RankGraph& rank : job_.ranks) {
      graph_.base_ns = std::min(graph_.base_ns, rank.graph.base_ns);
    }
    // The window's start; its time is known when all ranks are.
    graph_.nodes.push_back({0, kNoEvent, /*is_start=*/true});
    for (RankGraph& rank : job_.ranks) RETURN_IF_ERROR(Append(&rank.graph));
    AddWindow();
    AddMeetings();
    return std::move(out_);
  }

 private:
  absl::Status CheckSize() const {
    size_t nodes = 1, edges = 0;
    for (const RankGraph& rank : job_.ranks) {
      nodes += rank.graph.nodes.size();
      edges += rank.graph.edges.size() + 2;
    }
    for (const Meeting& meeting : job_.meetings) {
      ++nodes;
      edges += meeting.arrivals.size() + meeting.departures.size();
    }
    if (nodes < kNoNode && edges < std::numeric_limits<EdgeId>::max()) return absl::OkStatus();
    return absl::OutOfRangeError(
        "the ranks have over 4,000,000,000 nodes or edges; choose a shorter window");
  }

  // Empties the rank's graph, which may be large.
  absl::Status Append(PathGraph* rank) {
    ASSIGN_OR_RETURN(const int64_t shift_ps, ShiftPs(rank->base_ns, graph_.base_ns));
    const auto first_lane = static_cast<LaneId>(graph_.lanes.size());
    const auto first_event = static_cast<GraphEventId>(graph_.events.size());
    const auto first_node = static_cast<NodeId>(graph_.nodes.size());
    const auto event_id = [&](GraphEventId id) { return id == kNoEvent ? id : first_event + id; };
    first_nodes_.push_back(first_node);
    first_lanes_.push_back(first_lane);
    for (Lane& lane : rank->lanes) graph_.lanes.push_back(std::move(lane));
    std::vector<NameId> names(rank->names.size());
    for (NameId id = 0; id < names.size(); ++id) {
      names[id] = graph_.names.Intern(rank->names.Get(id));
    }
    for (GraphEvent event : rank->events) {
      event.name = names[event.name];
      event.lane += first_lane;
      ASSIGN_OR_RETURN(event.start_ps, Shifted(event.start_ps, shift_ps));
      graph_.events.push_back(event);
    }
    for (GraphNode node : rank->nodes) {
      ASSIGN_OR_RETURN(node.time_ps, Shifted(node.time_ps, shift_ps));
      node.event = event_id(node.event);
      graph_.nodes.push_back(node);
    }
    for (GraphEdge edge : rank->edges) {
      edge.from += first_node;
      edge.to += first_node;
      edge.event = event_id(edge.event);
      graph_.edges.push_back(edge);
    }
    end_nodes_.push_back(first_node + *rank->end_node);
    *rank = PathGraph();
    return absl::OkStatus();
  }

  int64_t Time(NodeId node) const { return graph_.nodes[node].time_ps; }

  void AddWindow() {
    const auto earlier = [&](NodeId a, NodeId b) { return Time(a) < Time(b); };
    const NodeId first = *std::min_element(first_nodes_.begin(), first_nodes_.end(), earlier);
    const NodeId last = *std::max_element(end_nodes_.begin(), end_nodes_.end(), earlier);
    graph_.nodes[0].time_ps = graph_.window_start_ps = Time(first);
    graph_.window_end_ps = Time(last);
    graph_.end_node = last;
    for (size_t rank = 0; rank < first_nodes_.size(); ++rank) {
      const NodeId start = first_nodes_[rank];
      const int64_t late_ps = Time(start) - graph_.window_start_ps;
      const bool is_its_own = job_.windows_are_chosen && late_ps > 0;
      graph_.edges.push_back({0, start, late_ps, is_its_own ? AddLateness(rank, late_ps) : kNoEvent,
                              EdgeType::kDependency, BoundBy::kHostGap});
    }
    for (const NodeId end : end_nodes_) {
      if (end == last) continue;
      graph_.edges.push_back({end, last, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing});
    }
  }

  GraphEventId AddLateness(size_t rank, int64_t late_ps) {
    GraphEvent event;
    event.name = graph_.names.Intern(BoundByName(BoundBy::kHostGap));
    event.lane = first_lanes_[rank];
    event.start_ps = graph_.window_start_ps;
    event.duration_ps = late_ps;
    graph_.events.push_back(event);
    return static_cast<GraphEventId>(graph_.events.size() - 1);
  }

  NodeId Joined(const RankNode& node) const { return first_nodes_[node.rank] + node.node; }

  void AddMeetings() {
    std::vector<NodeId> departures;
    for (const Meeting& meeting : job_.meetings) {
      for (const RankNode& node : meeting.departures) departures.push_back(Joined(node));
    }
    MeetingAdder adder(departures, &out_);
    for (const Meeting& meeting : job_.meetings) {
      if (meeting.arrivals.empty()) continue;
      NodeId last = Joined(meeting.arrivals[0]);
      for (const RankNode& node : meeting.arrivals) {
        if (Time(Joined(node)) > Time(last)) last = Joined(node);
      }
      const NodeId place = adder.AddMeeting(Time(last), graph_.nodes[last].event);
      for (const RankNode& node : meeting.arrivals) {
        graph_.edges.push_back(
            {Joined(node), place, 0, kNoEvent, EdgeType::kSyncDependency, BoundBy::kNothing});
      }
      for (const RankNode& node : meeting.departures) adder.AddDeparture(place, Joined(node));
      graph_.meetings.push_back({place, graph_.names.Intern(meeting.name), meeting.step});
    }
  }

  JobGraph job_;
  JoinedGraph out_;
  PathGraph& graph_ = out_.graph;
  // Of each rank: its window's start, which is its first node, and its end.
  std::vector<NodeId> first_nodes_;
  std::vector<NodeId> end_nodes_;
  std::vector<LaneId> first_lanes_;
};

}  // namespace

absl::StatusOr<JoinedGraph> JoinRanks(JobGraph job) { return Joiner(std::move(job)).Join(); }

absl::StatusOr<JoinedGraph> ShowWaits(JobGraph job, size_t rank) {
  // When each meeting was complete, on the rank's own time.
  std::vector<int64_t> met_ps;
  for (const Meeting& meeting : job.meetings) {
    int64_t last_ps = std::numeric_limits<int64_t>::min();
    for (const RankNode& node : meeting.arrivals) {
      const PathGraph& graph = job.ranks[node.rank].graph;
      ASSIGN_OR_RETURN(const int64_t shift_ps,
                       ShiftPs(graph.base_ns, job.ranks[rank].graph.base_ns));
      ASSIGN_OR_RETURN(const int64_t time_ps, Shifted(graph.nodes[node.node].time_ps, shift_ps));
      last_ps = std::max(last_ps, time_ps);
    }
    met_ps.push_back(last_ps);
  }
  JoinedGraph out;
  out.graph = std::move(job.ranks[rank].graph);
  PathGraph& graph = out.graph;
  std::vector<NodeId> departures;
  for (const Meeting& meeting : job.meetings) {
    for (const RankNode& node : meeting.departures) {
      if (node.rank == rank) departures.push_back(node.node);
    }
  }
  MeetingAdder adder(departures, &out);
  for (size_t i = 0; i < job.meetings.size(); ++i) {
    const Meeting& meeting = job.meetings[i];
    const auto is_own = [&](const RankNode& node) { return node.rank == rank; };
    const auto arrival = std::find_if(meeting.arrivals.begin(), meeting.arrivals.end(), is_own);
    const auto departure =
        std::find_if(meeting.departures.begin(), meeting.departures.end(), is_own);
    if (arrival == meeting.arrivals.end() || departure == meeting.departures.end()) continue;
    const int64_t waited_ps = met_ps[i] - graph.nodes[arrival->node].time_ps;
    if (waited_ps <= 0) continue;
    if (met_ps[i] > graph.nodes[departure->node].time_ps) {
      ++out.against_time;
      continue;
    }
    const GraphEventId event = graph.nodes[arrival->node].event;
    const NodeId place = adder.AddMeeting(met_ps[i], event);
    graph.edges.push_back(
        {arrival->node, place, waited_ps, event, EdgeType::kOperator, BoundBy::kOtherRanks});
    adder.AddDeparture(place, departure->node);
  }
  return out;
}

}  // namespace meridian
