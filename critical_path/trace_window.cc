#include "critical_path/trace_window.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

bool IsAnnotation(EventCategory category) {
  return category == EventCategory::kAnnotation || category == EventCategory::kStep;
}

// What the program did, other than what the profiler did.
bool IsRecordedWork(EventCategory category) {
  return IsHostWork(category) || IsAnnotation(category) || category == EventCategory::kPython;
}

// How good an answer the row is to a name that it contains: 0 is best.
int Grade(const EventTable& table, EventRow row) {
  if (table.track(table.track_id(row)).kind == TrackKind::kDevice) return 2;
  return IsAnnotation(table.category(row)) ? 0 : 1;
}
constexpr int kNumGrades = 3;

TraceWindow Span(const EventTable& table, const std::vector<EventRow>& rows) {
  TraceWindow window;
  window.start_ps = std::numeric_limits<int64_t>::max();
  window.end_ps = std::numeric_limits<int64_t>::min();
  for (EventRow row : rows) {
    window.start_ps = std::min(window.start_ps, table.start_ps(row));
    if (table.end_ps(row) < window.end_ps) continue;
    window.end_ps = table.end_ps(row);
    window.end_track = table.track_id(row);
  }
  return window;
}

absl::StatusOr<TraceWindow> SpanWork(const EventTable& table,
                                     const DeviceDependencies& dependencies) {
  const std::vector<bool> is_worker = FindWorkers(table, dependencies);
  std::vector<EventRow> rows;
  bool has_device_work = false;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (IsDeviceWork(table.category(row))) {
      has_device_work = true;
      rows.push_back(row);
    } else if (is_worker[table.track_id(row)] && IsRecordedWork(table.category(row))) {
      rows.push_back(row);
    }
  }
  if (!has_device_work) {
    return absl::FailedPreconditionError(
        "the trace has no kernel, copy or set; was the profiler told to record the device?");
  }
  return Span(table, rows);
}

absl::StatusOr<TraceWindow> SpanAnnotation(const EventTable& table, const WindowChoice& choice) {
  std::vector<bool> matches(table.names().size());
  for (NameId name = 0; name < matches.size(); ++name) {
    matches[name] = absl::StrContains(table.names().Get(name), choice.annotation);
  }
  std::array<std::vector<EventRow>, kNumGrades> graded;
  KnownAnnotations known;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (IsAnnotation(table.category(row))) known.Add(table.name(row));
    if (matches[table.name_id(row)]) graded[Grade(table, row)].push_back(row);
  }
  const auto best = std::find_if(graded.begin(), graded.end(),
                                 [](const std::vector<EventRow>& rows) { return !rows.empty(); });
  if (best == graded.end()) return known.NotFound(choice.annotation);
  std::stable_sort(best->begin(), best->end(),
                   [&](EventRow a, EventRow b) { return table.start_ps(a) < table.start_ps(b); });
  const int64_t occurrences = static_cast<int64_t>(best->size());
  if (occurrences <= choice.instances.first) return NoSuchInstance(choice, occurrences);
  const int64_t last = std::min(choice.instances.last, occurrences - 1);
  const std::vector<EventRow> rows(best->begin() + choice.instances.first,
                                   best->begin() + last + 1);
  TraceWindow window = Span(table, rows);
  if (table.track(window.end_track).kind == TrackKind::kHost) window.thread = window.end_track;
  return window;
}

}  // namespace

bool IsHostWork(EventCategory category) {
  return category == EventCategory::kCpuOp || category == EventCategory::kRuntimeApi;
}

bool IsDeviceWork(EventCategory category) {
  return category == EventCategory::kKernel || category == EventCategory::kMemcpy ||
         category == EventCategory::kMemset;
}

std::vector<bool> FindWorkers(const EventTable& table, const DeviceDependencies& dependencies) {
  std::vector<bool> is_worker(table.tracks().size());
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) == EventCategory::kCpuOp) is_worker[table.track_id(row)] = true;
  }
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind == DeviceDependencyKind::kLaunch) is_worker[table.track_id(edge.from)] = true;
  }
  return is_worker;
}

absl::StatusOr<TraceWindow> ChooseTraceWindow(const EventTable& table,
                                              const DeviceDependencies& dependencies,
                                              const WindowChoice& choice) {
  ASSIGN_OR_RETURN(TraceWindow window, SpanWork(table, dependencies));
  if (!choice.annotation.empty()) {
    ASSIGN_OR_RETURN(window, SpanAnnotation(table, choice));
  }
  int64_t length_ps = 0;
  if (__builtin_sub_overflow(window.end_ps, window.start_ps, &length_ps)) {
    return absl::OutOfRangeError("the window spans more than 106 days");
  }
  if (length_ps == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the window is empty: ", choice.annotation.empty()
                                     ? "nothing in the trace takes time"
                                     : absl::StrCat("'", choice.annotation, "' takes no time")));
  }
  return window;
}

}  // namespace meridian
