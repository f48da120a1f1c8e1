#include "critical_path/graph/graph_source.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// A message names at most this many annotations.
constexpr size_t kMaxExamples = 12;

}  // namespace

void KnownAnnotations::Add(absl::string_view name) {
  if (!names_.emplace(name).second) return;
  if (examples_.size() < kMaxExamples) examples_.emplace_back(name);
}

absl::Status KnownAnnotations::NotFound(absl::string_view annotation) const {
  std::string message = absl::StrCat("no event's name contains '", annotation, "'; ");
  if (names_.empty()) {
    absl::StrAppend(&message, "the trace has no annotations at all");
  } else {
    absl::StrAppend(&message, "there are: ", absl::StrJoin(examples_, ", "));
    if (names_.size() > examples_.size()) {
      absl::StrAppend(&message, " and ", names_.size() - examples_.size(), " more");
    }
  }
  return absl::NotFoundError(message);
}

absl::StatusOr<NumberRange> ChooseInstances(const WindowChoice& choice, int64_t occurrences) {
  const NumberRange& wanted = choice.instances;
  if (wanted.first < occurrences) {
    return NumberRange{wanted.first, std::min(wanted.last, occurrences - 1)};
  }
  return absl::OutOfRangeError(absl::StrCat("'", choice.annotation, "' occurs ", occurrences,
                                            " time(s), so there is no instance ", wanted.first,
                                            "; they count from 0"));
}

void StepChoice::Add(absl::string_view name, int64_t number) {
  names_.emplace(number, absl::StrCat(name, "#", number));
}

absl::StatusOr<NumberRange> StepChoice::Choose(const WindowChoice& choice) const {
  std::vector<int64_t> found;
  KnownAnnotations known;
  for (const auto& [number, name] : names_) {
    known.Add(name);
    if (absl::StrContains(name, choice.annotation)) found.push_back(number);
  }
  if (found.empty()) return known.NotFound(choice.annotation);
  ASSIGN_OR_RETURN(const NumberRange chosen,
                   ChooseInstances(choice, static_cast<int64_t>(found.size())));
  return NumberRange{found[static_cast<size_t>(chosen.first)],
                     found[static_cast<size_t>(chosen.last)]};
}

}  // namespace meridian
