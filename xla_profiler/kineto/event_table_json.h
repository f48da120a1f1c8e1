// SPDX-License-Identifier: Apache-2.0
// Loads trace JSON, Kineto's or any other in Chrome's format, into an event table.
#ifndef XLA_PROFILER_KINETO_EVENT_TABLE_JSON_H_
#define XLA_PROFILER_KINETO_EVENT_TABLE_JSON_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {

struct TraceJsonTable {
  EventTable table;
  // For each row the place of its event in the file's array, from 0; of a begin and its end the
  // begin's.
  std::vector<uint32_t> positions;
  // The members beside the events; their values point into the text.
  TraceJsonHeader header;
  // What was wrong with events that could not be used.
  TraceJsonProblems problems;
};

// Makes a row of each complete event (X) and of each begin (B) with its end (E, the next on the
// same thread that no later begin has taken). A begin without an end lasts until the last row's end.
// Marks, arrows and counters are left out. There is a track for each pid and tid, named by the
// metadata events. Work that Kineto reports from a device gets tracks of its own (kind kDevice,
// device_id = pid), since in a container a process may well have the same number as a device. The
// correlation is `args.correlation`.
//
// Times are kept to the picosecond. The table's base is the file's baseTimeNanoseconds (0 when
// there is none) plus the first believable row's ts in whole nanoseconds, so that epoch times fit;
// events that are 106 days or more away from it are counted as problems. Source offsets lead back
// to the event's object.
//
// Errors are those of ReadTraceJson with `name`, the file's, in front. The text must outlive the
// header.
absl::StatusOr<TraceJsonTable> LoadTraceJson(absl::string_view text, absl::string_view name);

// Returns the `args` of a row that LoadTraceJson made from the text; a value that does not exist
// when the event has none. Of a begin and its end these are the begin's. Costs a walk over the
// event.
JsonValue ReadTraceJsonArgs(absl::string_view text, const EventTable& table, EventRow row);

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_EVENT_TABLE_JSON_H_
