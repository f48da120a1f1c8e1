#include "critical_path/trace/trace_window.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "critical_path/graph/path_graph.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/dependencies/thread_turns.h"

namespace meridian {
namespace {

bool IsAnnotation(EventCategory category) {
  return category == EventCategory::kAnnotation || category == EventCategory::kStep;
}

// True for what the program did, false for what the profiler did.
bool IsRecordedWork(EventCategory category) {
  return IsHostWork(category) || IsAnnotation(category) || category == EventCategory::kPython;
}

// Returns how well the row answers a question for its name: 0 for the host's annotations, which
// answer best, 1 for its other events, 2 for the device's.
int Grade(const EventTable& table, EventRow row) {
  if (table.track(table.track_id(row)).kind == TrackKind::kDevice) return 2;
  return IsAnnotation(table.category(row)) ? 0 : 1;
}
constexpr int kNumGrades = 3;

TraceWindow Span(const EventTable& table, absl::Span<const EventRow> rows) {
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
    return FailedPrecondition(
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
  std::set<std::string> known;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (IsAnnotation(table.category(row))) known.emplace(table.name(row));
    if (matches[table.name_id(row)]) graded[Grade(table, row)].push_back(row);
  }
  const auto best = std::find_if(graded.begin(), graded.end(),
                                 [](const std::vector<EventRow>& rows) { return !rows.empty(); });
  if (best == graded.end()) return AnnotationNotFound(choice.annotation, known);
  std::stable_sort(best->begin(), best->end(),
                   [&](EventRow a, EventRow b) { return table.start_ps(a) < table.start_ps(b); });
  ASSIGN_OR_RETURN(const NumberRange chosen,
                   ChooseInstances(choice, static_cast<int64_t>(best->size())));
  TraceWindow window =
      Span(table, absl::MakeConstSpan(*best).subspan(chosen.first, chosen.last - chosen.first + 1));
  if (table.track(window.end_track).kind == TrackKind::kHost) window.thread = window.end_track;
  return window;
}

constexpr EventRow kNoRow = std::numeric_limits<EventRow>::max();
// Two instants for each event, and two more for the window, must have numbers.
constexpr size_t kMaxRows = std::numeric_limits<InstantId>::max() / 4;

struct Calls {
  // By row of device work: the call that launched it, or kNoRow.
  std::vector<EventRow> launch_of_row;
  // By row: whether it launches work or waits for it, whatever its category.
  std::vector<bool> is_call;
};

Calls FindCalls(const EventTable& table, const DeviceDependencies& dependencies) {
  Calls calls = {std::vector<EventRow>(table.size(), kNoRow), std::vector<bool>(table.size())};
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind == DeviceDependencyKind::kLaunch) {
      calls.launch_of_row[edge.to] = edge.from;
      calls.is_call[edge.from] = true;
    } else if (!IsDeviceWork(table.category(edge.to))) {
      calls.is_call[edge.to] = true;
    }
  }
  return calls;
}

}  // namespace

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
    return FailedPrecondition("the window is empty: ",
                              choice.annotation.empty()
                                  ? "nothing in the trace takes time"
                                  : absl::StrCat("'", choice.annotation, "' takes no time"));
  }
  return window;
}

absl::StatusOr<WindowRows> ChooseWindowRows(const EventTable& table,
                                            const DeviceDependencies& dependencies,
                                            const TraceWindow& window,
                                            const std::vector<bool>& loads_data) {
  const Calls calls = FindCalls(table, dependencies);
  const std::vector<EventRow>& launch_of_row = calls.launch_of_row;
  const std::vector<bool> is_worker = FindWorkers(table, dependencies);
  const auto starts_in_window = [&](EventRow row) {
    return table.start_ps(row) >= window.start_ps && table.start_ps(row) < window.end_ps;
  };
  const auto is_launched_in_window = [&](EventRow work) {
    if (dependencies.IsEarlier(work)) return false;
    return starts_in_window(launch_of_row[work] == kNoRow ? work : launch_of_row[work]);
  };
  WindowRows result;
  result.end_ps = window.end_ps;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (!IsDeviceWork(table.category(row)) || !is_launched_in_window(row)) continue;
    result.end_ps = std::max(result.end_ps, table.end_ps(row));
  }
  int64_t length_ps = 0;
  if (__builtin_sub_overflow(result.end_ps, window.start_ps, &length_ps)) {
    return absl::OutOfRangeError("the window's work ends more than 106 days after its start");
  }
  const auto is_chosen_on_host = [&](EventRow row) {
    const bool is_work = (is_worker[table.track_id(row)] &&
                          (calls.is_call[row] || IsHostWork(table.category(row)))) ||
                         loads_data[table.name_id(row)];
    return is_work && (starts_in_window(row) || (table.start_ps(row) < window.start_ps &&
                                                 table.end_ps(row) > window.start_ps));
  };
  const auto is_chosen_on_device = [&](EventRow row) {
    if (!IsDeviceWork(table.category(row))) return false;
    if (is_launched_in_window(row)) return true;
    const EventRow launch = launch_of_row[row];
    if (launch != kNoRow && table.start_ps(launch) >= window.end_ps) return false;
    return table.start_ps(row) < result.end_ps && table.end_ps(row) > window.start_ps;
  };
  for (EventRow row = 0; row < table.size(); ++row) {
    const bool is_host = table.track(table.track_id(row)).kind == TrackKind::kHost;
    if (is_host ? is_chosen_on_host(row) : is_chosen_on_device(row)) result.rows.push_back(row);
  }
  if (result.rows.empty()) {
    return FailedPrecondition("the window is empty: no operator, call or device work is in it");
  }
  if (result.rows.size() > kMaxRows) {
    return absl::OutOfRangeError("the window holds more than a billion events; choose a shorter");
  }
  return result;
}

}  // namespace meridian
