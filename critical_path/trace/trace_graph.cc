#include "critical_path/trace/trace_graph.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/dependencies/thread_turns.h"
#include "xla_profiler/kineto/kineto_steps.h"

namespace meridian {
namespace {

// What the graph has to know of a name; it is found once for each.
struct NameTraits {
  bool loads_data = false;
  bool communicates = false;
};

// Time during which a thread was outside of all operators and calls, between two of its instants.
struct Gap {
  LaneId lane = 0;
  InstantId before = 0;
  InstantId after = 0;
};

class Builder {
 public:
  Builder(const RankEvents& events, const TraceWindow& window, const WindowRows& chosen,
          std::vector<bool> loads_data, const TraceGraphOptions& options)
      : in_(events),
        table_(*events.table),
        dependencies_(*events.dependencies),
        window_(window),
        chosen_(chosen),
        options_(options),
        event_of_row_(table_.size(), kNoEvent),
        track_index_(table_),
        turns_(table_, track_index_, FindWorkers(table_, dependencies_), window.thread),
        lane_of_track_(table_.tracks().size(), kNoLane),
        loads_data_(std::move(loads_data)),
        graph_names_(table_.names().size(), kNoName) {}

  PathGraph Build() {
    graph_.base_ns = table_.base_ns();
    graph_.window_start_ps = window_.start_ps;
    graph_.window_end_ps = chosen_.end_ps;
    AddEvents();
    AddInstants(&graph_);
    graph_.edges.reserve(3 * graph_.events.size());
    last_instants_.assign(graph_.lanes.size(), kNoInstant);
    AddDeviceEdges();
    AddHostEdges();
    for (const Gap& gap : gaps_) AddGap(gap);
    AddWindowEnd();
    return std::move(graph_);
  }

 private:
  static constexpr LaneId kNoLane = std::numeric_limits<LaneId>::max();
  static constexpr NameId kNoName = std::numeric_limits<NameId>::max();

  void AddEvents() {
    graph_.events.reserve(chosen_.rows.size());
    std::optional<KinetoSteps> steps;
    if (in_.steps.empty()) steps.emplace(table_);
    const KinetoSteps::Step* first =
        steps.has_value() ? steps->FirstAfter(window_.start_ps) : nullptr;
    if (first != nullptr && first->start_ps < graph_.window_end_ps) {
      const int64_t start_ps = std::max(first->start_ps, graph_.window_start_ps);
      graph_.marks.push_back({options_.rank, first->number, start_ps});
    }
    // By row: whether its call is in the profile. If that is in the window, it tells the step.
    std::vector<bool> has_launch(steps.has_value() ? table_.size() : 0);
    for (const DeviceDependency& edge : dependencies_.edges) {
      if (steps.has_value() && edge.kind == DeviceDependencyKind::kLaunch) {
        has_launch[edge.to] = true;
      }
    }
    for (EventRow row : chosen_.rows) {
      event_of_row_[row] = static_cast<GraphEventId>(graph_.events.size());
      GraphEvent event;
      event.name = FindName(table_.name_id(row));
      event.lane = FindLane(table_.track_id(row));
      event.start_ps = std::max(table_.start_ps(row), graph_.window_start_ps);
      event.duration_ps = std::min(table_.end_ps(row), graph_.window_end_ps) - event.start_ps;
      event.category = table_.category(row);
      event.position = in_.positions[row];
      if (!steps.has_value()) {
        event.step = in_.steps[row];
      } else if (!dependencies_.IsEarlier(row) && !has_launch[row] &&
                 table_.start_ps(row) >= window_.start_ps) {
        event.step = steps->At(table_.start_ps(row)).value_or(kNoStep);
      }
      graph_.events.push_back(event);
    }
    TakeEarlyStartsBack();
  }

  // Work that started a little before the work before it on its stream had ended waited for that
  // all the same: it starts when that ends.
  void TakeEarlyStartsBack() {
    for (TrackId track = 0; track < table_.tracks().size(); ++track) {
      if (table_.track(track).kind != TrackKind::kDevice) continue;
      std::optional<WorkSpan> before;
      for (const EventRow row : track_index_.Rows(track)) {
        if (event_of_row_[row] == kNoEvent) continue;
        GraphEvent& event = graph_.events[event_of_row_[row]];
        const WorkSpan span = {event.start_ps, event.start_ps + event.duration_ps};
        if (before.has_value() && StartsEarly(*before, span)) {
          event.start_ps = before->end_ps;
          event.duration_ps = span.end_ps - before->end_ps;
        }
        if (!before.has_value() || span.end_ps > before->end_ps) before = span;
      }
    }
  }

