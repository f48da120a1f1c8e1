// Reading JSONL files of clock readings: one object a line, errors that name file and line and show
// what a good line looks like.
#ifndef TRACE_ALIGNMENT_JSONL_ROW_H_
#define TRACE_ALIGNMENT_JSONL_ROW_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/trace_json/json_value.h"

namespace meridian {

// One instant on a node's two clocks; absent where unknown.
struct ClockAnchors {
  // W, Unix time.
  std::optional<int64_t> start_walltime_ns;
  // G, on the tracer's clock.
  std::optional<int64_t> start_gpu_ns;
};

// A line of a JSONL file of clock readings, for the loaders of this package. Errors begin with
// "file:line: " and end with an example of a good line.
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

  // Reads "start_walltime_ns" and "start_gpu_ns". A start_walltime_ns of 0 is how writers say that
  // they know neither.
  absl::StatusOr<ClockAnchors> Anchors() const;

  // The same for an object inside this row, e.g. an element of an array.
  JsonlRow Nested(absl::string_view text) const { return {text, file_, line_, example_}; }

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

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_JSONL_ROW_H_
