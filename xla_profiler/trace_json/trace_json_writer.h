// SPDX-License-Identifier: Apache-2.0
// Writes a Chrome trace document as a stream, for chrome://tracing, Perfetto and the trace viewer:
//
//   {"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
//   {"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"Node 0"}},
//   {"ph":"X","pid":1,"tid":7,"ts":17.5,"name":"all-reduce","dur":0.001,"args":{"bytes":4096}}
//   ]}
//
// Times are whole nanoseconds, starts and ends rounded down alike: Perfetto rounds `ts` and `dur` one
// by one, and with more digits what touches would overlap. There is no cap on the number of events:
// leaving some out is the caller's choice.
#ifndef XLA_PROFILER_TRACE_JSON_TRACE_JSON_WRITER_H_
#define XLA_PROFILER_TRACE_JSON_TRACE_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {

// The `args` of an event. May be cleared and used again, which saves allocations.
class TraceJsonArgs {
 public:
  void AddString(absl::string_view key, absl::string_view value) {
    AppendJsonString(value, AddKey(key));
  }
  void AddInt64(absl::string_view key, int64_t value) { absl::StrAppend(AddKey(key), value); }
  void AddUint64(absl::string_view key, uint64_t value) { absl::StrAppend(AddKey(key), value); }
  // With as many digits as it takes to read the same value. NaN and Infinity are written as
  // strings, since JSON has no such numbers.
  void AddDouble(absl::string_view key, double value) { AppendJsonNumber(value, AddKey(key)); }
  // The value must be JSON.
  void AddJson(absl::string_view key, absl::string_view value) {
    absl::StrAppend(AddKey(key), value);
  }

  void Clear() { members_.clear(); }
  // What stands between the braces.
  absl::string_view members() const { return members_; }

 private:
  // Returns where the value goes.
  std::string* AddKey(absl::string_view key);

  std::string members_;
};

// What all kinds of events have.
struct TraceJsonFields {
  int64_t pid = 0;
  int64_t tid = 0;
  absl::string_view name;
  // Left out when empty.
  absl::string_view category;
  int64_t ts_ps = 0;
  // Left out when null.
  const TraceJsonArgs* args = nullptr;
};

// An arrow from event to event, also through others. Each end is tied to the event that encloses its ts on its thread;
// the ends of one arrow share category, name and id. At equal times Perfetto goes by the document's
// order: the event, the start at it, the end.
enum class FlowPhase { kStart, kStep, kEnd };

// Not thread safe. After an error nothing more may be called.
class TraceJsonWriter {
 public:
  // The sink must outlive the writer. `base_time_ns` is what the times count from, as Unix time;
  // readers find it as `baseTimeNanoseconds`.
  explicit TraceJsonWriter(ByteSink* sink, std::optional<int64_t> base_time_ns = std::nullopt);

  // Name a process or thread. Viewers sort by the index, where there is one.
  absl::Status WriteProcess(int64_t pid, absl::string_view name, int64_t sort_index) {
    return WriteNamed("process", pid, 0, name, sort_index);
  }
  absl::Status WriteThread(int64_t pid, int64_t tid, absl::string_view name,
                           std::optional<int64_t> sort_index = std::nullopt) {
    return WriteNamed("thread", pid, tid, name, sort_index);
  }

  absl::Status WriteComplete(const TraceJsonFields& fields, int64_t dur_ps);
  absl::Status WriteFlow(const TraceJsonFields& fields, FlowPhase phase, uint64_t id);
  // The args are the values of the counter's series.
  absl::Status WriteCounter(const TraceJsonFields& fields);

  // Ends the document; without it the text is not whole. The sink is left open.
  absl::Status Finish();

 private:
  absl::Status WriteNamed(absl::string_view what, int64_t pid, int64_t tid, absl::string_view name,
                          std::optional<int64_t> sort_index);
  absl::Status WriteMetadata(int64_t pid, int64_t tid, absl::string_view name,
                             const TraceJsonArgs& args);
  void BeginEvent(char ph, const TraceJsonFields& fields);
  absl::Status EndEvent(const TraceJsonArgs* args);
  absl::Status Flush();

  ByteSink* sink_;
  bool has_events_ = false;
  std::string buffer_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_JSON_TRACE_JSON_WRITER_H_