  // What the time of an event is spent on.
  BoundBy BoundByOf(GraphEventId event) const {
    if (!in_.bound_by.empty()) return in_.bound_by[chosen_.rows[event]];
    if (graph_.LaneOf(event).kind == TrackKind::kHost) return BoundBy::kCpu;
    return traits_[graph_.events[event].name].communicates ? BoundBy::kGpuCommunication
                                                           : BoundBy::kGpuCompute;
  }

  LaneId FindLane(TrackId track_id) {
    LaneId& lane = lane_of_track_[track_id];
    if (lane == kNoLane) {
      const Track& track = table_.track(track_id);
      lane = static_cast<LaneId>(graph_.lanes.size());
      track_of_lane_.push_back(track_id);
      graph_.lanes.push_back({options_.rank, track.kind, track.process, track.thread});
    }
    return lane;
  }

  NameId FindName(NameId table_name) {
    NameId& name = graph_names_[table_name];
    if (name == kNoName) {
      const absl::string_view text = table_.names().Get(table_name);
      name = graph_.names.Intern(text);
      traits_.push_back({loads_data_[table_name], IsCommunicationKernel(text)});
    }
    return name;
  }

  int64_t Time(InstantId instant) const { return graph_.Time(instant); }

  void AddDeviceEdges() {
    const std::vector<DeviceDependency>& all = dependencies_.edges;
    // The dependencies are in the order of the rows that they lead to.
    size_t next = 0;
    for (EventRow row = 0; row < table_.size(); ++row) {
      const size_t begin = next;
      while (next < all.size() && all[next].to == row) ++next;
      const GraphEventId event = event_of_row_[row];
      if (event == kNoEvent) continue;
      const auto causes = absl::MakeConstSpan(all).subspan(begin, next - begin);
      const GraphEvent& work = graph_.events[event];
      if (graph_.lanes[work.lane].kind == TrackKind::kHost) {
        if (!causes.empty()) waits_of_call_[event] = causes;
        continue;
      }
      AddWorkStart(event, causes);
      graph_.AddTimed(StartInstant(event), EndInstant(event), EdgeType::kOperator, BoundByOf(event),
                      event);
      InstantId& last = last_instants_[work.lane];
      if (last == kNoInstant || Time(EndInstant(event)) >= Time(last)) last = EndInstant(event);
    }
  }

  void AddWorkStart(GraphEventId work, absl::Span<const DeviceDependency> dependencies) {
    Causes causes;
    const int64_t start_ps = Time(StartInstant(work));
    const auto add = [&](InstantId instant, EdgeType type, BoundBy overhead,
                         InstantId could_start) {
      causes.push_back(
          {instant, type, StartDelayBoundBy(overhead, start_ps - Time(could_start)), work});
    };
    bool is_launched = !options_.hosts_are_hidden;
    for (const DeviceDependency& dependency : dependencies) {
      const bool launches = dependency.kind == DeviceDependencyKind::kLaunch;
      is_launched |= launches;
      const GraphEventId from = event_of_row_[dependency.from];
      if (from == kNoEvent) continue;
      if (launches && in_.steps.empty()) graph_.events[work].step = graph_.events[from].step;
      if (launches && graph_.events[from].category == EventCategory::kRuntimeApi) {
        add(StartInstant(from), EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead,
            EndInstant(from));
      } else if (Time(EndInstant(from)) > start_ps) {
        if (Time(StartInstant(from)) < start_ps) {
          causes.push_back({StartInstant(from), EdgeType::kOperator, BoundByOf(from), from});
        }
      } else if (launches) {
        add(EndInstant(from), EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead,
            EndInstant(from));
      } else if (dependency.kind == DeviceDependencyKind::kStreamOrder) {
        add(EndInstant(from), EdgeType::kKernelKernelDelay, BoundBy::kKernelKernelOverhead,
            EndInstant(from));
      } else if (Time(EndInstant(from)) < Time(EndInstant(work))) {
        // Waits within one moment could make a circle, and explain nothing.
        add(EndInstant(from), EdgeType::kSyncDependency, BoundBy::kKernelKernelOverhead,
            EndInstant(from));
      }
    }
    // Without a cause it was launched before the window, or nobody knows when. What was before the
    // profile is before its steps.
    if (causes.empty() && dependencies_.IsEarlier(chosen_.rows[work])) {
      causes.push_back({kWindowStart, EdgeType::kDependency, BoundBy::kBeforeStep, kNoEvent});
    } else if (causes.empty()) {
      add(kWindowStart, EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead, kWindowStart);
    }
    for (Cause& cause : causes) {
      if (is_launched || cause.type == EdgeType::kOperator) continue;
      cause.type = EdgeType::kDependency;
      cause.bound_by = BoundBy::kHostGap;
      cause.event = kNoEvent;
    }
    AddCauses(StartInstant(work), /*has_time=*/true, &causes, &graph_);
  }

