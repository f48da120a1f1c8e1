#include "critical_path/report/path_overlay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/trace_export/nesting_lanes.h"
#include "xla_profiler/trace_json/trace_json_rewriter.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;
constexpr uint64_t kNoOffset = std::numeric_limits<uint64_t>::max();

// Reads a number of microseconds, which some writers put in quotes.
std::optional<absl::int128> ReadMicros(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "\"")) absl::ConsumeSuffix(&text, "\"");
  return ParseMicrosAsPicos(text);
}

// Returns the event with `critical` among its arguments.
std::string MarkCritical(absl::string_view element, absl::string_view args) {
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

// Returns the edges that are drawn as arrows: those of the path that are dependencies, launches or
// waits, or all of the graph; not those from or to the window's ends.
std::vector<EdgeId> ChooseArrows(const PathGraph& graph, const CriticalPath& path, bool all_edges) {
  std::vector<EdgeId> arrows = path.edges;
  if (all_edges) {
    arrows.resize(graph.edges.size());
    std::iota(arrows.begin(), arrows.end(), 0);
  }
  const auto is_left_out = [&](EdgeId id) {
    const GraphEdge& edge = graph.edges[id];
    if (graph.instants[edge.from].event == kNoEvent) return true;
    if (graph.instants[edge.to].event == kNoEvent) return true;
    return all_edges
               ? edge.type == EdgeType::kKernelLaunchDelay && edge.weight_ps == 0
               : edge.type == EdgeType::kOperator || edge.type == EdgeType::kKernelKernelDelay;
  };
  arrows.erase(std::remove_if(arrows.begin(), arrows.end(), is_left_out), arrows.end());
  return arrows;
}

// What is on the path, by event and by edge.
struct OnPath {
  std::vector<bool> events;
  std::vector<bool> edges;
};

OnPath FindOnPath(const PathGraph& graph, const CriticalPath& path) {
  OnPath on_path = {std::vector<bool>(graph.events.size()), std::vector<bool>(graph.edges.size())};
  for (InstantId instant : PathInstants(graph, path)) {
    const GraphEventId event = graph.instants[instant].event;
    if (event != kNoEvent) on_path.events[event] = true;
  }
  for (EdgeId id : path.edges) on_path.edges[id] = true;
  return on_path;
}

// Finds the arrows of a trace that lose a slice when some of its slices are left out. A viewer would
// tie their ends to whatever else is open on the thread, or to nothing.
class ArrowsOfSlices {
 public:
  // Takes the trace's events one after the other.
  void Add(uint64_t position, const WrittenEvent& event, bool is_kept) {
    const std::optional<absl::int128> time_ps = ReadMicros(event.ts);
    const bool is_start = event.Is('s');
    const bool is_arrow = is_start || event.Is('t') || event.Is('f');
    if (!time_ps.has_value() || (!is_arrow && !event.Is('X'))) return;
    Thread& thread = threads_[absl::StrCat(event.pid, " ", event.tid)];
    if (is_arrow) {
      std::string arrow = absl::StrCat(event.cat, " ", event.name, " ", event.id);
      thread.ends.push_back({*time_ps, position, std::move(arrow), is_start});
    } else {
      thread.slices.push_back({*time_ps, *time_ps + ReadMicros(event.dur).value_or(0), is_kept});
    }
  }

  // Returns the positions of the arrows' ends that are not to be drawn.
  absl::flat_hash_set<uint64_t> FindLost() {
    absl::flat_hash_set<uint64_t> lost;
    std::map<std::string, Arrow> arrows;
    for (auto& [name, thread] : threads_) {
      for (const ArrowEnd* end : EndsAtRemovedSlices(&thread)) lost.insert(end->position);
      for (const ArrowEnd& end : thread.ends) {
        if (lost.contains(end.position)) continue;
        (end.is_start ? arrows[end.arrow].has_start : arrows[end.arrow].has_end) = true;
      }
    }
    for (const auto& [name, thread] : threads_) {
      for (const ArrowEnd& end : thread.ends) {
        const Arrow& arrow = arrows[end.arrow];
        if (!arrow.has_start || !arrow.has_end) lost.insert(end.position);
      }
    }
    return lost;
  }

 private:
  struct Slice {
    absl::int128 start_ps;
    absl::int128 end_ps;
    bool is_kept;
  };
  struct ArrowEnd {
    absl::int128 time_ps;
    uint64_t position;
    // What the ends of one arrow share.
    std::string arrow;
    bool is_start;
  };
  struct Thread {
    std::vector<Slice> slices;
    std::vector<ArrowEnd> ends;
  };
  struct Arrow {
    bool has_start = false;
    bool has_end = false;
  };

  // An end is tied to the innermost slice that is open at its time.
  static std::vector<const ArrowEnd*> EndsAtRemovedSlices(Thread* thread) {
    std::sort(thread->slices.begin(), thread->slices.end(), [](const Slice& a, const Slice& b) {
      return std::tie(a.start_ps, b.end_ps) < std::tie(b.start_ps, a.end_ps);
    });
    std::sort(thread->ends.begin(), thread->ends.end(), [](const ArrowEnd& a, const ArrowEnd& b) {
      return std::tie(a.time_ps, a.position) < std::tie(b.time_ps, b.position);
    });
    std::vector<const ArrowEnd*> removed;
    std::vector<const Slice*> open;
    size_t next = 0;
    for (const ArrowEnd& end : thread->ends) {
      for (; next < thread->slices.size() && thread->slices[next].start_ps <= end.time_ps; ++next) {
        const Slice& slice = thread->slices[next];
        while (!open.empty() && open.back()->end_ps <= slice.start_ps) open.pop_back();
        open.push_back(&slice);
      }
      while (!open.empty() && open.back()->end_ps < end.time_ps) open.pop_back();
      if (open.empty() || !open.back()->is_kept) removed.push_back(&end);
    }
    return removed;
  }

  // By pid and tid as they are written.
  std::map<std::string, Thread> threads_;
};

// Writes the trace as it stands, with marks and arrows.
class OverlayWriter {
 public:
  OverlayWriter(absl::string_view text, const PathGraph& graph, const CriticalPath& path,
                const OverlayOptions& options, ByteSink* sink)
      : text_(text),
        graph_(graph),
        options_(options),
        sink_(sink),
        on_path_(FindOnPath(graph, path)),
        arrows_(ChooseArrows(graph, path, options.all_edges)) {
    for (GraphEventId id = 0; id < graph.events.size(); ++id) {
      if (on_path_.events[id]) critical_positions_.insert(graph.events[id].position);
    }
    for (EdgeId id : arrows_) {
      for (InstantId instant : {graph.edges[id].from, graph.edges[id].to}) {
        offsets_[graph.events[graph.instants[instant].event].position] = kNoOffset;
      }
    }
  }

  absl::Status Write() {
    if (options_.only_critical && !options_.all_edges) RETURN_IF_ERROR(FindLostArrows());
    const bool is_bare_array = JsonCutter(text_).Peek() == '[';
    buffer_ = is_bare_array ? "[\n" : "{\n\"traceEvents\": [\n";
    // What else the file holds comes behind the events.
    std::string members;
    RETURN_IF_ERROR(CutTrace(
        text_, [this](absl::string_view element) { return TakeEvent(element); },
        [&](absl::string_view key, absl::string_view value) {
          absl::StrAppend(&members, ",\n\"", key, "\": ", value);
          return absl::OkStatus();
        }));
    for (EdgeId id : arrows_) RETURN_IF_ERROR(WriteArrow(id));
    absl::StrAppend(&buffer_, "\n]", members, is_bare_array ? "\n" : "\n}\n");
    return Flush();
  }

 private:
  absl::Status FindLostArrows() {
    ArrowsOfSlices arrows;
    uint64_t position = 0;
    RETURN_IF_ERROR(CutTrace(
        text_,
        [&](absl::string_view element) {
          WrittenEvent event;
          ReadWrittenEvent(element, &event);
          arrows.Add(position, event, IsKept(position, event));
          ++position;
          return absl::OkStatus();
        },
        [](absl::string_view, absl::string_view) { return absl::OkStatus(); }));
    lost_arrows_ = arrows.FindLost();
    return absl::OkStatus();
  }

  bool IsKept(uint64_t position, const WrittenEvent& event) const {
    return !options_.only_critical || options_.all_edges || !event.Is('X') ||
           critical_positions_.contains(position) || event.cat == "\"user_annotation\"" ||
           event.cat == "\"python_function\"";
  }

  absl::Status TakeEvent(absl::string_view element) {
    const uint64_t position = next_position_++;
    WrittenEvent event;
    ReadWrittenEvent(element, &event);
    // Our arrows get ids behind the largest that the trace has.
    if (const std::optional<uint64_t> id = JsonValue(event.id).AsUint64()) {
      constexpr uint64_t kMaxId = std::numeric_limits<int64_t>::max() / 2;
      if (*id < kMaxId) next_arrow_id_ = std::max(next_arrow_id_, *id + 1);
    }
    const bool is_critical = critical_positions_.contains(position);
    const auto offset = offsets_.find(position);
    if (offset != offsets_.end()) offset->second = element.data() - text_.data();
    if (!IsKept(position, event) || lost_arrows_.contains(position)) return absl::OkStatus();
    BeginItem();
    if (is_critical && element.front() == '{') {
      buffer_ += MarkCritical(element, event.args);
    } else {
      absl::StrAppend(&buffer_, element);
    }
    return FlushIfLarge();
  }

  void BeginItem() {
    if (has_items_) buffer_ += ",\n";
    has_items_ = true;
  }

  absl::Status WriteArrow(EdgeId id) {
    const GraphEdge& edge = graph_.edges[id];
    RETURN_IF_ERROR(WriteArrowEnd(edge, edge.from, /*is_first=*/true, on_path_.edges[id]));
    RETURN_IF_ERROR(WriteArrowEnd(edge, edge.to, /*is_first=*/false, on_path_.edges[id]));
    ++next_arrow_id_;
    return FlushIfLarge();
  }

  absl::Status WriteArrowEnd(const GraphEdge& edge, InstantId instant, bool is_first,
                             bool is_critical) {
    const GraphEventId id = graph_.instants[instant].event;
    const GraphEvent& graph_event = graph_.events[id];
    const uint64_t offset = offsets_.at(graph_event.position);
    WrittenEvent event;
    if (offset != kNoOffset) ReadWrittenEvent(JsonCutter(text_, offset).CutValue(), &event);
    std::optional<absl::int128> time_ps = ReadMicros(event.ts);
    if (!time_ps.has_value() ||
        JsonValue(event.name).AsString().value_or("") != graph_.EventName(id)) {
      return InvalidArgument("the trace has no event ", graph_event.position, " named '",
                             graph_.EventName(id), "'; is this the trace that the graph is of?");
    }
    if (!graph_.instants[instant].is_start) {
      // Within the event, or viewers would tie the arrow to what comes next.
      const absl::int128 duration_ps = ReadMicros(event.dur).value_or(graph_event.duration_ps);
      if (duration_ps >= kPsPerNs) *time_ps += duration_ps - kPsPerNs;
    }
    BeginItem();
    absl::StrAppend(&buffer_, "{\"ph\": \"", is_first ? "s" : "f", "\", \"id\": ", next_arrow_id_);
    if (!event.pid.empty()) absl::StrAppend(&buffer_, ", \"pid\": ", event.pid);
    if (!event.tid.empty()) absl::StrAppend(&buffer_, ", \"tid\": ", event.tid);
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

  const OnPath on_path_;
  const std::vector<EdgeId> arrows_;
  // The places in the file of the events that are on the path.
  absl::flat_hash_set<uint64_t> critical_positions_;
  // By the place in the file of an event that an arrow leads from or to: where its text begins,
  // once it was seen; else kNoOffset.
  absl::flat_hash_map<uint64_t, uint64_t> offsets_;
  // The places in the file of ends of arrows whose slices are left out.
  absl::flat_hash_set<uint64_t> lost_arrows_;

  bool has_items_ = false;
  uint64_t next_position_ = 0;
  uint64_t next_arrow_id_ = 0;
  std::string buffer_;
};

constexpr char kArrowName[] = "critical_path";

// Returns when the first event starts if that is before the graph's base, in ns from there; else 0.
// Perfetto drops events at negative times.
int64_t FirstNs(const PathGraph& graph) {
  int64_t first_ps = 0;
  for (const GraphEvent& event : graph.events) first_ps = std::min(first_ps, event.start_ps);
  return FloorToNs(first_ps);
}

// Viewers hide process 0. A trace may call itself any rank: the greatest wraps around.
int64_t Pid(const Lane& lane) { return static_cast<int64_t>(static_cast<uint64_t>(lane.rank) + 1); }

class TimelineOverlayWriter {
 public:
  TimelineOverlayWriter(const PathGraph& graph, const CriticalPath& path,
                        const OverlayOptions& options, ByteSink* sink)
      : graph_(graph),
        path_(path),
        options_(options),
        first_ns_(FirstNs(graph)),
        writer_(sink, graph.base_ns + first_ns_),
        on_path_(FindOnPath(graph, path)) {}

  absl::Status Write() {
    PlaceEvents();
    RETURN_IF_ERROR(WriteNames());
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      RETURN_IF_ERROR(WriteEvent(event));
    }
    for (const EdgeId edge : ChooseArrows(graph_, path_, options_.all_edges)) {
      RETURN_IF_ERROR(WriteArrow(edge));
    }
    return writer_.Finish();
  }

 private:
  absl::Status WriteNames() {
    std::set<int64_t> named;
    for (LaneId id = 0; id < graph_.lanes.size(); ++id) {
      const Lane& lane = graph_.lanes[id];
      if (named.insert(lane.rank).second) {
        RETURN_IF_ERROR(
            writer_.WriteProcess(Pid(lane), absl::StrCat("rank ", lane.rank), lane.rank));
      }
      RETURN_IF_ERROR(writer_.WriteThread(Pid(lane), int64_t{id} + 1, ThreadName(lane)));
    }
    for (const auto& [lane, tid] : extra_tids_) {
      RETURN_IF_ERROR(writer_.WriteThread(
          Pid(graph_.lanes[lane.first]), tid,
          absl::StrCat(ThreadName(graph_.lanes[lane.first]), " (", lane.second + 1, ")")));
    }
    return absl::OkStatus();
  }

  bool IsShown(GraphEventId event) const {
    return !options_.only_critical || options_.all_edges || on_path_.events[event];
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
        const GraphEvent &x = graph_.events[a], &y = graph_.events[b];
        return std::tie(x.start_ps, y.duration_ps) < std::tie(y.start_ps, x.duration_ps);
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
    if (on_path_.events[id]) args_.AddInt64("critical", 1);
    args_.AddUint64("event", event.position);
    TraceJsonFields fields;
    fields.pid = Pid(graph_.lanes[event.lane]);
    fields.tid = tids_[id];
    fields.name = graph_.EventName(id);
    fields.category = EventCategoryName(event.category);
    fields.ts_ps = FromFirst(event.start_ps);
    fields.args = &args_;
    return writer_.WriteComplete(fields, event.duration_ps);
  }

  absl::Status WriteArrow(EdgeId id) {
    const GraphEdge& edge = graph_.edges[id];
    args_.Clear();
    std::string weight;
    AppendPicosAsMicros(edge.weight_ps, &weight);
    args_.AddJson("weight", weight);
    args_.AddJson("critical", on_path_.edges[id] ? "true" : "false");
    args_.AddString("type", absl::StrCat("critical_path_", EdgeTypeName(edge.type)));
    ++last_arrow_id_;
    RETURN_IF_ERROR(writer_.WriteFlow(FieldsAt(edge.from), FlowPhase::kStart, last_arrow_id_));
    return writer_.WriteFlow(FieldsAt(edge.to), FlowPhase::kEnd, last_arrow_id_);
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
    fields.ts_ps = FromFirst(std::clamp(instant.time_ps, event.start_ps, last_ps));
    fields.args = &args_;
    return fields;
  }

  int64_t FromFirst(int64_t time_ps) const { return time_ps - first_ns_ * kPsPerNs; }

  const PathGraph& graph_;
  const CriticalPath& path_;
  const OverlayOptions& options_;
  // What the written times count from, in ns from the graph's base_ns.
  const int64_t first_ns_;
  TraceJsonWriter writer_;
  TraceJsonArgs args_;
  const OnPath on_path_;
  // By event: its thread in the overlay.
  std::vector<int64_t> tids_;
  // The threads of the parts of lanes beyond the first, by lane and part.
  std::map<std::pair<LaneId, size_t>, int64_t> extra_tids_;
  uint64_t last_arrow_id_ = 0;
};

}  // namespace

std::string OverlayFileName(absl::string_view trace_path) {
  return absl::StrCat("overlaid_critical_path_", trace_path.substr(trace_path.rfind('/') + 1));
}

absl::Status WriteOverlay(absl::string_view trace_text, const PathGraph& graph,
                          const CriticalPath& path, const OverlayOptions& options, ByteSink* sink) {
  return OverlayWriter(trace_text, graph, path, options, sink).Write();
}

absl::Status WriteTimelineOverlay(const PathGraph& graph, const CriticalPath& path,
                                  const OverlayOptions& options, ByteSink* sink) {
  return TimelineOverlayWriter(graph, path, options, sink).Write();
}

}  // namespace meridian
