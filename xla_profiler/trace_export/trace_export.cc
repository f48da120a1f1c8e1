#include "xla_profiler/trace_export/trace_export.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/trace_export/nesting_lanes.h"
#include "xla_profiler/trace_export/trace_sink.h"
#include "xla_profiler/trace_export/track_layout.h"
#include "xla_profiler/xplane/event_wire.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {
namespace {

constexpr int64_t kMaxCorrelation = 0xFFFFFFFF;
// Of slices and arrows of the additions.
constexpr absl::string_view kCollectiveCategory = "collective";
// What counters count in when their stat is named so.
constexpr absl::string_view kUnits[] = {"ns", "us", "ms", "bytes", "%"};
constexpr int64_t kEventsPerProgress = 1 << 16;

// Start ascending, then duration descending: parents before children.
struct EventOrder {
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;

  friend bool operator<(const EventOrder& a, const EventOrder& b) {
    return a.offset_ps != b.offset_ps ? a.offset_ps < b.offset_ps : a.duration_ps > b.duration_ps;
  }
};

EventOrder OrderOf(const XEventVisitor& event) { return {event.OffsetPs(), event.DurationPs()}; }

absl::StatusOr<bool> IsInOrder(const XSpaceSource& source, const XLineVisitor& line) {
  bool in_order = true;
  EventOrder previous{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  const auto look_at = [&](const EventOrder& order) {
    in_order = in_order && !(order < previous);
    previous = order;
  };
  XLineHeader header;
  const auto look = [&](absl::string_view payload) -> absl::Status {
    PlainEvent event;
    if (ReadPlainEvent(payload, source, &event) && OnlyStatsFollow(event, payload)) {
      look_at({event.offset_ps, event.duration_ps});
      return absl::OkStatus();
    }
    return line.ForEachEvent({payload},
                             [&](const XEventVisitor& other) { look_at(OrderOf(other)); });
  };
  RETURN_IF_ERROR(WalkXLine(source, line.Header().payload, &header, look));
  return in_order;
}

// Returns the payloads of the line's events in order; those of equal times stay as they were.
absl::StatusOr<std::vector<absl::string_view>> SortedPayloads(const XSpaceSource& source,
                                                              const XLineVisitor& line) {
  std::vector<std::pair<EventOrder, absl::string_view>> events;
  events.reserve(line.NumEvents());
  const StatSelection no_stats(std::initializer_list<StatType>{});
  RETURN_IF_ERROR(line.ForEachEvent(no_stats, [&](const XEventVisitor& event) {
    events.push_back({OrderOf(event), absl::string_view()});
  }));
  size_t next = 0;
  XLineHeader header;
  RETURN_IF_ERROR(WalkXLine(source, line.Header().payload, &header, [&](absl::string_view payload) {
    events[next++].second = payload;
    return absl::OkStatus();
  }));
  absl::c_stable_sort(events, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<absl::string_view> payloads;
  payloads.reserve(events.size());
  for (const auto& [order, payload] : events) payloads.push_back(payload);
  return payloads;
}

// What a counter can show.
bool IsFiniteNumber(const XStatVisitor& stat) {
  if (stat.value_case() == XStatVisitor::ValueCase::kDouble) {
    return std::isfinite(stat.DoubleValue());
  }
  return stat.IntOrUintValue().has_value();
}

class SpaceWalk {
 public:
  SpaceWalk(const XSpaceReader& reader, const ExportOptions& options, TraceSink& sink)
      : reader_(reader), options_(options), range_(sink.range()), sink_(sink) {}

  absl::StatusOr<ExportStats> Run() {
    TrackLayout additions;
    if (options_.additions != nullptr) {
      ASSIGN_OR_RETURN(additions, ReadTrackLayout(*options_.additions));
    }
    ASSIGN_OR_RETURN(const TrackLayout profile,
                     ReadTrackLayout(reader_, additions, options_.ranks));
    next_id_ = profile.next_id;
    if (options_.additions != nullptr) {
      node_indices_ = &profile.node_indices;
      RETURN_IF_ERROR(AddSpace(*options_.additions, additions));
      node_indices_ = nullptr;
    }
    RETURN_IF_ERROR(AddSpace(reader_, profile));
    RETURN_IF_ERROR(sink_.Finish());
    return stats_;
  }

 private:
  absl::Status AddSpace(const XSpaceReader& reader, const TrackLayout& layout) {
    layout_ = &layout;
    next_line_ = 0;
    source_ = &reader.source();
    for (const TraceProcess& process : layout.processes) {
      RETURN_IF_ERROR(sink_.AddProcess(process));
    }
    for (const LineLayout& line : layout.lines) {
      if (line.kind != LineLayout::Kind::kSlices) continue;
      RETURN_IF_ERROR(sink_.AddTrack(line.track));
    }
    return reader.ForEachPlane([&](const XPlaneVisitor& plane) { return AddPlane(plane); });
  }

  absl::Status AddPlane(const XPlaneVisitor& plane) {
    counter_tracks_.clear();
    bool begun = false;
    return plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
      const LineLayout& layout = layout_->lines[next_line_++];
      if (layout.kind == LineLayout::Kind::kHidden) return absl::OkStatus();
      if (!begun) RETURN_IF_ERROR(sink_.BeginPlane(plane));
      begun = true;
      return AddLine(line, layout);
    });
  }

  absl::Status AddLine(const XLineVisitor& line, const LineLayout& layout) {
    tracks_.assign(1, layout.track);
    const auto add_event = [&](const XEventVisitor& event) {
      return AddEvent(line, layout, event);
    };
    ASSIGN_OR_RETURN(const bool in_order, IsInOrder(*source_, line));
    if (in_order) {
      RETURN_IF_ERROR(line.ForEachEvent(add_event));
    } else {
      ASSIGN_OR_RETURN(const std::vector<absl::string_view> payloads,
                       SortedPayloads(*source_, line));
      RETURN_IF_ERROR(line.ForEachEvent(payloads, add_event));
    }
    ends_.clear();
    lanes_.Clear(&ends_);
    return EndSlices();
  }

  absl::Status AddEvent(const XLineVisitor& line, const LineLayout& layout,
                        const XEventVisitor& event) {
    ReportProgress(event.FileOffset());
    int64_t start_ps = 0;
    int64_t end_ps = 0;
    if (!ReadTimes(line, event, &start_ps, &end_ps)) {
      ++stats_.left_out;
      return absl::OkStatus();
    }
    if (layout.kind == LineLayout::Kind::kCounters) {
      return AddCounterValues(layout, event, start_ps);
    }
    return AddSlice(line, layout, event, start_ps, end_ps);
  }

  // Returns false when the event has no time that can be told.
  bool ReadTimes(const XLineVisitor& line, const XEventVisitor& event, int64_t* start_ps,
                 int64_t* end_ps) const {
    if (event.IsAggregatedEvent() || event.DurationPs() < 0) return false;
    const absl::int128 start = absl::int128(line.TimestampNs()) * kPsPerNs + event.OffsetPs();
    const absl::int128 end = start + event.DurationPs();
    if (start < range_.min_ps || end > range_.max_ps) return false;
    *start_ps = static_cast<int64_t>(start);
    *end_ps = static_cast<int64_t>(end);
    return true;
  }

  absl::Status AddSlice(const XLineVisitor& line, const LineLayout& layout,
                        const XEventVisitor& event, int64_t start_ps, int64_t end_ps) {
    ends_.clear();
    const std::optional<size_t> lane = lanes_.Place(start_ps, end_ps, &ends_);
    RETURN_IF_ERROR(EndSlices());
    if (!lane.has_value()) {
      ++stats_.left_out;
      return absl::OkStatus();
    }
    if (*lane == tracks_.size()) RETURN_IF_ERROR(AddOverlapTrack(layout.track));
    ReadArgs(event);
    TraceSlice slice;
    slice.start_ps = start_ps;
    slice.duration_ps = end_ps - start_ps;
    slice.category = CategoryOf(line, layout, event);
    ReadFlows(layout, event);
    slice.flows = flows_;
    slice.metadata = &event.Metadata();
    slice.args = args_;
    ++stats_.slices;
    return sink_.BeginSlice(tracks_[*lane], slice);
  }

  absl::Status AddCounterValues(const LineLayout& layout, const XEventVisitor& event,
                                int64_t time_ps) {
    bool first = true;
    for (const XStatVisitor& stat : event.Stats()) {
      if (!IsFiniteNumber(stat)) continue;
      ASSIGN_OR_RETURN(const TraceTrack* track, CounterTrack(layout, event, stat, first));
      RETURN_IF_ERROR(sink_.AddCounterValue(*track, time_ps, stat));
      first = false;
    }
    return absl::OkStatus();
  }

  // Returns the counter's track; a reading of several values makes several counters.
  absl::StatusOr<const TraceTrack*> CounterTrack(const LineLayout& layout,
                                                 const XEventVisitor& event,
                                                 const XStatVisitor& stat, bool first) {
    const auto [it, is_new] =
        counter_tracks_.try_emplace({layout.track.process_id, event.Id(), stat.Id()});
    TraceTrack& track = it->second;
    if (is_new) {
      track = layout.track;
      track.id = next_id_++;
      track.kind = TraceTrack::Kind::kCounter;
      if (absl::c_linear_search(kUnits, stat.Name())) track.unit = std::string(stat.Name());
      track.name = first ? std::string(event.Name()) : absl::StrCat(event.Name(), " ", stat.Name());
      RETURN_IF_ERROR(sink_.AddTrack(track));
    }
    return &track;
  }

  absl::Status AddOverlapTrack(const TraceTrack& line_track) {
    TraceTrack track = line_track;
    track.id = next_id_++;
    track.kind = TraceTrack::Kind::kOverlap;
    track.name = absl::StrCat(line_track.name, " (", tracks_.size() + 1, ")");
    RETURN_IF_ERROR(sink_.AddTrack(track));
    tracks_.push_back(std::move(track));
    return absl::OkStatus();
  }

  absl::Status EndSlices() {
    for (const NestingLanes::End& end : ends_) {
      RETURN_IF_ERROR(sink_.EndSlice(tracks_[end.lane], end.end_ps));
    }
    return absl::OkStatus();
  }

  void ReadArgs(const XEventVisitor& event) {
    args_.clear();
    const absl::Span<const XStatVisitor> own = event.Stats();
    const absl::Span<const XStatVisitor> first_own = own.subspan(0, TraceSlice::kMaxArgs);
    for (const XStatVisitor& stat : event.Metadata().stats) {
      const bool replaced = args_.size() < TraceSlice::kMaxArgs &&
                            absl::c_any_of(first_own, [&](const XStatVisitor& other) {
                              return other.Id() == stat.Id();
                            });
      if (!replaced) AddArg(stat);
    }
    for (const XStatVisitor& stat : own) AddArg(stat);
  }

  void AddArg(const XStatVisitor& stat) {
    const bool is_shown = stat.value_case() != XStatVisitor::ValueCase::kNone &&
                          stat.value_case() != XStatVisitor::ValueCase::kBytes &&
                          stat.Type() != StatType::kKinetoCategory &&
                          (node_indices_ == nullptr || !ArrowPhase(stat).has_value());
    if (is_shown && args_.size() < TraceSlice::kMaxArgs) args_.push_back(&stat);
  }

  // What Kineto says, else what the line and the stats tell.
  absl::string_view CategoryOf(const XLineVisitor& line, const LineLayout& layout,
                               const XEventVisitor& event) const {
    if (node_indices_ != nullptr) return kCollectiveCategory;
    const XStatVisitor* kineto = event.GetStat(StatType::kKinetoCategory);
    if (kineto != nullptr && kineto->value_case() == XStatVisitor::ValueCase::kRef) {
      return kineto->StrOrRefValue();
    }
    const EventCategory category = XSpaceEventCategory(layout.on_device, line, event);
    return category == EventCategory::kUnknown ? absl::string_view() : EventCategoryName(category);
  }

  void ReadFlows(const LineLayout& layout, const XEventVisitor& event) {
    flows_.clear();
    if (node_indices_ == nullptr) {
      AddLaunchFlow(layout.node_index, event,
                    layout.on_device ? FlowPhase::kEnd : FlowPhase::kStart);
      return;
    }
    for (const XStatVisitor& stat : event.Stats()) {
      const std::optional<int64_t> value = stat.IntOrUintValue();
      if (!value.has_value()) continue;
      if (const std::optional<FlowPhase> phase = ArrowPhase(stat)) {
        AddFlow(layout.node_index, *value, *phase, kCollectiveCategory);
      } else if (stat.Name() == kArrowNodeStat) {
        const auto node = node_indices_->find(*value);
        if (node != node_indices_->end()) AddLaunchFlow(node->second, event, FlowPhase::kEnd);
      }
    }
  }

  static std::optional<FlowPhase> ArrowPhase(const XStatVisitor& stat) {
    if (stat.Name() == kArrowStartStat) return FlowPhase::kStart;
    if (stat.Name() == kArrowStepStat) return FlowPhase::kStep;
    if (stat.Name() == kArrowEndStat) return FlowPhase::kEnd;
    return std::nullopt;
  }

  // Arrows need no table of launches: the ends that share a node and a correlation id share the id
  // of the arrow.
  void AddLaunchFlow(uint64_t node_index, const XEventVisitor& event, FlowPhase phase) {
    const XStatVisitor* stat = event.GetEventOrMetadataStat(StatType::kCorrelationId);
    if (stat == nullptr) return;
    AddFlow(node_index, stat->IntOrUintValue().value_or(0), phase, "launch");
  }

  // Numbers of 2^32 and more (no known profiler's correlation ids) get no arrow.
  void AddFlow(uint64_t node_index, int64_t number, FlowPhase phase, absl::string_view name) {
    // Profilers give 0 to what no call has caused.
    if (number <= 0 || number > kMaxCorrelation) return;
    flows_.push_back({node_index << 32 | static_cast<uint64_t>(number), phase, name});
  }

  void ReportProgress(uint64_t offset) {
    if (++events_seen_ % kEventsPerProgress == 0 && options_.progress) options_.progress(offset);
  }

  const XSpaceReader& reader_;
  const ExportOptions& options_;
  const TimeRange range_;
  TraceSink& sink_;
  // The tracks of the profile that is walked over, and its bytes.
  const TrackLayout* layout_ = nullptr;
  size_t next_line_ = 0;
  const XSpaceSource* source_ = nullptr;
  // Where the nodes of the profile have their arrows, while the additions are walked over; else null.
  const std::map<int64_t, uint64_t>* node_indices_ = nullptr;
  // Of the next track that the layouts do not have.
  int64_t next_id_ = 0;
  ExportStats stats_;
  int64_t events_seen_ = 0;

  // The lanes of the line at hand; tracks_ has the track of each, the line's own first.
  NestingLanes lanes_;
  std::vector<TraceTrack> tracks_;
  // The counters of the plane at hand, by process id, event metadata id and stat id.
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, TraceTrack> counter_tracks_;
  // What ends before the event at hand, its arguments and arrows.
  std::vector<NestingLanes::End> ends_;
  std::vector<const XStatVisitor*> args_;
  std::vector<TraceFlow> flows_;
};

// A viewer needs no Unix time: nullopt when nobody tells.
absl::StatusOr<std::optional<int64_t>> SessionStart(const XSpaceReader& reader,
                                                    const ExportOptions& options) {
  if (options.profile_start_ns.has_value()) return options.profile_start_ns;
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  return info.profile_start_ns;
}

}  // namespace

absl::StatusOr<ExportStats> ExportTraceJson(const XSpaceReader& reader,
                                            const ExportOptions& options, ByteSink& out) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> start_ns, SessionStart(reader, options));
  return SpaceWalk(reader, options, *NewTraceJsonSink(start_ns, &out)).Run();
}

absl::StatusOr<ExportStats> ExportPerfetto(const XSpaceReader& reader, const ExportOptions& options,
                                           ByteSink& out) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> start_ns, SessionStart(reader, options));
  return SpaceWalk(reader, options, *NewPerfettoSink(start_ns, options.clock_readings, &out)).Run();
}

}  // namespace meridian
