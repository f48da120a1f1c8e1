#include "critical_path/window_rows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "critical_path/path_graph.h"

namespace meridian {
namespace {

constexpr EventRow kNoRow = std::numeric_limits<EventRow>::max();
// Two nodes for each event and two more must have numbers.
constexpr size_t kMaxRows = std::numeric_limits<NodeId>::max() / 4;

class Chooser {
 public:
  Chooser(const EventTable& table, const DeviceDependencies& dependencies,
          const TraceWindow& window, const std::vector<bool>& loads_data)
      : table_(table),
        window_(window),
        loads_data_(loads_data),
        launch_of_row_(table.size(), kNoRow),
        is_call_(table.size()) {
    for (const DeviceDependency& edge : dependencies.edges) {
      if (edge.kind == DependencyKind::kLaunch) {
        launch_of_row_[edge.to] = edge.from;
        is_call_[edge.from] = true;
      } else if (!IsDeviceWork(table.category(edge.to))) {
        is_call_[edge.to] = true;
      }
    }
    result_.end_ps = window.end_ps;
  }

  absl::StatusOr<WindowRows> Choose() {
    ExtendWindow();
    int64_t length_ps = 0;
    if (__builtin_sub_overflow(result_.end_ps, window_.start_ps, &length_ps)) {
      return absl::OutOfRangeError("the window's work ends more than 106 days after its start");
    }
    for (EventRow row = 0; row < table_.size(); ++row) {
      if (!IsChosen(row)) continue;
      result_.rows.push_back(row);
      if (IsDeviceWork(table_.category(row)) && launch_of_row_[row] == kNoRow) {
        ++result_.without_launch;
      }
    }
    if (result_.rows.empty()) {
      return absl::FailedPreconditionError(
          "the window is empty: no operator, call or device work is in it");
    }
    if (result_.rows.size() > kMaxRows) {
      return absl::OutOfRangeError("the window holds more than a billion events; choose a shorter");
    }
    return std::move(result_);
  }

 private:
  bool StartsInWindow(EventRow row) const {
    return table_.start_ps(row) >= window_.start_ps && table_.start_ps(row) < window_.end_ps;
  }

  bool IsLaunchedInWindow(EventRow work) const {
    const EventRow launch = launch_of_row_[work];
    return StartsInWindow(launch == kNoRow ? work : launch);
  }

  void ExtendWindow() {
    for (EventRow row = 0; row < table_.size(); ++row) {
      if (!IsDeviceWork(table_.category(row)) || !IsLaunchedInWindow(row)) continue;
      result_.end_ps = std::max(result_.end_ps, table_.end_ps(row));
    }
  }

  bool IsChosen(EventRow row) const {
    return table_.track(table_.track_id(row)).kind == TrackKind::kHost ? IsChosenHostRow(row)
                                                                       : IsChosenDeviceRow(row);
  }

  bool IsChosenHostRow(EventRow row) const {
    const bool is_work =
        is_call_[row] || IsHostWork(table_.category(row)) || loads_data_[table_.name_id(row)];
    if (!is_work) return false;
    return StartsInWindow(row) ||
           (table_.start_ps(row) < window_.start_ps && table_.end_ps(row) > window_.start_ps);
  }

  bool IsChosenDeviceRow(EventRow row) const {
    if (!IsDeviceWork(table_.category(row))) return false;
    if (IsLaunchedInWindow(row)) return true;
    const EventRow launch = launch_of_row_[row];
    if (launch != kNoRow && table_.start_ps(launch) >= window_.end_ps) return false;
    return table_.start_ps(row) < result_.end_ps && table_.end_ps(row) > window_.start_ps;
  }

  const EventTable& table_;
  const TraceWindow& window_;
  const std::vector<bool>& loads_data_;
  // For each row of device work the call that launched it, or kNoRow.
  std::vector<EventRow> launch_of_row_;
  // True for rows that launch work or wait for it, whatever their category.
  std::vector<bool> is_call_;
  WindowRows result_;
};

}  // namespace

absl::StatusOr<WindowRows> ChooseWindowRows(const EventTable& table,
                                            const DeviceDependencies& dependencies,
                                            const TraceWindow& window,
                                            const std::vector<bool>& loads_data) {
  return Chooser(table, dependencies, window, loads_data).Choose();
}

}  // namespace meridian
