#include "critical_path/hta/hta_frame.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr absl::string_view kStepPrefix = "ProfilerStep#";

// Returns the double that Python reads for a number of microseconds with these picoseconds.
double ToMicros(absl::int128 ps) {
  return static_cast<double>(static_cast<int64_t>(ps / kPsPerUs)) +
         static_cast<double>(static_cast<int64_t>(ps % kPsPerUs)) / kPsPerUs;
}

bool IsStepName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kStepPrefix) && !name.empty() &&
         absl::ascii_isdigit(name.front());
}

class Loader {
 public:
  absl::StatusOr<HtaFrame> Load(absl::string_view text) {
    event_sync_ = frame_.names.Intern("Event Sync");
    context_sync_ = frame_.names.Intern("Context Sync");
    const auto take = [this](const TraceJsonEvent& event) {
      Take(event);
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(const TraceJsonHeader header, ReadTraceJson(text, take, &frame_.problems));
    if (frame_.rows.empty()) {
      return FailedPrecondition(
          "no event has a duration and a category; is this a trace of PyTorch's profiler?");
    }
    const bool misses_starts = frame_.problems.count(TraceJsonProblem::kMissingTime) > 0;
    if (has_fractional_starts_ || misses_starts) RoundTimes();
    RETURN_IF_ERROR(CountFromEarliest(header.base_time_ns));
    frame_.rank = header.Find("distributedInfo").Find("rank").AsInt64().value_or(0);
    LinkPartners();
    DropLastStep();
    if (frame_.rows.empty()) {
      return FailedPrecondition(
          "nothing happens before the last ProfilerStep, which HTA leaves out");
    }
    IndexRows();
    return std::move(frame_);
  }

 private:
  void Take(const TraceJsonEvent& event) {
    if (!event.ts_ps.has_value() || *event.ts_ps % kPsPerUs != 0) has_fractional_starts_ = true;
    if (!event.has_dur || !event.ts_ps.has_value()) return;
    if (event.cat.empty() || event.cat == "Trace") return;
    if (!NarrowToInt64(*event.ts_ps / kPsPerUs).has_value() || event.position >= HtaFrame::kNoRow) {
      frame_.problems.Add(TraceJsonProblem::kTimeOutOfRange, event.offset);
      return;
    }
    HtaRow row;
    row.index = static_cast<uint32_t>(event.position);
    row.name = frame_.names.Intern(event.name);
    row.category = frame_.texts.Intern(event.cat);
    row.process = frame_.texts.Intern(event.pid);
    row.thread = frame_.texts.Intern(event.tid);
    ReadArgs(event.args, &row);
    frame_.rows.push_back(row);
    start_us_.push_back(ToMicros(*event.ts_ps));
    duration_us_.push_back(ToMicros(event.dur_ps));
  }

  void ReadArgs(const JsonValue& args, HtaRow* row) {
    if (!args.exists()) return;
    HtaWait wait;
    const std::pair<absl::string_view, int64_t*> fields[] = {
        {"stream", &row->stream},
        {"correlation", &row->correlation},
        {"wait_on_stream", &wait.stream},
        {"wait_on_cuda_event_record_corr_id", &wait.record_correlation}};
    JsonCutter cutter(args.text());
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const JsonValue value(cutter.CutValue());
      for (const auto& [name, number] : fields) {
        if (key == name) *number = value.AsInt64().value_or(-1);
      }
    }
    if (wait.stream != -1 || wait.record_correlation != -1) frame_.waits[row->index] = wait;
  }

  void RoundTimes() {
    for (size_t i = 0; i < start_us_.size(); ++i) {
      const double end_us = std::floor(start_us_[i] + duration_us_[i]);
      start_us_[i] = std::ceil(start_us_[i]);
      duration_us_[i] = end_us - start_us_[i];
    }
  }

  absl::Status CountFromEarliest(std::optional<int64_t> base_time_ns) {
    const double earliest_us = *std::min_element(start_us_.begin(), start_us_.end());
    // With this limit the sums of a few times fit an int64 of picoseconds.
    constexpr double kMaxMicros = 2e12;
    for (size_t i = 0; i < frame_.rows.size(); ++i) {
      const double start_us = start_us_[i] - earliest_us;
      if (start_us > kMaxMicros || duration_us_[i] > kMaxMicros) {
        return InvalidArgument("event ", frame_.rows[i].index,
                               " lies or lasts more than 23 days after the first one");
      }
      frame_.rows[i].start_ps = std::llround(start_us * kPsPerUs);
      frame_.rows[i].duration_ps = std::llround(duration_us_[i] * kPsPerUs);
    }
    const absl::int128 base_ns = absl::int128(base_time_ns.value_or(0)) +
                                 absl::int128(static_cast<int64_t>(earliest_us)) * 1000;
    if (!NarrowToInt64(base_ns).has_value()) {
      return InvalidArgument("the first event lies beyond the year 2262");
    }
    frame_.base_ns = static_cast<int64_t>(base_ns);
    return absl::OkStatus();
  }

  void LinkPartners() {
    // The last row of a correlation on the host and on the device; null when there is none.
    struct Sides {
      const HtaRow* host = nullptr;
      const HtaRow* device = nullptr;
    };
    absl::flat_hash_map<int64_t, Sides> sides;
    for (const HtaRow& row : frame_.rows) {
      if (row.correlation == -1) continue;
      (IsDeviceRow(row) ? sides[row.correlation].device : sides[row.correlation].host) = &row;
    }
    for (HtaRow& row : frame_.rows) {
      row.partner = std::min<int64_t>(row.correlation, 0);
      if (row.correlation == -1) continue;
      const Sides& side = sides[row.correlation];
      const HtaRow* partner = IsDeviceRow(row) ? side.host : side.device;
      if (partner != nullptr) row.partner = partner->index;
    }
  }