  void AddHostEdges() {
    std::vector<GraphEventId> events;
    for (TrackId track = 0; track < table_.tracks().size(); ++track) {
      const LaneId lane = lane_of_track_[track];
      if (lane == kNoLane || graph_.lanes[lane].kind != TrackKind::kHost) continue;
      events.clear();
      for (EventRow row : track_index_.Rows(track)) {
        if (event_of_row_[row] != kNoEvent) events.push_back(event_of_row_[row]);
      }
      // Cutting at the window's start makes unequal starts equal.
      const auto nests_before = [&](GraphEventId a, GraphEventId b) {
        const GraphEvent &x = graph_.events[a], &y = graph_.events[b];
        return std::make_tuple(x.start_ps, -x.duration_ps) <
               std::make_tuple(y.start_ps, -y.duration_ps);
      };
      if (!std::is_sorted(events.begin(), events.end(), nests_before)) {
        std::stable_sort(events.begin(), events.end(), nests_before);
      }
      AddThread(lane, events);
    }
  }

  void AddThread(LaneId lane, absl::Span<const GraphEventId> events) {
    InstantId before = kWindowStart;
    int data_loads = 0;
    const auto visit = [&](const ThreadStep& step) {
      const InstantId instant = step.is_start ? StartInstant(step.event) : EndInstant(step.event);
      if (step.open == kNoEvent) {
        gaps_.push_back({lane, before, instant});
      } else if (!step.is_start && AddHostWaits(step.event, before)) {
        graph_.AddUntimed(before, instant, EdgeType::kOperator);
      } else {
        graph_.AddTimed(before, instant, EdgeType::kOperator,
                        data_loads > 0 ? BoundBy::kDataLoading : BoundByOf(step.open), step.open);
      }
      if (traits_[graph_.events[step.event].name].loads_data) data_loads += step.is_start ? 1 : -1;
      before = instant;
    };
    WalkThread(graph_.events, events, visit);
    last_instants_[lane] = before;
  }

  // Adds the edges into the end of a call that waits for device work, besides that from the instant
  // before on its thread. Returns true when the wait ended it.
  bool AddHostWaits(GraphEventId call, InstantId before) {
    const auto waits = waits_of_call_.find(call);
    if (waits == waits_of_call_.end()) return false;
    Causes causes;
    bool has_waited = false;
    for (const DeviceDependency& dependency : waits->second) {
      const GraphEventId work = event_of_row_[dependency.from];
      if (!IsHostWait(dependency.kind) || work == kNoEvent) continue;
      // Waits within one moment could make a circle, and explain nothing.
      if (Time(StartInstant(work)) >= Time(EndInstant(call))) continue;
      causes.push_back({EndInstant(work), EdgeType::kSyncDependency, BoundBy::kCpu, call});
      has_waited = has_waited || Time(EndInstant(work)) > Time(before);
    }
    AddCauses(EndInstant(call), has_waited, &causes, &graph_);
    return has_waited;
  }

  // Returns the last that the call after the gap is known to have waited for in it, or kNoInstant.
  InstantId FindNamedIn(const Gap& gap) const {
    const Instant& after = graph_.instants[gap.after];
    if (!after.is_start) return kNoInstant;
    const auto waits = waits_of_call_.find(after.event);
    if (waits == waits_of_call_.end()) return kNoInstant;
    InstantId last = kNoInstant;
    for (const DeviceDependency& dependency : waits->second) {
      const GraphEventId from = event_of_row_[dependency.from];
      if (dependency.kind != DeviceDependencyKind::kCallStart || from == kNoEvent) continue;
      const InstantId end = EndInstant(from);
      if (Time(end) <= Time(gap.before) || Time(end) > Time(gap.after)) continue;
      // Waits within one moment could make a circle, and explain nothing.
      if (Time(StartInstant(from)) >= Time(gap.after)) continue;
      if (last == kNoInstant || Time(end) > Time(last)) last = end;
    }
    return last;
  }

  // Returns what the thread waited for in the gap, or kNoInstant.
  InstantId FindAwaited(const Gap& gap) const {
    if (graph_.lanes[gap.lane].kind != TrackKind::kHost) return kNoInstant;
    const InstantId named = FindNamedIn(gap);
    if (named != kNoInstant) return named;
    const std::optional<ThreadTurns::Moment> turn =
        turns_.Find(track_of_lane_[gap.lane], Time(gap.before), Time(gap.after));
    const GraphEventId event = turn.has_value() ? event_of_row_[turn->row] : kNoEvent;
    if (event == kNoEvent) return kNoInstant;
    return turn->is_start ? StartInstant(event) : EndInstant(event);
  }

