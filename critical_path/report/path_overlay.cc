#include "critical_path/report/path_overlay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/trace_export/nesting_lanes.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;
constexpr uint64_t kNoOffset = std::numeric_limits<uint64_t>::max();

// The fields of an event that matter here, as written.
struct EventText {
  JsonValue ph, name, cat, id, pid, tid, ts, dur, args;
};

EventText ReadEvent(absl::string_view element) {
  EventText event;
  JsonCutter cutter(element);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const JsonValue value(cutter.CutValue());
    if (key == "ph") event.ph = value;
    if (key == "name") event.name = value;
    if (key == "cat") event.cat = value;
    if (key == "id") event.id = value;
    if (key == "pid") event.pid = value;
    if (key == "tid") event.tid = value;
    if (key == "ts") event.ts = value;
    if (key == "dur") event.dur = value;
    if (key == "args") event.args = value;
  }
  return event;
}

// Reads a number of microseconds, which some writers put in quotes.
std::optional<absl::int128> ReadMicros(const JsonValue& value) {
  absl::string_view text = value.text();
  if (absl::ConsumePrefix(&text, "\"")) absl::ConsumeSuffix(&text, "\"");
  return ParseMicrosAsPicos(text);
}

bool IsOneOf(absl::string_view text, absl::string_view a, absl::string_view b) {
  return text == a || text == b;
}

// Returns the event with `critical` among its arguments.
std::string MarkCritical(absl::string_view element, const EventText& event) {
  const absl::string_view args = event.args.text();
  // Where the closing brace of the arguments stands, or of the event that has none.
  const bool has_args = !args.empty() && args.front() == '{';
  const absl::string_view object = has_args ? args : element;
  const size_t brace = object.data() + object.size() - 1 - element.data();
  absl::string_view before = absl::StripTrailingAsciiWhitespace(element.substr(0, brace));
  const bool is_empty = before.back() == '{';
  return absl::StrCat(before, is_empty ? "" : ", ",
                      has_args ? "\"critical\": 1" : "\"args\": {\"critical\": 1}",
                      element.substr(brace));
}

bool IsDrawnByDefault(EdgeType type) {
  return type == EdgeType::kDependency || type == EdgeType::kKernelLaunchDelay ||
         type == EdgeType::kSyncDependency;
}

// Returns the edges that are drawn as arrows: those of the path that are dependencies, launches or
// waits, or all of the graph; not those from or to the window's ends.
std::vector<EdgeId> ChooseArrows(const PathGraph& graph, const CriticalPath& path, bool all_edges) {
  const auto can_draw = [&](const GraphEdge& edge) {
    return graph.instants[edge.from].event != kNoEvent && graph.instants[edge.to].event != kNoEvent;
  };
  std::vector<EdgeId> arrows;
  if (all_edges) {
    for (EdgeId id = 0; id < graph.edges.size(); ++id) {
      const GraphEdge& edge = graph.edges[id];
      const bool is_launch_without_time =
          edge.type == EdgeType::kKernelLaunchDelay && edge.weight_ps == 0;
      if (can_draw(edge) && !is_launch_without_time) arrows.push_back(id);
    }
  } else {
    for (EdgeId id : path.edges) {
      const GraphEdge& edge = graph.edges[id];
      if (can_draw(edge) && IsDrawnByDefault(edge.type)) arrows.push_back(id);
    }
  }
  return arrows;
}

// Writes the trace as it stands, with marks and arrows.
class OverlayWriter {
 public:
  OverlayWriter(absl::string_view text, const PathGraph& graph, const CriticalPath& path,
                const OverlayOptions& options, ByteSink* sink)
      : text_(text), graph_(graph), options_(options), sink_(sink) {
    FindCritical(path);
    arrows_ = ChooseArrows(graph, path, options.all_edges);
    FindArrowEnds();
  }

  absl::StatusOr<OverlayStats> Write() {
    is_bare_array_ = JsonCutter(text_).Peek() == '[';
    buffer_ = is_bare_array_ ? "[\n" : "{\n";
    if (is_bare_array_) place_ = Place::kInEvents;
    RETURN_IF_ERROR(CutTrace(
        text_, [this](absl::string_view element) { return TakeEvent(element); },
        [this](absl::string_view key, absl::string_view value) { return TakeMember(key, value); }));
    RETURN_IF_ERROR(CloseEvents());
    buffer_ += is_bare_array_ ? "\n" : "\n}\n";
    RETURN_IF_ERROR(Flush());
    return stats_;
  }

