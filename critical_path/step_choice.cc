#include "critical_path/step_choice.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace meridian {

void StepChoice::Add(absl::string_view name, int64_t number) {
  names_.emplace(number, absl::StrCat(name, "#", number));
}

absl::StatusOr<StepNumbers> StepChoice::Choose(const WindowChoice& choice) const {
  std::vector<int64_t> found;
  KnownAnnotations known;
  for (const auto& [number, name] : names_) {
    known.Add(name);
    if (absl::StrContains(name, choice.annotation)) found.push_back(number);
  }
  if (found.empty()) return known.NotFound(choice.annotation);
  const auto count = static_cast<int64_t>(found.size());
  if (choice.instances.first >= count) return NoSuchInstance(choice, count);
  const int64_t last = std::min(choice.instances.last, count - 1);
  return StepNumbers{found[static_cast<size_t>(choice.instances.first)],
                     found[static_cast<size_t>(last)]};
}

}  // namespace meridian
