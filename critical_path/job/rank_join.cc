#include "critical_path/job/rank_join.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Returns a time of a graph as it counts from another base.
absl::StatusOr<int64_t> Rebased(int64_t time_ps, int64_t from_base_ns, int64_t to_base_ns) {
  int64_t shift_ns = 0, shift_ps = 0, sum_ps = 0;
  if (__builtin_sub_overflow(from_base_ns, to_base_ns, &shift_ns) ||
      __builtin_mul_overflow(shift_ns, kPsPerNs, &shift_ps) ||
      __builtin_add_overflow(time_ps, shift_ps, &sum_ps)) {
    return absl::OutOfRangeError("the traces of the ranks lie over 106 days apart");
  }
  return sum_ps;
}

// Adds meetings to a graph, and lets the ends of events wait for them.
class MeetingAdder {
 public:
  // `departures` are those of all meetings that will be added.
  MeetingAdder(const std::vector<InstantId>& departures, JoinedGraph* out)
      : out_(*out), graph_(out->graph) {
    for (const InstantId instant : departures) cause_[instant] = kNoEdge;
    for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
      const auto it = cause_.find(graph_.edges[id].to);
      if (it == cause_.end()) continue;
      if (it->second == kNoEdge ||
          graph_.edges[id].weight_ps > graph_.edges[it->second].weight_ps) {
        it->second = id;
      }
    }
  }

  InstantId AddMeeting(int64_t time_ps, GraphEventId last_event) {
    graph_.instants.push_back({time_ps, last_event, /*is_start=*/true});
    return static_cast<InstantId>(graph_.instants.size() - 1);
  }

  // What the end had waited for until now stays the reason for its time if it came after the
  // meeting.
  void AddDeparture(InstantId meeting, InstantId departure) {
    const int64_t met_ps = graph_.instants[meeting].time_ps;
    const int64_t end_ps = graph_.instants[departure].time_ps;
    if (met_ps > end_ps) {
      ++out_.against_time;
      return;
    }
    EdgeId& cause = cause_[departure];
    const bool is_other_rank = graph_.instants[meeting].event != graph_.instants[departure].event;
    GraphEdge edge{meeting, departure, 0, kNoEvent, EdgeType::kOperator, BoundBy::kNothing};
    if (is_other_rank) edge.type = EdgeType::kSyncDependency;
    if (cause < graph_.edges.size()) {
      GraphEdge& before = graph_.edges[cause];
      if (graph_.instants[before.from].time_ps <= met_ps) {
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
  // By departure: the edge that stands for the time before it, or kNoEdge.
  absl::flat_hash_map<InstantId, EdgeId> cause_;
};

class Joiner {
 public:
  explicit Joiner(JobGraph job) : job_(std::move(job)) {}

  absl::StatusOr<JoinedGraph> Join() {
    RETURN_IF_ERROR(MakeRoom());
    graph_.base_ns = job_.ranks[0].graph.base_ns;
    for (const RankGraph& rank : job_.ranks) {
      graph_.base_ns = std::min(graph_.base_ns, rank.graph.base_ns);
    }
    // The window's start; its time is known when all ranks are.
    graph_.instants.push_back({0, kNoEvent, /*is_start=*/true});
    for (RankGraph& rank : job_.ranks) RETURN_IF_ERROR(Append(&rank.graph));
    AddWindow();
    AddMeetings();
    return std::move(out_);
  }

 private:
  absl::Status MakeRoom() {
    size_t instants = 1, edges = 0, events = 0;
    for (const RankGraph& rank : job_.ranks) {
      events += rank.graph.events.size() + 1;
      instants += rank.graph.instants.size();
      edges += rank.graph.edges.size() + 2;
    }
    for (const Meeting& meeting : job_.meetings) {
      ++instants;
      edges += meeting.arrivals.size() + meeting.departures.size();
    }
    if (instants >= kNoInstant || edges >= std::numeric_limits<EdgeId>::max()) {
      return absl::OutOfRangeError(
          "the ranks have over 4,000,000,000 nodes or edges; choose a shorter window");
    }
    graph_.instants.reserve(instants);
    graph_.edges.reserve(edges);
    graph_.events.reserve(events);
    return absl::OkStatus();
  }

  // Takes over what the rank's graph holds, and empties it: it may be large.
  absl::Status Append(PathGraph* rank) {
    const auto first_lane = static_cast<LaneId>(graph_.lanes.size());
    const auto first_event = static_cast<GraphEventId>(graph_.events.size());
    const auto first_instant = static_cast<InstantId>(graph_.instants.size());
    const auto event_id = [&](GraphEventId id) { return id == kNoEvent ? id : first_event + id; };
    first_instants_.push_back(first_instant);
    first_lanes_.push_back(first_lane);
    for (Lane& lane : rank->lanes) graph_.lanes.push_back(std::move(lane));
    std::vector<NameId> names(rank->names.size());
    for (NameId id = 0; id < names.size(); ++id) {
      names[id] = graph_.names.Intern(rank->names.Get(id));
    }
    for (GraphEvent event : rank->events) {
      event.name = names[event.name];
      event.lane += first_lane;
      ASSIGN_OR_RETURN(event.start_ps, Rebased(event.start_ps, rank->base_ns, graph_.base_ns));
      graph_.events.push_back(event);
    }
    for (Instant instant : rank->instants) {
      ASSIGN_OR_RETURN(instant.time_ps, Rebased(instant.time_ps, rank->base_ns, graph_.base_ns));
      instant.event = event_id(instant.event);
      graph_.instants.push_back(instant);
    }
    for (GraphEdge edge : rank->edges) {
      edge.from += first_instant;
      edge.to += first_instant;
      edge.event = event_id(edge.event);
      graph_.edges.push_back(edge);
    }
    for (const auto& [work, needed] : rank->needs) {
      graph_.needs.emplace_back(first_event + work, first_event + needed);
    }
    for (StepMark mark : rank->marks) {
      ASSIGN_OR_RETURN(mark.start_ps, Rebased(mark.start_ps, rank->base_ns, graph_.base_ns));
      graph_.marks.push_back(mark);
    }
    end_instants_.push_back(first_instant + *rank->end_instant);
    *rank = PathGraph();
    return absl::OkStatus();
  }

  int64_t Time(InstantId instant) const { return graph_.instants[instant].time_ps; }

  void AddWindow() {
    const auto earlier = [&](InstantId a, InstantId b) { return Time(a) < Time(b); };
    const InstantId first = *absl::c_min_element(first_instants_, earlier);
    const InstantId last = *absl::c_max_element(end_instants_, earlier);
    graph_.instants[0].time_ps = graph_.window_start_ps = Time(first);
    graph_.window_end_ps = Time(last);
    graph_.end_instant = last;
    for (size_t rank = 0; rank < first_instants_.size(); ++rank) {
      const InstantId start = first_instants_[rank];
      const int64_t late_ps = Time(start) - graph_.window_start_ps;
      const bool is_its_own = job_.windows_are_chosen && late_ps > 0;
      graph_.edges.push_back({0, start, late_ps, is_its_own ? AddLateness(rank, late_ps) : kNoEvent,
                              EdgeType::kDependency,
                              is_its_own ? BoundBy::kBeforeStep : BoundBy::kHostGap});
    }
    for (const InstantId end : end_instants_) {
      if (end == last) continue;
      graph_.AddUntimed(end, last, EdgeType::kDependency);
    }
  }

  GraphEventId AddLateness(size_t rank, int64_t late_ps) {
    GraphEvent event;
    event.name = graph_.names.Intern(BoundByName(BoundBy::kBeforeStep));
    event.lane = first_lanes_[rank];
    event.start_ps = graph_.window_start_ps;
    event.duration_ps = late_ps;
    graph_.events.push_back(event);
    return static_cast<GraphEventId>(graph_.events.size() - 1);
  }

  InstantId Joined(const RankInstant& instant) const {
    return first_instants_[instant.rank] + instant.instant;
  }

  void AddMeetings() {
    std::vector<InstantId> departures;
    for (const Meeting& meeting : job_.meetings) {
      for (const RankInstant& instant : meeting.departures) departures.push_back(Joined(instant));
    }
    MeetingAdder adder(departures, &out_);
    for (const Meeting& meeting : job_.meetings) {
      if (meeting.arrivals.empty()) continue;
      InstantId last = Joined(meeting.arrivals[0]);
      for (const RankInstant& instant : meeting.arrivals) {
        if (Time(Joined(instant)) > Time(last)) last = Joined(instant);
      }
      const InstantId place = adder.AddMeeting(Time(last), graph_.instants[last].event);
      for (const RankInstant& instant : meeting.arrivals) {
        graph_.AddUntimed(Joined(instant), place, EdgeType::kSyncDependency);
      }
      for (const RankInstant& instant : meeting.departures)
        adder.AddDeparture(place, Joined(instant));
      graph_.meetings.push_back(
          {place, graph_.names.Intern(meeting.name), meeting.step, meeting.transfer});
    }
  }

  JobGraph job_;
  JoinedGraph out_;
  PathGraph& graph_ = out_.graph;
  // By position of the rank: its window's start in the joined graph, which is its first instant,
  // its window's end, and its first lane.
  std::vector<InstantId> first_instants_;
  std::vector<InstantId> end_instants_;
  std::vector<LaneId> first_lanes_;
};

}  // namespace

absl::StatusOr<JoinedGraph> JoinRanks(JobGraph job) { return Joiner(std::move(job)).Join(); }

absl::StatusOr<JoinedGraph> ShowWaits(JobGraph job, size_t rank) {
  // When each meeting was complete, on the rank's own time.
  std::vector<int64_t> met_ps;
  for (const Meeting& meeting : job.meetings) {
    int64_t last_ps = std::numeric_limits<int64_t>::min();
    for (const RankInstant& instant : meeting.arrivals) {
      const PathGraph& graph = job.ranks[instant.rank].graph;
      ASSIGN_OR_RETURN(const int64_t time_ps, Rebased(graph.Time(instant.instant), graph.base_ns,
                                                      job.ranks[rank].graph.base_ns));
      last_ps = std::max(last_ps, time_ps);
    }
    met_ps.push_back(last_ps);
  }
  JoinedGraph out;
  out.graph = std::move(job.ranks[rank].graph);
  PathGraph& graph = out.graph;
  std::vector<InstantId> departures;
  for (const Meeting& meeting : job.meetings) {
    for (const RankInstant& instant : meeting.departures) {
      if (instant.rank == rank) departures.push_back(instant.instant);
    }
  }
  MeetingAdder adder(departures, &out);
  for (size_t i = 0; i < job.meetings.size(); ++i) {
    const Meeting& meeting = job.meetings[i];
    const auto is_own = [&](const RankInstant& instant) { return instant.rank == rank; };
    const auto arrival = absl::c_find_if(meeting.arrivals, is_own);
    const auto departure = absl::c_find_if(meeting.departures, is_own);
    if (arrival == meeting.arrivals.end() || departure == meeting.departures.end()) continue;
    const int64_t waited_ps = met_ps[i] - graph.instants[arrival->instant].time_ps;
    if (waited_ps <= 0) continue;
    if (met_ps[i] > graph.instants[departure->instant].time_ps) {
      ++out.against_time;
      continue;
    }
    const GraphEventId event = graph.instants[arrival->instant].event;
    const InstantId place = adder.AddMeeting(met_ps[i], event);
    graph.edges.push_back(
        {arrival->instant, place, waited_ps, event, EdgeType::kOperator, BoundBy::kOtherRanks});
    adder.AddDeparture(place, departure->instant);
  }
  return out;
}

}  // namespace meridian
