#include "critical_path/path_overlay.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;

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

// Writers put quotes around numbers, too.
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

class OverlayWriter {
 public:
  OverlayWriter(absl::string_view text, const PathGraph& graph, const CriticalPath& path,
                const OverlayOptions& options, ByteSink* sink)
      : text_(text), graph_(graph), options_(options), sink_(sink) {
    FindCritical(path);
    arrows_ = ChooseArrows(graph, path, options.all_edges);
    FindArrowEnds();
  }

  absl::StatusOr<OverlayStats> Write();

 private:
  void FindCritical(const CriticalPath& path);
  void FindArrowEnds();

  absl::Status TakeEvent(absl::string_view element);
  absl::Status TakeMember(absl::string_view key, absl::string_view value);
  void BeginItem();
  absl::Status CloseEvents();
  absl::Status WriteArrow(EdgeId id);
  absl::Status WriteArrowEnd(const GraphEdge& edge, NodeId node, bool is_first, bool is_critical);
  absl::Status FlushIfLarge();
  absl::Status Flush();

  const absl::string_view text_;
  const PathGraph& graph_;
  const OverlayOptions& options_;
  ByteSink* sink_;
  OverlayStats stats_;

  // By the events' places in the file.
  std::vector<bool> is_critical_position_;
  std::vector<bool> is_critical_edge_;
  std::vector<EdgeId> arrows_;
  // For each event of the graph where its text begins, if it is the end of an arrow.
  std::vector<GraphEventId> event_of_position_;
  std::vector<uint64_t> offset_of_event_;

  enum class Place { kBefore, kInEvents, kBehind };
  Place place_ = Place::kBefore;
  bool is_bare_array_ = false;
  bool has_items_ = false;
  uint64_t next_position_ = 0;
  uint64_t next_arrow_id_ = 0;
  std::string buffer_;
};

constexpr uint64_t kNoOffset = std::numeric_limits<uint64_t>::max();

void OverlayWriter::FindCritical(const CriticalPath& path) {
  uint32_t last = 0;
  for (const GraphEvent& event : graph_.events) last = std::max(last, event.position);
  is_critical_position_.resize(size_t{last} + 1);
  is_critical_edge_.resize(graph_.edges.size());
  for (NodeId node : PathNodes(graph_, path)) {
    const GraphEventId event = graph_.nodes[node].event;
    if (event != kNoEvent) is_critical_position_[graph_.events[event].position] = true;
  }
  for (EdgeId id : path.edges) is_critical_edge_[id] = true;
}

void OverlayWriter::FindArrowEnds() {
  offset_of_event_.assign(graph_.events.size(), kNoOffset);
  event_of_position_.assign(is_critical_position_.size(), kNoEvent);
  for (EdgeId id : arrows_) {
    for (NodeId node : {graph_.edges[id].from, graph_.edges[id].to}) {
      const GraphEventId event = graph_.nodes[node].event;
      event_of_position_[graph_.events[event].position] = event;
    }
  }
}

absl::StatusOr<OverlayStats> OverlayWriter::Write() {
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

void OverlayWriter::BeginItem() {
  if (has_items_) buffer_ += ",\n";
  has_items_ = true;
}

absl::Status OverlayWriter::TakeMember(absl::string_view key, absl::string_view value) {
  if (place_ == Place::kInEvents) RETURN_IF_ERROR(CloseEvents());
  BeginItem();
  absl::StrAppend(&buffer_, "\"", key, "\": ", value);
  return FlushIfLarge();
}

absl::Status OverlayWriter::TakeEvent(absl::string_view element) {
  if (place_ == Place::kBefore) {
    BeginItem();
    buffer_ += "\"traceEvents\": [\n";
    place_ = Place::kInEvents;
    has_items_ = false;
  }
  const uint64_t position = next_position_++;
  const EventText event = ReadEvent(element);
  // Arrows of their own kind get ids behind these.
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

absl::Status OverlayWriter::CloseEvents() {
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

absl::Status OverlayWriter::WriteArrow(EdgeId id) {
  const GraphEdge& edge = graph_.edges[id];
  RETURN_IF_ERROR(WriteArrowEnd(edge, edge.from, /*is_first=*/true, is_critical_edge_[id]));
  RETURN_IF_ERROR(WriteArrowEnd(edge, edge.to, /*is_first=*/false, is_critical_edge_[id]));
  ++next_arrow_id_;
  ++stats_.arrows;
  return FlushIfLarge();
}

absl::Status OverlayWriter::WriteArrowEnd(const GraphEdge& edge, NodeId node, bool is_first,
                                          bool is_critical) {
  const GraphEventId id = graph_.nodes[node].event;
  const GraphEvent& graph_event = graph_.events[id];
  const bool is_there = offset_of_event_[id] != kNoOffset;
  const EventText event =
      is_there ? ReadEvent(JsonCutter(text_, offset_of_event_[id]).CutValue()) : EventText();
  std::optional<absl::int128> time_ps = ReadMicros(event.ts);
  if (!time_ps.has_value() || event.name.AsString().value_or("") != graph_.EventName(id)) {
    return absl::InvalidArgumentError(absl::StrCat("the trace has no event ", graph_event.position,
                                                   " named '", graph_.EventName(id),
                                                   "'; is this the trace that the graph is of?"));
  }
  if (!graph_.nodes[node].is_start) {
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

absl::Status OverlayWriter::FlushIfLarge() {
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status OverlayWriter::Flush() {
  RETURN_IF_ERROR(sink_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

}  // namespace

std::vector<EdgeId> ChooseArrows(const PathGraph& graph, const CriticalPath& path, bool all_edges) {
  const auto can_draw = [&](const GraphEdge& edge) {
    return graph.nodes[edge.from].event != kNoEvent && graph.nodes[edge.to].event != kNoEvent;
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

std::string OverlayFileName(absl::string_view trace_path) {
  return absl::StrCat("overlaid_critical_path_", trace_path.substr(trace_path.rfind('/') + 1));
}

absl::StatusOr<OverlayStats> WriteOverlay(absl::string_view trace_text, const PathGraph& graph,
                                          const CriticalPath& path, const OverlayOptions& options,
                                          ByteSink* sink) {
  return OverlayWriter(trace_text, graph, path, options, sink).Write();
}

}  // namespace meridian
