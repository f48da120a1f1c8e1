#include "xla_profiler/kineto/event_table_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

absl::int128 FloorToNanos(absl::int128 ps) {
  const absl::int128 ns = ps / kPsPerNs;
  return ps % kPsPerNs < 0 ? ns - 1 : ns;
}

// Returns the time that the table is to count from, in nanoseconds: the first event's, of the first
// few events, that most of them could be counted from. One absurd event must not cost all others.
std::optional<int64_t> ChooseOrigin(absl::string_view text) {
  constexpr size_t kSamples = 101;
  std::vector<absl::int128> samples_ps;
  TraceJsonProblems ignored;
  (void)ReadTraceJson(
      text,
      [&](const TraceJsonEvent& event) {
        const bool is_row = event.ph == 'X' || event.ph == 'B';
        if (is_row && event.ts_ps.has_value()) samples_ps.push_back(*event.ts_ps);
        return samples_ps.size() < kSamples ? absl::OkStatus() : absl::CancelledError();
      },
      &ignored);
  if (samples_ps.empty()) return std::nullopt;
  const absl::int128 middle_ps = UpperMedian(samples_ps);
  for (absl::int128 sample_ps : samples_ps) {
    const std::optional<int64_t> origin_ns = NarrowToInt64(FloorToNanos(sample_ps));
    if (origin_ns.has_value() && NarrowToInt64(middle_ps - sample_ps).has_value()) return origin_ns;
  }
  return std::nullopt;
}

class Loader {
 public:
  absl::StatusOr<TraceJsonTable> Load(absl::string_view text) {
    origin_ns_ = ChooseOrigin(text);
    ASSIGN_OR_RETURN(
        result_.header,
        ReadTraceJson(
            text, [this](const TraceJsonEvent& event) { return Take(event); }, &result_.problems));
    CloseOpenRows();
    NameTracks();
    RETURN_IF_ERROR(SetBase());
    return std::move(result_);
  }

 private:
  absl::Status Take(const TraceJsonEvent& event) {
    switch (event.ph) {
      case 'X':
      case 'B':
        // There are at least as many positions as rows.
        if (event.position >= EventTable::kMaxRows) {
          return absl::OutOfRangeError(absl::StrCat("offset ", event.offset, ": more than ",
                                                    EventTable::kMaxRows, " events"));
        }
        TakeRow(event);
        break;
      case 'E':
        TakeEnd(event);
        break;
      case 'M':
        TakeMetadata(event);
        break;
    }
    return absl::OkStatus();
  }

  void TakeRow(const TraceJsonEvent& event) {
    const EventCategory category = KinetoCategory(event.cat, event.name);
    // An end does not say its category, so its begin must be found on the host's track, too.
    const bool on_device = event.ph == 'X' && IsKinetoDeviceCategory(category);
    const std::optional<EventRow> row =
        AddRow(event, category, on_device ? TrackKind::kDevice : TrackKind::kHost);
    if (event.ph == 'B' && row.has_value()) open_rows_[table_.track_id(*row)].push_back(*row);
  }

  void TakeEnd(const TraceJsonEvent& event) {
    std::vector<EventRow>& open = open_rows_[FindTrack(event.pid, event.tid, TrackKind::kHost)];
    if (open.empty()) return;
    const EventRow row = open.back();
    open.pop_back();
    const std::optional<int64_t> end_ps = RelativePs(event);
    if (!end_ps.has_value()) return;
    const std::optional<int64_t> duration_ps =
        NarrowToInt64(absl::int128(*end_ps) - table_.start_ps(row));
    if (!duration_ps.has_value()) return AddProblem(TraceJsonProblem::kTimeOutOfRange, event);
    if (*duration_ps < 0) return AddProblem(TraceJsonProblem::kNegativeDuration, event);
    table_.set_duration_ps(row, *duration_ps);
    last_end_ps_ = std::max(last_end_ps_, *end_ps);
  }

  void TakeMetadata(const TraceJsonEvent& event) {
    if (event.name != "process_name" && event.name != "thread_name") return;
    std::string name = event.args.Find("name").AsString().value_or("");
    if (event.name == "process_name") {
      process_names_[event.pid] = std::move(name);
    } else {
      thread_names_[{std::string(event.pid), std::string(event.tid)}] = std::move(name);
    }
  }

