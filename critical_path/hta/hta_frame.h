// SPDX-License-Identifier: Apache-2.0
// A Kineto trace as the loader of HTA (Holistic Trace Analysis 0.6.1) leaves it: the events it
// keeps, in its order, with its times and its links between calls and device work. What it does is
// kept, mistakes included, since the analysis that follows shall give HTA's numbers:
//
// - Events with `dur` and `cat`, except for category Trace. An event's id is its place in the file.
// - Times are doubles of microseconds. If any event's ts has a fraction or is missing, starts are
//   rounded up and ends down to whole microseconds, so that durations may become 0 or -1.
// - All times then count from the earliest start.
// - A device event is one with a stream and a correlation, or "Event Sync" or "Context Sync". Of
//   several device events with one correlation (a CUDA graph) the host's call knows only the last.
// - With more than one ProfilerStep, only what the host did before the last step stays, and the
//   device events of those calls. Device events then come first.
#ifndef CRITICAL_PATH_HTA_HTA_FRAME_H_
#define CRITICAL_PATH_HTA_HTA_FRAME_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/graph_source.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {

struct HtaRow {
  // The event's id, its place in the file.
  uint32_t index = 0;
  NameId name = 0;
  // Ids of the frame's texts.
  NameId category = 0;
  NameId process = 0;
  NameId thread = 0;
  // Times in ps from the frame's base_ns. The duration may be 0 or -1 us after rounding.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  // -1 when the event has none.
  int64_t stream = -1;
  int64_t correlation = -1;
  // The id of the call's device event, or of the device event's call. -1: the event has no
  // correlation; 0: its partner is not in the trace.
  int64_t partner = -1;

  int64_t end_ps() const { return start_ps + duration_ps; }
};

// What a cuda_sync event waits for: the cudaEventRecord call with that correlation, on that stream.
struct HtaWait {
  int64_t stream = -1;
  int64_t record_correlation = -1;
};

struct HtaFrame {
  // The rank that the trace's header gives, or 0.
  int64_t rank = 0;
  // Unix time of the earliest start, from which all times count.
  int64_t base_ns = 0;
  // The rows, in the order in which HTA has them.
  std::vector<HtaRow> rows;
  StringPool names;
  // The texts of categories, pids and tids.
  StringPool texts;
  // What cuda_sync events wait for, by event id.
  absl::flat_hash_map<uint32_t, HtaWait> waits;
  // By event id: its place in rows, or kNoRow when HTA has dropped it.
  std::vector<uint32_t> row_of_index;
  TraceJsonProblems problems;

  static constexpr uint32_t kNoRow = UINT32_MAX;

  // Returns the row of that event, or nullptr when HTA has dropped it.
  const HtaRow* Find(int64_t index) const {
    if (index < 0 || static_cast<uint64_t>(index) >= row_of_index.size()) return nullptr;
    const uint32_t row = row_of_index[index];
    return row == kNoRow ? nullptr : &rows[row];
  }
};

// Errors are those of ReadTraceJson with `name`, the file's, in front; a trace without any event of
// use is FailedPrecondition.
absl::StatusOr<HtaFrame> LoadHtaFrame(absl::string_view text, absl::string_view name);

// The rows of a frame that HTA's critical path looks at.
struct HtaWindow {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Places in the frame's rows, in order of the events' ids.
  std::vector<uint32_t> rows;
};

// The window spans the chosen occurrences of the annotation, which are events of any kind in the
// frame's order. In it are
//
// - events without a stream that start in the window and last longer than 0,
// - events with a stream whose call is one of those,
// - every "Stream Wait Event" with a stream, whenever it is.
//
// NotFound when the annotation does not occur, naming those there are; OutOfRange when it occurs
// too seldom.
absl::StatusOr<HtaWindow> ChooseHtaWindow(const HtaFrame& frame, const WindowChoice& choice);

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_HTA_FRAME_H_
