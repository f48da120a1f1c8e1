// SPDX-License-Identifier: Apache-2.0
// Pickles of plain values as JSON. Python's pickle is a program for a machine with a stack:
//
//   } ( X"rank" K\x03 u .     EMPTY_DICT MARK BINUNICODE BININT1 SETITEMS STOP  ->  {"rank":3}
//
// This one knows only what makes texts, numbers, lists, tuples and dicts, and the memo that refers
// to them again. It runs nothing: an opcode that imports or calls something is refused by its name.
#ifndef XLA_PROFILER_FLIGHT_RECORDER_PICKLE_JSON_H_
#define XLA_PROFILER_FLIGHT_RECORDER_PICKLE_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Values and references to them, and how much JSON may be written for them, each time that a value is
// put into another: the memo lets a short pickle stand for a very long text.
inline constexpr size_t kMaxPickleValues = size_t{1} << 22;
inline constexpr size_t kMaxPickleJsonBytes = size_t{512} << 20;

// True for what begins as pickles of the protocols 2 to 5 do, and as dicts in those of 0 and 1, which
// are refused.
bool IsPickle(absl::string_view bytes);

// Returns the value as JSON; tuples become arrays. InvalidArgument, "offset N: reason", for opcodes
// that no such pickle has, for one that is cut off or damaged, and beyond the limits.
absl::StatusOr<std::string> PickleToJson(absl::string_view pickle);

}  // namespace meridian

#endif  // XLA_PROFILER_FLIGHT_RECORDER_PICKLE_JSON_H_
