#include "critical_path/timeline_overlay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/trace_export/nesting_lanes.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

constexpr char kArrowName[] = "critical_path";

// Viewers hide process 0. A trace may call itself any rank: the greatest wraps around.
int64_t Pid(const Lane& lane) { return static_cast<int64_t>(static_cast<uint64_t>(lane.rank) + 1); }

class TimelineOverlayWriter {
 public:
  TimelineOverlayWriter(const PathGraph& graph, const CriticalPath& path,
                        const OverlayOptions& options, ByteSink* sink)
      : graph_(graph), path_(path), options_(options), writer_(sink, graph.base_ns) {}

  absl::StatusOr<OverlayStats> Write() {
    FindCritical();
    PlaceEvents();
    RETURN_IF_ERROR(WriteNames());
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      RETURN_IF_ERROR(WriteEvent(event));
    }
    for (const EdgeId edge : ChooseArrows(graph_, path_, options_.all_edges)) {
      RETURN_IF_ERROR(WriteArrow(edge));
    }
    RETURN_IF_ERROR(writer_.Finish());
    return stats_;
  }

 private:
  void FindCritical() {
    is_critical_.resize(graph_.events.size());
    is_critical_edge_.resize(graph_.edges.size());
    for (const NodeId node : PathNodes(graph_, path_)) {
      const GraphEventId event = graph_.nodes[node].event;
      if (event != kNoEvent) is_critical_[event] = true;
    }
    for (const EdgeId edge : path_.edges) is_critical_edge_[edge] = true;
  }

  absl::Status WriteNames() {
    std::set<int64_t> named;
    for (LaneId id = 0; id < graph_.lanes.size(); ++id) {
      const Lane& lane = graph_.lanes[id];
      if (named.insert(lane.rank).second) {
        RETURN_IF_ERROR(writer_.WriteProcessName(Pid(lane), absl::StrCat("rank ", lane.rank)));
        RETURN_IF_ERROR(writer_.WriteProcessSortIndex(Pid(lane), lane.rank));
      }
      RETURN_IF_ERROR(writer_.WriteThreadName(Pid(lane), int64_t{id} + 1, ThreadName(lane)));
    }
    for (const auto& [lane, tid] : extra_tids_) {
      RETURN_IF_ERROR(writer_.WriteThreadName(
          Pid(graph_.lanes[lane.first]), tid,
          absl::StrCat(ThreadName(graph_.lanes[lane.first]), " (", lane.second + 1, ")")));
    }
    return absl::OkStatus();
  }

  bool IsShown(GraphEventId event) const {
    return !options_.only_critical || options_.all_edges || is_critical_[event];
  }

  // Viewers drop events of a thread that overlap without nesting: those get threads of their own.
  void PlaceEvents() {
    std::vector<std::vector<GraphEventId>> events_of(graph_.lanes.size());
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      if (IsShown(event)) events_of[graph_.events[event].lane].push_back(event);
    }
    tids_.resize(graph_.events.size());
    for (LaneId lane = 0; lane < events_of.size(); ++lane) {
      std::vector<GraphEventId>& events = events_of[lane];
      std::stable_sort(events.begin(), events.end(), [this](GraphEventId a, GraphEventId b) {
        return graph_.events[a].start_ps != graph_.events[b].start_ps
                   ? graph_.events[a].start_ps < graph_.events[b].start_ps
                   : graph_.events[a].duration_ps > graph_.events[b].duration_ps;
      });
      NestingLanes lanes;
      std::vector<NestingLanes::End> ends;
      for (const GraphEventId id : events) {
        const GraphEvent& event = graph_.events[id];
        ends.clear();
        tids_[id] = Tid(lane, lanes.Place(event.start_ps, event.start_ps + event.duration_ps, &ends)
                                  .value_or(NestingLanes::kMaxLanes));
      }
    }
  }

  // The thread of the `part`-th lane of a lane.
  int64_t Tid(LaneId lane, size_t part) {
    if (part == 0) return int64_t{lane} + 1;
    const auto next = static_cast<int64_t>(graph_.lanes.size() + extra_tids_.size() + 1);
    return extra_tids_.emplace(std::make_pair(lane, part), next).first->second;
  }

  static std::string ThreadName(const Lane& lane) {
    // Of profiles the thread says it all; Kineto has numbers.
    if (lane.process == absl::StrCat("rank ", lane.rank)) return lane.thread;
    return absl::StrCat(lane.kind == TrackKind::kDevice ? "device " : "process ", lane.process,
                        lane.kind == TrackKind::kDevice ? " stream " : " thread ", lane.thread);
  }

  absl::Status WriteEvent(GraphEventId id) {
    if (!IsShown(id)) return absl::OkStatus();
    const GraphEvent& event = graph_.events[id];
    args_.Clear();
    if (is_critical_[id]) args_.AddInt64("critical", 1);
    args_.AddUint64("event", event.position);
    TraceJsonFields fields;
    fields.pid = Pid(graph_.lanes[event.lane]);
    fields.tid = tids_[id];
    fields.name = graph_.EventName(id);
    fields.category = EventCategoryName(event.category);
    fields.ts_ps = event.start_ps;
    fields.args = &args_;
    ++stats_.events;
    if (is_critical_[id]) ++stats_.critical_events;
    return writer_.WriteComplete(fields, event.duration_ps);
  }

  absl::Status WriteArrow(EdgeId id) {
    const GraphEdge& edge = graph_.edges[id];
    args_.Clear();
    std::string weight;
    AppendPicosAsMicros(edge.weight_ps, &weight);
    args_.AddJson("weight", weight);
    args_.AddJson("critical", is_critical_edge_[id] ? "true" : "false");
    args_.AddString("type", absl::StrCat("critical_path_", EdgeTypeName(edge.type)));
    ++stats_.arrows;
    const auto number = static_cast<uint64_t>(stats_.arrows);
    RETURN_IF_ERROR(writer_.WriteFlow(FieldsAt(edge.from), FlowPhase::kStart, number));
    return writer_.WriteFlow(FieldsAt(edge.to), FlowPhase::kEnd, number);
  }

  TraceJsonFields FieldsAt(NodeId id) const {
    const GraphNode& node = graph_.nodes[id];
    const GraphEvent& event = graph_.events[node.event];
    TraceJsonFields fields;
    fields.pid = Pid(graph_.lanes[event.lane]);
    fields.tid = tids_[node.event];
    fields.name = kArrowName;
    fields.category = kArrowName;
    // At its time, which may be within the event, but before the event's end, or viewers would tie
    // the arrow to what comes next.
    const int64_t last_ps = event.start_ps + std::max<int64_t>(0, event.duration_ps - kPsPerNs);
    fields.ts_ps = std::clamp(node.time_ps, event.start_ps, last_ps);
    fields.args = &args_;
    return fields;
  }

  const PathGraph& graph_;
  const CriticalPath& path_;
  const OverlayOptions& options_;
  TraceJsonWriter writer_;
  TraceJsonArgs args_;
  std::vector<bool> is_critical_;
  std::vector<bool> is_critical_edge_;
  // By event.
  std::vector<int64_t> tids_;
  // Of parts of lanes beyond the first.
  std::map<std::pair<LaneId, size_t>, int64_t> extra_tids_;
  OverlayStats stats_;
};

}  // namespace

absl::StatusOr<OverlayStats> WriteTimelineOverlay(const PathGraph& graph, const CriticalPath& path,
                                                  const OverlayOptions& options, ByteSink* sink) {
  return TimelineOverlayWriter(graph, path, options, sink).Write();
}

}  // namespace meridian
