#include "xla_profiler/trace_json/trace_json_problems.h"

#include "absl/strings/str_cat.h"

namespace meridian {

absl::string_view TraceJsonProblemText(TraceJsonProblem problem) {
  switch (problem) {
    case TraceJsonProblem::kNotAnObject:
      return "not an object";
    case TraceJsonProblem::kMalformed:
      return "malformed";
    case TraceJsonProblem::kTooLong:
      return "too long";
    case TraceJsonProblem::kWrongType:
      return "with a field of the wrong type";
    case TraceJsonProblem::kMissingPhase:
      return "without ph";
    case TraceJsonProblem::kMissingTime:
      return "without ts";
    case TraceJsonProblem::kBadTime:
      return "with a ts or dur that is no usable number";
    case TraceJsonProblem::kNegativeDuration:
      return "with a negative duration";
    case TraceJsonProblem::kTimeOutOfRange:
      return "more than 106 days from the first event";
  }
  return "";
}

void TraceJsonProblems::Add(TraceJsonProblem problem, uint64_t offset) {
  Tally& tally = tallies_[static_cast<int>(problem)];
  if (tally.count++ == 0) tally.first_offset = offset;
}

uint64_t TraceJsonProblems::total() const {
  uint64_t total = 0;
  for (const Tally& tally : tallies_) total += tally.count;
  return total;
}

std::optional<uint64_t> TraceJsonProblems::first_offset(TraceJsonProblem problem) const {
  const Tally& tally = Get(problem);
  return tally.count == 0 ? std::nullopt : std::optional<uint64_t>(tally.first_offset);
}

std::string TraceJsonProblems::ToString() const {
  std::string text;
  for (int i = 0; i < kNumTraceJsonProblems; ++i) {
    const Tally& tally = tallies_[i];
    if (tally.count == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", tally.count, " ",
                    TraceJsonProblemText(static_cast<TraceJsonProblem>(i)),
                    tally.count == 1 ? " (at offset " : " (first at offset ", tally.first_offset,
                    ")");
  }
  return text;
}

}  // namespace meridian
