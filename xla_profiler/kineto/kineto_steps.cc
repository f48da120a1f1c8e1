#include "xla_profiler/kineto/kineto_steps.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace meridian {

KinetoSteps::KinetoSteps(const EventTable& table) {
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kStep) continue;
    const absl::string_view name = table.name(row);
    int64_t number = 0;
    if (!absl::SimpleAtoi(name.substr(name.rfind('#') + 1), &number)) continue;
    steps_.push_back({table.start_ps(row), table.end_ps(row), number});
  }
  absl::c_sort(steps_, [](const Step& a, const Step& b) { return a.start_ps < b.start_ps; });
}

std::optional<int64_t> KinetoSteps::At(int64_t time_ps) const {
  const auto next = absl::c_upper_bound(
      steps_, time_ps, [](int64_t time, const Step& step) { return time < step.start_ps; });
  if (next == steps_.begin()) return std::nullopt;
  const Step& step = *(next - 1);
  return time_ps < step.end_ps ? std::optional<int64_t>(step.number) : std::nullopt;
}

const KinetoSteps::Step* KinetoSteps::FirstAfter(int64_t time_ps) const {
  const auto first =
      absl::c_find_if(steps_, [&](const Step& step) { return step.end_ps > time_ps; });
  return first == steps_.end() ? nullptr : &*first;
}

}  // namespace meridian