  // Adds the edges of a gap, and returns what was awaited in it (FindAwaited).
  InstantId AddGap(const Gap& gap) {
    const InstantId awaited = FindAwaited(gap);
    if (awaited == kNoInstant) {
      graph_.AddTimed(gap.before, gap.after, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent);
    } else {
      graph_.AddUntimed(gap.before, gap.after, EdgeType::kDependency);
      graph_.AddTimed(awaited, gap.after, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent);
    }
    return awaited;
  }

  // Returns the last instant of all lanes of that kind, or kNoInstant.
  InstantId LatestInstant(TrackKind kind) const {
    InstantId latest = kNoInstant;
    for (LaneId lane = 0; lane < last_instants_.size(); ++lane) {
      if (graph_.lanes[lane].kind != kind) continue;
      const InstantId last = last_instants_[lane];
      if (latest == kNoInstant || Time(last) > Time(latest)) latest = last;
    }
    return latest;
  }

  // Returns the last instant before the window's end, which leads to it.
  InstantId LastInstant() const {
    // The work that the window launched outlasts it, or the track that ends it has the last word.
    if (graph_.window_end_ps > window_.end_ps) return LatestInstant(TrackKind::kDevice);
    const LaneId lane = lane_of_track_[window_.end_track];
    if (lane != kNoLane) return last_instants_[lane];
    const InstantId on_host = LatestInstant(TrackKind::kHost);
    return on_host != kNoInstant ? on_host : LatestInstant(TrackKind::kDevice);
  }

  void AddWindowEnd() {
    const InstantId end = *graph_.end_instant, last = LastInstant();
    InstantId awaited = kNoInstant;
    if (Time(last) == Time(end)) {
      graph_.AddUntimed(last, end, EdgeType::kDependency);
    } else {
      // The annotation ends after all that the thread did: the time until then is a gap.
      awaited = AddGap({graph_.events[graph_.instants[last].event].lane, last, end});
    }
    for (InstantId instant : last_instants_) {
      if (instant == last || instant == awaited) continue;
      graph_.AddUntimed(instant, end, EdgeType::kDependency);
    }
  }

  const RankEvents& in_;
  const EventTable& table_;
  const DeviceDependencies& dependencies_;
  const TraceWindow& window_;
  const WindowRows& chosen_;
  const TraceGraphOptions& options_;
  PathGraph graph_;

  // By the table's rows: the event of the graph, or kNoEvent for a row outside of the window.
  std::vector<GraphEventId> event_of_row_;
  const TrackIndex track_index_;
  const ThreadTurns turns_;
  // By the table's tracks: its lane of the graph or kNoLane; and by lane its track.
  std::vector<LaneId> lane_of_track_;
  std::vector<TrackId> track_of_lane_;
  // By the table's names: whether events so called load data, and the graph's name or kNoName.
  const std::vector<bool> loads_data_;
  std::vector<NameId> graph_names_;
  // What is known of each of the graph's names.
  std::vector<NameTraits> traits_;
  // By lane: its last instant, or kNoInstant.
  std::vector<InstantId> last_instants_;
  // By the host's calls that wait: what for, a range of the dependencies.
  absl::flat_hash_map<GraphEventId, absl::Span<const DeviceDependency>> waits_of_call_;
  // The gaps of all threads of the host.
  std::vector<Gap> gaps_;
};

}  // namespace

std::vector<bool> FindDataLoaders(const EventTable& table, const TraceGraphOptions& options) {
  std::vector<bool> loads_data(table.names().size());
  for (NameId name = 0; name < loads_data.size(); ++name) {
    for (const std::string& part : options.data_load_events) {
      if (absl::StrContains(table.names().Get(name), part)) loads_data[name] = true;
    }
  }
  return loads_data;
}

PathGraph BuildTraceGraph(const RankEvents& events, const TraceWindow& window,
                          const WindowRows& chosen, const TraceGraphOptions& options) {
  return Builder(events, window, chosen, FindDataLoaders(*events.table, options), options).Build();
}

absl::StatusOr<PathGraph> BuildTraceGraph(const RankEvents& events, const TraceWindow& window,
                                          const TraceGraphOptions& options) {
  std::vector<bool> loads_data = FindDataLoaders(*events.table, options);
  ASSIGN_OR_RETURN(const WindowRows chosen,
                   ChooseWindowRows(*events.table, *events.dependencies, window, loads_data));
  return Builder(events, window, chosen, std::move(loads_data), options).Build();
}

}  // namespace meridian