 private:
  void FindCritical(const CriticalPath& path) {
    uint32_t last = 0;
    for (const GraphEvent& event : graph_.events) last = std::max(last, event.position);
    is_critical_position_.resize(size_t{last} + 1);
    is_critical_edge_.resize(graph_.edges.size());
    for (InstantId instant : PathInstants(graph_, path)) {
      const GraphEventId event = graph_.instants[instant].event;
      if (event != kNoEvent) is_critical_position_[graph_.events[event].position] = true;
    }
    for (EdgeId id : path.edges) is_critical_edge_[id] = true;
  }

  void FindArrowEnds() {
    offset_of_event_.assign(graph_.events.size(), kNoOffset);
    event_of_position_.assign(is_critical_position_.size(), kNoEvent);
    for (EdgeId id : arrows_) {
      for (InstantId instant : {graph_.edges[id].from, graph_.edges[id].to}) {
        const GraphEventId event = graph_.instants[instant].event;
        event_of_position_[graph_.events[event].position] = event;
      }
    }
  }

  absl::Status TakeEvent(absl::string_view element) {
    if (place_ == Place::kBefore) {
      BeginItem();
      buffer_ += "\"traceEvents\": [\n";
      place_ = Place::kInEvents;
      has_items_ = false;
    }
    const uint64_t position = next_position_++;
    const EventText event = ReadEvent(element);
    // Our arrows get ids behind the largest that the trace has.
    if (const std::optional<uint64_t> id = event.id.AsUint64()) {
      constexpr uint64_t kMaxId = std::numeric_limits<int64_t>::max() / 2;
      if (*id < kMaxId) next_arrow_id_ = std::max(next_arrow_id_, *id + 1);
    }
    const bool is_known = position < is_critical_position_.size();
    const bool is_critical = is_known && is_critical_position_[position];
    if (is_known && event_of_position_[position] != kNoEvent) {
      offset_of_event_[event_of_position_[position]] = element.data() - text_.data();
    }
    const bool is_kept = is_critical || !options_.only_critical || options_.all_edges ||
                         event.ph.text() != "\"X\"" ||
                         IsOneOf(event.cat.text(), "\"user_annotation\"", "\"python_function\"");
    // An empty element, as in [1,,2], is no event and would make the file unreadable.
    if (!is_kept || element.empty()) return absl::OkStatus();
    ++stats_.events;
    BeginItem();
    if (is_critical && element.front() == '{') {
      ++stats_.critical_events;
      buffer_ += MarkCritical(element, event);
    } else {
      absl::StrAppend(&buffer_, element);
    }
    return FlushIfLarge();
  }

  absl::Status TakeMember(absl::string_view key, absl::string_view value) {
    if (place_ == Place::kInEvents) RETURN_IF_ERROR(CloseEvents());
    BeginItem();
    absl::StrAppend(&buffer_, "\"", key, "\": ", value);
    return FlushIfLarge();
  }

  void BeginItem() {
    if (has_items_) buffer_ += ",\n";
    has_items_ = true;
  }

  absl::Status CloseEvents() {
    if (place_ == Place::kBehind) return absl::OkStatus();
    if (place_ == Place::kBefore) {
      BeginItem();
      buffer_ += "\"traceEvents\": [\n";
      has_items_ = false;
    }
    for (EdgeId id : arrows_) RETURN_IF_ERROR(WriteArrow(id));
    buffer_ += "\n]";
    place_ = Place::kBehind;
    has_items_ = true;
    return FlushIfLarge();
  }

  absl::Status WriteArrow(EdgeId id) {
    const GraphEdge& edge = graph_.edges[id];
    RETURN_IF_ERROR(WriteArrowEnd(edge, edge.from, /*is_first=*/true, is_critical_edge_[id]));
    RETURN_IF_ERROR(WriteArrowEnd(edge, edge.to, /*is_first=*/false, is_critical_edge_[id]));
    ++next_arrow_id_;
    ++stats_.arrows;
    return FlushIfLarge();
  }

