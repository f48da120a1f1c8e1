// SPDX-License-Identifier: Apache-2.0
// A trace as viewers know it, in terms of no file format:
//
//   process   a plane, or one node's part of a plane that several nodes share
//     track   a line; or what of it overlaps; or a counter
//       slice an event; slices of a track nest
//       arrow from a launch to the work it caused, or through what belongs together
//
// trace_export.cc walks the profile and tells the sink, which writes one format.
#ifndef XLA_PROFILER_TRACE_EXPORT_TRACE_SINK_H_
#define XLA_PROFILER_TRACE_EXPORT_TRACE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/trace_json/trace_json_writer.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// Ids are unique among all processes and tracks, and positive.
struct TraceProcess {
  int64_t id = 0;
  std::string name;
  // Its place among the processes, from 0.
  int64_t position = 0;
};

struct TraceTrack {
  enum class Kind { kLine, kOverlap, kCounter };

  int64_t id = 0;
  Kind kind = Kind::kLine;
  int64_t process_id = 0;
  // The line's own track: this one's id unless it takes what overlaps there. 0 for counters.
  int64_t line_id = 0;
  std::string name;
  // Its place among the lines of the process, from 0; that of the line for what overlaps there.
  int64_t position = 0;
  // Of a counter's values, e.g. "ns"; empty when it is not known.
  std::string unit;
};

// Where an arrow starts, ends or passes: at a slice. The parts come in order of time; at one time,
// in the order in which they are told.
struct TraceFlow {
  // Unique in the trace; below 2^53, so that all readers of JSON keep it.
  uint64_t id = 0;
  FlowPhase phase = FlowPhase::kStart;
  // What the arrow shows, e.g. "launch".
  absl::string_view name;
};

struct TraceSlice {
  static constexpr size_t kMaxArgs = 256;

  // Picoseconds from the session's start.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  // Empty when it is not known. Texts of one category lie at one address within a plane.
  absl::string_view category;
  absl::Span<const TraceFlow> flows;
  // Tells the name, and with it what the slice shares with others.
  const XEventMetadata* metadata = nullptr;
  // Numbers and texts, at most kMaxArgs: those of the metadata that the event does not have itself,
  // then the event's own.
  absl::Span<const XStatVisitor* const> args;

  // What to show: the display name if there is one; then the full name is worth an argument.
  absl::string_view name() const {
    return metadata->display_name.empty() ? metadata->name : metadata->display_name;
  }
  absl::string_view long_name() const {
    return metadata->display_name.empty() ? absl::string_view() : metadata->name;
  }
};

inline constexpr absl::string_view kLongNameArg = "long_name";

// Picoseconds from the session's start, both ends included.
struct TimeRange {
  int64_t min_ps = std::numeric_limits<int64_t>::min();
  int64_t max_ps = std::numeric_limits<int64_t>::max();
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // The times that the format can hold. Events that start before or end after are not told to it.
  virtual TimeRange range() const { return TimeRange(); }

  // Called for each process, in order, before anything else of it.
  virtual absl::Status AddProcess(const TraceProcess& process) = 0;

  // Called for each track before anything else of it, at any time.
  virtual absl::Status AddTrack(const TraceTrack& track) = 0;

  // From here on, metadata and stats are this plane's, until the next call.
  virtual absl::Status BeginPlane(const XPlaneVisitor& plane) = 0;

  // Slices of one track come in order and nested: one begins, its children begin and end, it ends.
  virtual absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) = 0;

  // Ends the innermost open slice of the track; not called for slices without duration.
  virtual absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) = 0;

  // The value is a finite number.
  virtual absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                                       const XStatVisitor& value) = 0;

  // Ends the trace and writes what is still held back. The output is left open.
  virtual absl::Status Finish() = 0;
};

// The sinks of the formats. `out` must outlive them. `start_ns` is the Unix time of the session's
// start, from which times count; nullopt when it is not known.
std::unique_ptr<TraceSink> NewTraceJsonSink(std::optional<int64_t> start_ns, ByteSink* out);
std::unique_ptr<TraceSink> NewPerfettoSink(std::optional<int64_t> start_ns,
                                           absl::Span<const ShownTimes> clock_readings,
                                           ByteSink* out);

// A name or text in a trace is at most this long, whatever the file holds: names may be a whole HLO
// instruction, and values repeat with every event.
inline constexpr size_t kMaxNameCharacters = 4000;
inline constexpr size_t kMaxValueCharacters = 1000;

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_TRACE_SINK_H_
