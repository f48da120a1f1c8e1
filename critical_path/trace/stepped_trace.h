// SPDX-License-Identifier: Apache-2.0
// What stays of a trace so that graphs of a few of its steps can be made, one after the other: the
// rows of its graph, step by step, in files without a name.
//
//   host       before | step 2     | step 3     | step 4     after
//   stream              |-- of 2 --|-- of 2 --|-- of 3 --|-- of 4 --|
//   stretch    0                   | 1          | 2
//
// A stretch lasts until the next step begins. What the host launches in it belongs to it, whenever
// that runs. A trace without steps is one stretch.
#ifndef CRITICAL_PATH_TRACE_STEPPED_TRACE_H_
#define CRITICAL_PATH_TRACE_STEPPED_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/trace/trace_graph.h"
#include "critical_path/trace/trace_window.h"
#include "xla_profiler/base/buckets.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/stored_vector.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

class SteppedTrace {
 public:
  // Keeps the rows of what belongs to the window; the folder is for the files. The events have no
  // steps and bound_by of their own. Errors are those of ChooseWindowRows.
  static absl::StatusOr<SteppedTrace> Create(const RankEvents& events, const TraceWindow& window,
                                             const TraceGraphOptions& options,
                                             FileSystem& file_system, const std::string& folder);

  // By stretch: the number of its step. Empty for a trace without steps.
  const std::vector<int64_t>& steps() const { return steps_; }
  size_t stretches() const { return row_begins_.size() - 1; }
  size_t RowsIn(size_t stretch) const { return row_begins_[stretch + 1] - row_begins_[stretch]; }

  // Returns the last stretch that begins before the device has done what the host launched in that one:
  // what the device did then is on the path only if the host was not late afterwards. It is no more
  // than 16 behind it.
  size_t LastBegunDuring(size_t stretch) const;

  // Builds the graph of the stretches from the first to the last: that of BuildTraceGraph where they
  // are all, else of a window from where the first begins to where the one after the last does. What
  // was launched before and still runs then is in no step. May be called by several threads at once.
  absl::StatusOr<PathGraph> BuildGraph(size_t first, size_t last,
                                       const TraceGraphOptions& options) const;

 private:
  struct KeptRow {
    int64_t start_ps = 0;
    int64_t duration_ps = 0;
    // Its number in the table, and its event's place in the file.
    EventRow row = 0;
    uint32_t position = 0;
    TrackId track = 0;
    NameId name = 0;
    EventCategory category = EventCategory::kUnknown;
    // DeviceDependencies::IsEarlier.
    bool is_earlier = false;
  };

  SteppedTrace() = default;
  uint32_t StretchAt(int64_t time_ps) const;
  void KeepRows(const RankEvents& events, absl::Span<const uint32_t> stretch_of_row);
  void KeepDependencies(const std::vector<DeviceDependency>& edges,
                        absl::Span<const uint32_t> stretch_of_row);

  int64_t base_ns_ = 0;
  std::vector<Track> tracks_;
  StringPool names_;
  TraceWindow window_;
  // The thread that others serve, in all windows the same.
  std::optional<TrackId> home_;
  // By stretch: the number and the start of its step, and when its device work has ended.
  std::vector<int64_t> steps_;
  std::vector<int64_t> starts_ps_;
  std::vector<int64_t> ends_ps_;
  // By stretch, and in that in the order of the table; of dependencies that of the row that waits.
  StoredVector<KeptRow> rows_;
  StoredVector<DeviceDependency> dependencies_;
  // By stretch: where its rows and dependencies begin; one more for the end.
  std::vector<size_t> row_begins_;
  std::vector<size_t> dependency_begins_;
  // By stretch: places in rows_ of what began in earlier ones and had not ended when it began.
  Buckets<uint32_t> carried_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_STEPPED_TRACE_H_
