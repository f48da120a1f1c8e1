#include "critical_path/window_choice.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meridian {
namespace {

constexpr size_t kMaxExamples = 12;

}  // namespace

absl::StatusOr<InstanceRange> ParseInstanceRange(absl::string_view text) {
  InstanceRange range;
  const size_t dots = text.find("..");
  const bool is_single = dots == absl::string_view::npos;
  const absl::string_view last = is_single ? text : text.substr(dots + 2);
  const bool parsed =
      absl::SimpleAtoi(text.substr(0, dots), &range.first) && absl::SimpleAtoi(last, &range.last);
  if (!parsed || range.first < 0 || range.last < range.first) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no instance; expected a number from 0 or a range, e.g. 3 or 1..4"));
  }
  return range;
}

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

absl::Status NoSuchInstance(const WindowChoice& choice, int64_t occurrences) {
  return absl::OutOfRangeError(absl::StrCat("'", choice.annotation, "' occurs ", occurrences,
                                            " time(s), so there is no instance ",
                                            choice.instances.first, "; they count from 0"));
}

}  // namespace meridian
