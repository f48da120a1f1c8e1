// SPDX-License-Identifier: Apache-2.0
// Reading JSONL files: one object a line, errors that name file and line and show what a good line
// looks like.
#ifndef XLA_PROFILER_BASE_JSON_JSONL_ROW_H_
#define XLA_PROFILER_BASE_JSON_JSONL_ROW_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/json/json_value.h"

namespace meridian {

// A line of a JSONL file. Errors begin with "file:line: " and end with an example of a good line.
class JsonlRow {
 public:
  JsonlRow(absl::string_view text, absl::string_view file, int64_t line, absl::string_view example)
      : value_(text), file_(file), line_(line), example_(example) {}

  int64_t line() const { return line_; }
  bool Has(absl::string_view key) const { return value_.Find(key).exists(); }
  JsonValue Find(absl::string_view key) const { return value_.Find(key); }

  // A member that is missing or no such value is an error.
  absl::StatusOr<int64_t> Int64(absl::string_view key) const;
  absl::StatusOr<double> FiniteDouble(absl::string_view key) const;
  // A decimal number of nanoseconds (exponents too), exact to the picosecond.
  absl::StatusOr<int64_t> NanosAsPicos(absl::string_view key) const;

  // `absent` when the member is missing.
  absl::StatusOr<bool> Bool(absl::string_view key, bool absent) const;

  // Returns an object inside this row, e.g. an element of an array, as a row of the same line.
  JsonlRow Nested(absl::string_view text) const { return {text, file_, line_, example_}; }

  // Returns the row with another example of a good line.
  JsonlRow WithExample(absl::string_view example) const {
    return {value_.text(), file_, line_, example};
  }

  // An error for the first member whose key is not one of these, with all that are known, or is there
  // already.
  absl::Status CheckKeys(absl::Span<const absl::string_view> known) const;

  absl::Status Error(absl::string_view reason) const;

 private:
  absl::Status WrongValue(absl::string_view key, absl::string_view kind) const;

  JsonValue value_;
  absl::string_view file_;
  int64_t line_;
  absl::string_view example_;
};

// Calls fn for each line that is not blank, in file order; a line that is no JSON object, or an
// error of fn, ends the walk. A file without lines is InvalidArgument.
absl::Status ForEachJsonlRow(absl::string_view contents, absl::string_view file,
                             absl::string_view example,
                             absl::FunctionRef<absl::Status(const JsonlRow&)> fn);

// Returns the contents without the half line at the end that a program leaves when it is ended while
// it writes.
absl::string_view WithoutTornLine(absl::string_view contents);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_JSONL_ROW_H_
