// What was wrong with events that a reader skipped: how many of each kind, and where the first one
// stands. Bad events are counted, not fatal: one broken event should not cost a trace of millions.
#ifndef XLA_PROFILER_TRACE_JSON_TRACE_JSON_PROBLEMS_H_
#define XLA_PROFILER_TRACE_JSON_TRACE_JSON_PROBLEMS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

enum class TraceJsonProblem {
  // An element of the array is a number, a string, nothing.
  kNotAnObject,
  // Not JSON: a member without its colon, a bad escape, not UTF-8.
  kMalformed,
  // Longer than any event is.
  kTooLong,
  // A field that has another type than the format says.
  kWrongType,
  kMissingPhase,
  kMissingTime,
  // ts or dur is no number (NaN, Infinity, null), or too large.
  kBadTime,
  kNegativeDuration,
  // More than 106 days from the trace's first event: picoseconds from there do not fit.
  kTimeOutOfRange,
  kLast = kTimeOutOfRange,
};
inline constexpr int kNumTraceJsonProblems = static_cast<int>(TraceJsonProblem::kLast) + 1;

// Returns a phrase such as "malformed" or "without ts".
absl::string_view TraceJsonProblemText(TraceJsonProblem problem);

class TraceJsonProblems {
 public:
  // Offsets count from the start of the (inflated) file. Problems come in file order.
  void Add(TraceJsonProblem problem, uint64_t offset);

  uint64_t count(TraceJsonProblem problem) const { return Get(problem).count; }
  uint64_t total() const;
  // Nullopt when there was none.
  std::optional<uint64_t> first_offset(TraceJsonProblem problem) const;

  // "3 malformed (first at offset 17), 1 without ts (at offset 99)"; empty when there is none.
  std::string ToString() const;

 private:
  struct Tally {
    uint64_t count = 0;
    uint64_t first_offset = 0;
  };

  const Tally& Get(TraceJsonProblem problem) const { return tallies_[static_cast<int>(problem)]; }

  std::array<Tally, kNumTraceJsonProblems> tallies_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_JSON_TRACE_JSON_PROBLEMS_H_
