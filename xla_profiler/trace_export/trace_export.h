// SPDX-License-Identifier: Apache-2.0
// Exports of a profile for viewers: an XSpace of one node, or a combined file, of any size.
//
// Memory: the metadata of one plane, the names of all lines, and, for a line whose events are not
// in order (none of the known profilers writes such), up to 80 bytes for each of them.
#ifndef XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_
#define XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// What clocks showed at one instant.
struct ShownTimes {
  // Unix time on the profile's clock, and on the nodes' own clocks, by id of the node. Those of
  // negative ids, and of ids beyond 32 bits, are not written.
  int64_t time_ns = 0;
  std::map<int64_t, int64_t> node_times_ns;
};

// The ranks of devices, by the id of the node and the name that the node has for the plane.
using DeviceRanks = std::map<std::pair<int64_t, std::string>, int64_t>;

// Stats of events in ExportOptions::additions that are shown as arrows: the number of an arrow that
// starts here, passes, or ends; its other parts are of the additions, too. The parts of an arrow are
// in order of time in whole ns; at one time, in the order of the lines.
inline constexpr absl::string_view kArrowStartStat = "arrow_start";
inline constexpr absl::string_view kArrowStepStat = "arrow_step";
inline constexpr absl::string_view kArrowEndStat = "arrow_end";
// With `correlation_id`, the node whose kernel the event stands for: an arrow joins them.
inline constexpr absl::string_view kArrowNodeStat = "node_id";

// In Perfetto's format the clock of a node has this number plus the node's id.
inline constexpr uint32_t kFirstNodeClock = 128;

struct ExportOptions {
  // Unix time of the session's start; nullopt when the file is to tell.
  std::optional<int64_t> profile_start_ns;
  // Planes that are shown before those of the profile, whose lines count from the same start; may be
  // null. It must outlive the export.
  const XSpaceReader* additions = nullptr;
  DeviceRanks ranks;
  // For Perfetto, in order of time and not before the profile's start: whoever has other records of a node finds their place with
  // these, drift included.
  std::vector<ShownTimes> clock_readings;
  // Called now and then with the file offset reached; may be null.
  std::function<void(uint64_t offset)> progress;
};

struct ExportStats {
  // Events that were written, readings of counters aside.
  int64_t slices = 0;
  // Events that were not: those that stand for several and have no start, those of negative duration,
  // those at times that the format cannot hold, those that overlap more than
  // NestingLanes::kMaxLanes others.
  int64_t left_out = 0;
};

// Writes Chrome's trace JSON, for chrome://tracing, Perfetto and whatever reads JSON. Times count
// from the session's start; the document tells the start as `baseTimeNanoseconds` when it is known.
// The caller compresses if that is wanted (GzipSink).
//
// Here and below: errors name the profile and the position, and leave `out` with half a trace.
absl::StatusOr<ExportStats> ExportTraceJson(const XSpaceReader& reader,
                                            const ExportOptions& options, ByteSink& out);

// Writes Perfetto's own format, for ui.perfetto.dev and trace_processor; perfetto_sink.cc tells
// what is lost. Timestamps are Unix nanoseconds when the session's start is known.
absl::StatusOr<ExportStats> ExportPerfetto(const XSpaceReader& reader, const ExportOptions& options,
                                           ByteSink& out);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_TRACE_EXPORT_H_
