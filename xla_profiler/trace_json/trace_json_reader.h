// SPDX-License-Identifier: Apache-2.0
// Reads the events of a Chrome trace document, as Chrome, Kineto (PyTorch) and the trace viewer
// write it, one event at a time: the text is cut into events (json_cutter.h) and each is parsed
// alone, so memory does not grow with the file.
//
// What is looked at, per event: ph, name, cat, pid, tid, ts, dur. `args` is handed out as
// text to be asked on demand. Unknown fields are ignored, of repeated fields the last counts. An
// event that cannot be used is counted in TraceJsonProblems and skipped; what is never asked for
// (the inside of args, unknown fields) is not checked. An empty object, with which the trace viewer
// ends its array, is no event and no problem.
#ifndef XLA_PROFILER_TRACE_JSON_TRACE_JSON_READER_H_
#define XLA_PROFILER_TRACE_JSON_TRACE_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/json/json_value.h"

namespace meridian {

// What can be wrong with an event, which is then skipped.
struct TraceJsonProblem {
  static constexpr absl::string_view kNotAnObject = "not an object", kTooLong = "too long",
                                     kWrongType = "with a field of the wrong type",
                                     kMissingPhase = "without ph", kMissingTime = "without ts",
                                     kBadTime = "with a ts or dur that is no usable number",
                                     kNegativeDuration = "with a negative duration";
  // Picoseconds from there do not fit.
  static constexpr absl::string_view kTimeOutOfRange = "more than 106 days from the first event";
};

// How many events have each problem, and where the first one stands. Bad events are counted, not
// fatal: one odd event should not cost a trace of millions.
class TraceJsonProblems {
 public:
  // Offsets count from the start of the (inflated) file. Problems come in file order.
  void Add(absl::string_view problem, uint64_t offset);

  uint64_t count(absl::string_view problem) const;
  uint64_t total() const;
  // Nullopt when there was none.
  std::optional<uint64_t> first_offset(absl::string_view problem) const;

  // "3 too long (first at offset 17), 1 without ts (at offset 99)"; empty when there is none.
  std::string ToString() const;

 private:
  struct Tally {
    uint64_t count = 0;
    uint64_t first_offset = 0;
  };
  std::map<absl::string_view, Tally> tallies_;
};

// An event longer than this is counted as TraceJsonProblem::kTooLong.
inline constexpr size_t kMaxTraceJsonEventBytes = size_t{64} << 20;

// Views are valid within the callback only, except for `args`, which points into the text.
struct TraceJsonEvent {
  // X complete, B begin, E end, M metadata, i instant, s t f flow, C counter, ...
  char ph = '\0';
  absl::string_view name;
  absl::string_view cat;
  // Numbers or strings, here always as text: 7 and "7" are the same.
  absl::string_view pid;
  absl::string_view tid;
  // From the header's base time. Only metadata events may have none.
  std::optional<absl::int128> ts_ps;
  // 0 when there is none.
  int64_t dur_ps = 0;
  bool has_dur = false;
  // Does not exist when the event has none.
  JsonValue args;
  // Where the event's object begins in the text.
  uint64_t offset = 0;
  // Its place in the array, from 0; events that cannot be used count too.
  uint64_t position = 0;
};

// The members beside `traceEvents`; they may stand before or after it.
struct TraceJsonHeader {
  // In file order, with keys as written. Both point into the text.
  std::vector<std::pair<absl::string_view, JsonValue>> members;

  // `baseTimeNanoseconds`: what the events' times count from, as Unix time. Nullopt when the file
  // has none; then Kineto's times count from the Unix epoch, other writers' from whenever they
  // chose.
  std::optional<int64_t> base_time_ns;

  // Returns the last member of that name; one that does not exist when there is none.
  JsonValue Find(absl::string_view key) const;
};

// Calls back for each usable event, in file order; a status that is not OK ends the walk. Returns
// the header once all events are read. Damaged structure (see CutTrace) is InvalidArgument, "offset
// N: reason", after the events before it were delivered.
absl::StatusOr<TraceJsonHeader> ReadTraceJson(
    absl::string_view text, absl::FunctionRef<absl::Status(const TraceJsonEvent&)> on_event,
    TraceJsonProblems* problems);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_JSON_TRACE_JSON_READER_H_