  // Adds a row, or a problem and returns nullopt.
  std::optional<EventRow> AddRow(const TraceJsonEvent& event, EventCategory category,
                                 TrackKind kind) {
    const std::optional<int64_t> start_ps = RelativePs(event);
    if (!start_ps.has_value()) return std::nullopt;
    const std::optional<int64_t> end_ps = NarrowToInt64(absl::int128(*start_ps) + event.dur_ps);
    if (!end_ps.has_value()) {
      AddProblem(TraceJsonProblem::kTimeOutOfRange, event);
      return std::nullopt;
    }
    last_end_ps_ = std::max(last_end_ps_, *end_ps);
    EventRecord row;
    row.track = FindTrack(event.pid, event.tid, kind);
    row.name = table_.InternName(event.name);
    row.start_ps = *start_ps;
    row.duration_ps = event.dur_ps;
    row.category = category;
    if (MayHaveKinetoCorrelation(category)) {
      row.correlation = event.args.Find("correlation").AsUint64();
    }
    row.source_offset = event.offset;
    result_.positions.push_back(static_cast<uint32_t>(event.position));
    return table_.Add(row);
  }

  // Returns the time from the base, or adds a problem.
  std::optional<int64_t> RelativePs(const TraceJsonEvent& event) {
    const std::optional<int64_t> relative_ps =
        origin_ns_.has_value() ? NarrowToInt64(*event.ts_ps - absl::int128(*origin_ns_) * kPsPerNs)
                               : std::nullopt;
    if (!relative_ps.has_value()) AddProblem(TraceJsonProblem::kTimeOutOfRange, event);
    return relative_ps;
  }

  TrackId FindTrack(absl::string_view pid, absl::string_view tid, TrackKind kind) {
    if (recent_track_ < table_.tracks().size()) {
      const Track& recent = table_.track(recent_track_);
      if (recent.kind == kind && recent.thread == tid && recent.process == pid)
        return recent_track_;
    }
    const auto [it, is_new] =
        track_ids_.try_emplace(TrackKey(std::string(pid), std::string(tid), kind));
    if (is_new) {
      Track track;
      track.kind = kind;
      track.process = std::string(pid);
      track.thread = std::string(tid);
      int64_t device_id = 0;
      if (kind == TrackKind::kDevice && absl::SimpleAtoi(pid, &device_id)) {
        track.device_id = device_id;
      }
      it->second = table_.AddTrack(std::move(track));
      open_rows_.emplace_back();
    }
    return recent_track_ = it->second;
  }

  void AddProblem(absl::string_view problem, const TraceJsonEvent& event) {
    result_.problems.Add(problem, event.offset);
  }

  void CloseOpenRows() {
    for (const std::vector<EventRow>& rows : open_rows_) {
      for (EventRow row : rows) {
        const absl::int128 duration_ps = absl::int128(last_end_ps_) - table_.start_ps(row);
        table_.set_duration_ps(
            row, NarrowToInt64(duration_ps).value_or(std::numeric_limits<int64_t>::max()));
      }
    }
  }

  void NameTracks() {
    for (TrackId id = 0; id < table_.tracks().size(); ++id) {
      Track& track = table_.mutable_track(id);
      const auto process = process_names_.find(track.process);
      if (process != process_names_.end()) track.process_name = process->second;
      const auto thread = thread_names_.find(std::make_pair(track.process, track.thread));
      if (thread != thread_names_.end()) track.name = thread->second;
    }
  }

  absl::Status SetBase() {
    const std::optional<int64_t> base_ns = NarrowToInt64(
        absl::int128(result_.header.base_time_ns.value_or(0)) + origin_ns_.value_or(0));
    if (!base_ns.has_value()) {
      return InvalidArgument(
          "baseTimeNanoseconds plus the first event's ts lies beyond the year 2262");
    }
    table_.set_base_ns(*base_ns);
    return absl::OkStatus();
  }

  TraceJsonTable result_;
  EventTable& table_ = result_.table;
  // The first row's ts, from which the rows' times count.
  std::optional<int64_t> origin_ns_;
  int64_t last_end_ps_ = std::numeric_limits<int64_t>::min();

  using TrackKey = std::tuple<std::string, std::string, TrackKind>;
  absl::flat_hash_map<TrackKey, TrackId> track_ids_;
  // Neighbours in the file are often on one track.
  TrackId recent_track_ = 0;
  // For each track the rows that have begun and not ended, innermost last.
  std::vector<std::vector<EventRow>> open_rows_;

  // Names that metadata events give, by pid, and by pid and tid.
  absl::flat_hash_map<std::string, std::string> process_names_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::string> thread_names_;
};

}  // namespace

absl::StatusOr<TraceJsonTable> LoadTraceJson(absl::string_view text, absl::string_view name) {
  return Annotate(Loader().Load(text), name);
}

JsonValue ReadTraceJsonArgs(absl::string_view text, const EventTable& table, EventRow row) {
  return JsonValue(JsonCutter(text, table.source_offset(row)).CutValue()).Find("args");
}

}  // namespace meridian