  void DropLastStep() {
    const std::optional<int64_t> last_step_ps = LastStepStart();
    if (!last_step_ps.has_value()) return;
    // The correlations of the host's rows that stay.
    absl::flat_hash_set<int64_t> kept;
    std::vector<HtaRow> device_rows, host_rows;
    for (const HtaRow& row : frame_.rows) {
      if (IsDeviceRow(row) || row.start_ps >= *last_step_ps) continue;
      kept.insert(row.correlation);
      host_rows.push_back(row);
    }
    // A join gives device rows correlation by correlation, in the order of first use.
    absl::flat_hash_map<int64_t, uint32_t> place;
    for (const HtaRow& row : frame_.rows) {
      if (!IsDeviceRow(row) || !kept.contains(row.correlation)) continue;
      place.try_emplace(row.correlation, static_cast<uint32_t>(place.size()));
      device_rows.push_back(row);
    }
    std::stable_sort(device_rows.begin(), device_rows.end(), [&](const HtaRow& a, const HtaRow& b) {
      return place[a.correlation] < place[b.correlation];
    });
    frame_.rows = std::move(device_rows);
    frame_.rows.insert(frame_.rows.end(), host_rows.begin(), host_rows.end());
  }

  void IndexRows() {
    uint32_t last = 0;
    for (const HtaRow& row : frame_.rows) last = std::max(last, row.index);
    frame_.row_of_index.assign(size_t{last} + 1, HtaFrame::kNoRow);
    for (uint32_t i = 0; i < frame_.rows.size(); ++i) {
      frame_.row_of_index[frame_.rows[i].index] = i;
    }
  }

  bool IsDeviceRow(const HtaRow& row) const {
    return (row.stream >= 0 && row.correlation >= 0) || row.name == event_sync_ ||
           row.name == context_sync_;
  }
  // Returns the start of the last step as the host sees it; nullopt unless there are several.
  std::optional<int64_t> LastStepStart() const {
    absl::flat_hash_set<NameId> steps;
    std::optional<int64_t> last_ps;
    for (const HtaRow& row : frame_.rows) {
      if (!IsStepName(frame_.names.Get(row.name))) continue;
      steps.insert(row.name);
      if (!IsDeviceRow(row)) last_ps = std::max(last_ps.value_or(row.start_ps), row.start_ps);
    }
    return steps.size() > 1 ? last_ps : std::nullopt;
  }

  HtaFrame frame_;
  NameId event_sync_ = 0;
  NameId context_sync_ = 0;
  // Times as the file has them, in microseconds, by row of the frame.
  std::vector<double> start_us_, duration_us_;
  // Whether any start is no whole number: Pandas then has doubles for all of them, which HTA
  // rounds.
  bool has_fractional_starts_ = false;
};

absl::Status ChooseSpan(const HtaFrame& frame, const WindowChoice& choice, HtaWindow* window) {
  window->start_ps = std::numeric_limits<int64_t>::max();
  window->end_ps = std::numeric_limits<int64_t>::min();
  std::set<std::string> known;
  int64_t occurrences = 0;
  for (const HtaRow& row : frame.rows) {
    const absl::string_view name = frame.names.Get(row.name);
    const absl::string_view category = frame.texts.Get(row.category);
    if (category == "user_annotation" || category == "gpu_user_annotation") known.emplace(name);
    if (!absl::StrContains(name, choice.annotation)) continue;
    if (!choice.instances.Contains(occurrences++)) continue;
    window->start_ps = std::min(window->start_ps, row.start_ps);
    window->end_ps = std::max(window->end_ps, row.end_ps());
  }
  if (occurrences == 0) return AnnotationNotFound(choice.annotation, known);
  return ChooseInstances(choice, occurrences).status();
}

}  // namespace

absl::StatusOr<HtaFrame> LoadHtaFrame(absl::string_view text, absl::string_view name) {
  return Annotate(Loader().Load(text), name);
}

absl::StatusOr<HtaWindow> ChooseHtaWindow(const HtaFrame& frame, const WindowChoice& choice) {
  HtaWindow window;
  // Without an annotation the window spans all events: every name contains the empty text.
  WindowChoice spanned = choice;
  if (choice.annotation.empty()) {
    spanned.instances = {0, std::numeric_limits<int64_t>::max()};
  }
  RETURN_IF_ERROR(ChooseSpan(frame, spanned, &window));
  std::vector<bool> chosen(frame.rows.size());
  for (uint32_t i = 0; i < frame.rows.size(); ++i) {
    const HtaRow& row = frame.rows[i];
    if (row.stream != -1) {
      if (frame.names.Get(row.name) == "Stream Wait Event") chosen[i] = true;
      continue;
    }
    if (row.start_ps < window.start_ps || row.start_ps > window.end_ps) continue;
    if (row.duration_ps <= 0) continue;
    chosen[i] = true;
    const HtaRow* partner = frame.Find(row.partner);
    if (partner != nullptr && partner->stream != -1) chosen[partner - frame.rows.data()] = true;
  }
  for (uint32_t row : frame.row_of_index) {
    if (row != HtaFrame::kNoRow && chosen[row]) window.rows.push_back(row);
  }
  return window;
}

}  // namespace meridian
