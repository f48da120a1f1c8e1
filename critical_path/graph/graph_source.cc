#include "critical_path/graph/graph_source.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::Status AnnotationNotFound(absl::string_view annotation, const std::set<std::string>& known) {
  constexpr size_t kMaxExamples = 12;
  const size_t shown = std::min(known.size(), kMaxExamples);
  const std::string examples =
      absl::StrJoin(known.begin(), std::next(known.begin(), static_cast<ptrdiff_t>(shown)), ", ");
  return NotFound(
      "no event's name contains '", annotation, "'; ",
      known.empty() ? "the trace has no annotations at all" : absl::StrCat("there are: ", examples),
      known.size() > shown ? absl::StrCat(" and ", known.size() - shown, " more") : "");
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
  std::set<std::string> known;
  for (const auto& [number, name] : names_) {
    known.insert(name);
    if (absl::StrContains(name, choice.annotation)) found.push_back(number);
  }
  if (found.empty()) return AnnotationNotFound(choice.annotation, known);
  ASSIGN_OR_RETURN(const NumberRange chosen,
                   ChooseInstances(choice, static_cast<int64_t>(found.size())));
  return NumberRange{found[static_cast<size_t>(chosen.first)],
                     found[static_cast<size_t>(chosen.last)]};
}

}  // namespace meridian