  absl::Status WriteArrowEnd(const GraphEdge& edge, InstantId instant, bool is_first,
                             bool is_critical) {
    const GraphEventId id = graph_.instants[instant].event;
    const GraphEvent& graph_event = graph_.events[id];
    const bool is_there = offset_of_event_[id] != kNoOffset;
    const EventText event =
        is_there ? ReadEvent(JsonCutter(text_, offset_of_event_[id]).CutValue()) : EventText();
    std::optional<absl::int128> time_ps = ReadMicros(event.ts);
    if (!time_ps.has_value() || event.name.AsString().value_or("") != graph_.EventName(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the trace has no event ", graph_event.position, " named '",
                       graph_.EventName(id), "'; is this the trace that the graph is of?"));
    }
    if (!graph_.instants[instant].is_start) {
      // Within the event, or viewers would tie the arrow to what comes next.
      const absl::int128 duration_ps = ReadMicros(event.dur).value_or(graph_event.duration_ps);
      if (duration_ps >= kPsPerNs) *time_ps += duration_ps - kPsPerNs;
    }
    BeginItem();
    absl::StrAppend(&buffer_, "{\"ph\": \"", is_first ? "s" : "f", "\", \"id\": ", next_arrow_id_);
    if (event.pid.exists()) absl::StrAppend(&buffer_, ", \"pid\": ", event.pid.text());
    if (event.tid.exists()) absl::StrAppend(&buffer_, ", \"tid\": ", event.tid.text());
    buffer_ += ", \"ts\": ";
    AppendPicosAsMicros(*time_ps, &buffer_);
    buffer_ += ", \"cat\": \"critical_path\", \"name\": \"critical_path\", \"args\": {\"weight\": ";
    AppendPicosAsMicros(edge.weight_ps, &buffer_);
    absl::StrAppend(&buffer_, ", \"critical\": ", is_critical ? "true" : "false",
                    ", \"type\": \"critical_path_", EdgeTypeName(edge.type), "\"}",
                    is_first ? "" : ", \"bp\": \"e\"", "}");
    return absl::OkStatus();
  }

  absl::Status FlushIfLarge() { return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush(); }

  absl::Status Flush() {
    RETURN_IF_ERROR(sink_->Append(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  const absl::string_view text_;
  const PathGraph& graph_;
  const OverlayOptions& options_;
  ByteSink* sink_;
  OverlayStats stats_;

  // By an event's place in the file: whether the event is on the path.
  std::vector<bool> is_critical_position_;
  // By edge: whether it is on the path.
  std::vector<bool> is_critical_edge_;
  std::vector<EdgeId> arrows_;
  // By an event's place in the file: the graph's event, if an arrow leads from or to it; else
  // kNoEvent.
  std::vector<GraphEventId> event_of_position_;
  // By event of the graph: where its text begins, once it was seen; else kNoOffset.
  std::vector<uint64_t> offset_of_event_;

  enum class Place { kBefore, kInEvents, kBehind };
  Place place_ = Place::kBefore;
  bool is_bare_array_ = false;
  bool has_items_ = false;
  uint64_t next_position_ = 0;
  uint64_t next_arrow_id_ = 0;
  std::string buffer_;
};

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
    for (const InstantId instant : PathInstants(graph_, path_)) {
      const GraphEventId event = graph_.instants[instant].event;
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

  // Returns the thread of a part of a lane: events that nest are in part 0, others further on.
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

  TraceJsonFields FieldsAt(InstantId id) const {
    const Instant& instant = graph_.instants[id];
    const GraphEvent& event = graph_.events[instant.event];
    TraceJsonFields fields;
    fields.pid = Pid(graph_.lanes[event.lane]);
    fields.tid = tids_[instant.event];
    fields.name = kArrowName;
    fields.category = kArrowName;
    // At its time, which may be within the event, but before the event's end, or viewers would tie
    // the arrow to what comes next.
    const int64_t last_ps = event.start_ps + std::max<int64_t>(0, event.duration_ps - kPsPerNs);
    fields.ts_ps = std::clamp(instant.time_ps, event.start_ps, last_ps);
    fields.args = &args_;
    return fields;
  }

  const PathGraph& graph_;
  const CriticalPath& path_;
  const OverlayOptions& options_;
  TraceJsonWriter writer_;
  TraceJsonArgs args_;
  // By event, and by edge: whether it is on the path.
  std::vector<bool> is_critical_;
  std::vector<bool> is_critical_edge_;
  // By event: its thread in the overlay.
  std::vector<int64_t> tids_;
  // The threads of the parts of lanes beyond the first, by lane and part.
  std::map<std::pair<LaneId, size_t>, int64_t> extra_tids_;
  OverlayStats stats_;
};

}  // namespace

std::string OverlayFileName(absl::string_view trace_path) {
  return absl::StrCat("overlaid_critical_path_", trace_path.substr(trace_path.rfind('/') + 1));
}

absl::StatusOr<OverlayStats> WriteOverlay(absl::string_view trace_text, const PathGraph& graph,
                                          const CriticalPath& path, const OverlayOptions& options,
                                          ByteSink* sink) {
  return OverlayWriter(trace_text, graph, path, options, sink).Write();
}

absl::StatusOr<OverlayStats> WriteTimelineOverlay(const PathGraph& graph, const CriticalPath& path,
                                                  const OverlayOptions& options, ByteSink* sink) {
  return TimelineOverlayWriter(graph, path, options, sink).Write();
}

}  // namespace meridian
