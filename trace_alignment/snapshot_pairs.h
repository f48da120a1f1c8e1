// Readings of a host's clock S and its device tracer's clock R at one instant, which tie the two
// together. They come as JSONL, as a SnapshotPairs message, or as the plane `/host:snapshots`:
//
//   {"meta":true,"node_id":2,"start_walltime_ns":W,"start_gpu_ns":G,"absolute":false}
//   {"sys_ns":1000000,"tracer_ns":1000250,"sys_before_ns":999000,"sys_after_ns":1001000}
//
// A profile stores device events as R pinned to the wall clock once, A = W + (R - G), and that is
// what every loader here hands out beside S:
//
//                        S            A
//   relative pair (s, r) W + s        W + r
//   absolute pair (s, r) s            W + (r - G)
#ifndef TRACE_ALIGNMENT_SNAPSHOT_PAIRS_H_
#define TRACE_ALIGNMENT_SNAPSHOT_PAIRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clock_map.h"
#include "xla_profiler/trace_json/json_value.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// One instant on a node's two clocks; absent where unknown.
struct ClockAnchors {
  // W, Unix time.
  std::optional<int64_t> start_walltime_ns;
  // G, on the tracer's clock.
  std::optional<int64_t> start_gpu_ns;
};

// The host's clock before and after the tracer's was read.
struct SnapshotBracket {
  int64_t sys_before_ns = 0;
  int64_t sys_after_ns = 0;
};

struct SnapshotPair {
  // S, Unix time.
  int64_t sys_ns = 0;
  // A, the Unix time that the profile gives to R-domain events of this instant.
  int64_t tracer_ns = 0;
  std::optional<SnapshotBracket> bracket;
};

struct SnapshotPairs {
  // At least one; both clocks increase.
  std::vector<SnapshotPair> pairs;
  // What the header says.
  std::optional<int64_t> node_id;
  // What A was computed with; G is absent when the pairs are relative and nobody knows it.
  ClockAnchors anchors;
  int64_t identical_dropped = 0;
};

// Where W and G come from, beside the header of the pairs themselves: flags win over it, it wins
// over the offsets file.
struct SnapshotPairsOptions {
  ClockAnchors flags;
  ClockAnchors offsets_header;
  // W for relative pairs when nobody says: the Unix time of the earliest R-domain line's base.
  std::optional<int64_t> earliest_tracer_base_ns;
};

// Loads JSONL or a SnapshotPairs message (whose readings are absolute), told by content. Unsorted
// pairs are sorted. InvalidArgument "file:line: reason; expected e.g. ..." for what cannot be read,
// for an S that does not increase with R and for contradictory pairs (both lines are named);
// FailedPrecondition when W or G is needed and unknown.
absl::StatusOr<SnapshotPairs> LoadSnapshotPairs(FileSystem& file_system, const std::string& path,
                                                const SnapshotPairsOptions& options = {});

// The same from the file's contents; `name` stands for the path in errors.
absl::StatusOr<SnapshotPairs> ParseSnapshotPairs(absl::string_view contents,
                                                 const std::string& name,
                                                 const SnapshotPairsOptions& options = {});

// From the events of the plane `/host:snapshots` of a profile: an event's start is S, its stat
// `rocm_ns` is R. Both are absolute, so that W and G are needed.
absl::StatusOr<SnapshotPairs> SnapshotPairsFromPlane(const XPlaneVisitor& plane,
                                                     const SessionClock& clock,
                                                     const std::string& name,
                                                     const SnapshotPairsOptions& options = {});

// The map A -> S, both from the run's base.
absl::StatusOr<ClockMap> TracerToHostMap(const SnapshotPairs& snapshots, const RunClock& clock);

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

#endif  // TRACE_ALIGNMENT_SNAPSHOT_PAIRS_H_
