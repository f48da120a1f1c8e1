// SPDX-License-Identifier: Apache-2.0
// Copies the events of a Chrome trace document with some of their values replaced, and every other
// byte as it was:
//
//   {"ph": "X", "name": "Gemm", "ts": 17.500, "dur": 3.250, "args": {...}}
//   {"ph": "X", "name": "Gemm", "ts": 12.501, "dur": 3.249, "args": {...}}
//
// Only one event is looked at at a time, so that memory does not grow with the document.
#ifndef XLA_PROFILER_TRACE_JSON_TRACE_JSON_REWRITER_H_
#define XLA_PROFILER_TRACE_JSON_TRACE_JSON_REWRITER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// The values of an event as they are written, strings with their quotes; empty for those that it
// does not have. Of a member that occurs twice the last counts.
struct WrittenEvent {
  absl::string_view ph;
  absl::string_view name;
  absl::string_view cat;
  absl::string_view pid;
  absl::string_view tid;
  absl::string_view ts;
  absl::string_view dur;
  absl::string_view id;
  absl::string_view args;

  // Returns whether the phase is this one.
  bool Is(char phase) const { return ph.size() == 3 && ph[1] == phase; }
};

// Returns false for an element that is no object; then the event has no values.
bool ReadWrittenEvent(absl::string_view element, WrittenEvent* event);

// What to put in the place of values of an event that are not empty: the values, and the new texts.
using EventEdits = std::vector<std::pair<absl::string_view, std::string>>;
using EditEvent = absl::FunctionRef<void(const WrittenEvent& event, EventEdits* edits)>;

// Appends the event with its values replaced as `edit` says; one that is no object, as it is.
void AppendEdited(absl::string_view element, EditEvent edit, std::string* out);

// Writes the whole document with its events edited. Damaged structure is InvalidArgument, "offset N:
// reason".
absl::Status RewriteTraceJson(absl::string_view text, EditEvent edit, ByteSink& sink);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_JSON_TRACE_JSON_REWRITER_H_
