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

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// The values of an event as they are written, strings with their quotes; empty for those that it
// does not have. Of a member that occurs twice the last counts.
struct WrittenEvent {
  absl::string_view element;
  absl::string_view ph;
  absl::string_view name;
  absl::string_view cat;
  absl::string_view pid;
  absl::string_view ts;
  absl::string_view dur;
  absl::string_view id;
  absl::string_view args;

  // Returns whether the phase is this one.
  bool Is(char phase) const { return ph.size() == 3 && ph[1] == phase; }
};

// What to put in the place of values.
class EventEdits {
 public:
  // `value` is a value of the event that is not empty.
  void Replace(absl::string_view value, absl::string_view text) {
    edits_.push_back({value, texts_.size(), text.size()});
    texts_.append(text.data(), text.size());
  }

 private:
  friend class EventRewriter;

  struct Edit {
    absl::string_view value;
    // The text in texts_.
    size_t begin = 0;
    size_t size = 0;
  };

  std::vector<Edit> edits_;
  std::string texts_;
};

// Rewrites one event after the other.
class EventRewriter {
 public:
  // Appends the event with its values replaced as `edit` says; one that is no object, or broken, as
  // it is. Returns whether it could be read.
  bool Append(absl::string_view element,
              absl::FunctionRef<void(const WrittenEvent& event, EventEdits* edits)> edit,
              std::string* out);

 private:
  EventEdits edits_;
};

// Writes the whole document with its events edited. Damaged structure is InvalidArgument, "offset N:
// reason". Sets *unreadable, unless null, to how many events could not be read.
absl::Status RewriteTraceJson(
    absl::string_view text,
    absl::FunctionRef<void(const WrittenEvent& event, EventEdits* edits)> edit, ByteSink& sink,
    int64_t* unreadable = nullptr);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_JSON_TRACE_JSON_REWRITER_H_
