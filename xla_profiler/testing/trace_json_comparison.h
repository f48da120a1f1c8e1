// SPDX-License-Identifier: Apache-2.0
// Holds the reader against simdjson's parse of the whole document. Used on real files, on mutated
// ones and by the fuzzer.
#ifndef XLA_PROFILER_TESTING_TRACE_JSON_COMPARISON_H_
#define XLA_PROFILER_TESTING_TRACE_JSON_COMPARISON_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// What became of the text.
enum class TraceJsonVerdict {
  // simdjson reads it and so do we.
  kAccepted,
  // simdjson reads it, but it is no trace document; we say so too.
  kNoTrace,
  // Within our limits or conventions nothing can be said: nested deeper than we read, or a key with
  // escapes, which we compare as written. Or we read what simdjson refuses: numbers that fit neither
  // 64 bits nor a double, NaN and Infinity, and a bare array whose end is missing.
  kNotComparable,
  // Not JSON, and we say so too.
  kMalformed,
};

// OK when both agree, else an Internal error that says where they differ: on whether the text is a
// trace, on which of its events are usable, or on any field of one.
absl::Status CompareWithWholeDocument(absl::string_view text, TraceJsonVerdict* verdict);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_TRACE_JSON_COMPARISON_H_
