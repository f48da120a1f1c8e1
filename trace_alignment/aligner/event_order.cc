#include "trace_alignment/aligner/event_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "xla_profiler/base/check.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Positions in the order in which a parent precedes its children.
std::vector<size_t> ParentFirstOrder(absl::Span<const Timespan> events) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t a, size_t b) { return events[a] < events[b]; };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

}  // namespace

int64_t KeepOrderAndNesting(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped) {
  MERIDIAN_CHECK(before.size() == mapped.size());
  int64_t clamped = 0;
  std::vector<size_t> parents;
  const size_t kNone = before.size();
  size_t previous = kNone;
  for (size_t event : ParentFirstOrder(before)) {
    while (!parents.empty() && !before[parents.back()].Includes(before[event])) parents.pop_back();
    MappedEvent kept = mapped[event];
    if (previous != kNone) {
      const int64_t previous_start_ps = mapped[previous].start_ps;
      if (before[previous].begin_ps() == before[event].begin_ps()) {
        kept.start_ps = previous_start_ps;
      } else {
        kept.start_ps = std::max(kept.start_ps, previous_start_ps);
      }
    }
    if (!parents.empty()) {
      const MappedEvent& parent = mapped[parents.back()];
      kept.start_ps = std::min(kept.start_ps, parent.end_ps);
      kept.end_ps = std::min(kept.end_ps, parent.end_ps);
    }
    kept.end_ps = std::max(kept.end_ps, kept.start_ps);
    if (!(kept == mapped[event])) ++clamped;
    mapped[event] = kept;
    parents.push_back(event);
    previous = event;
  }
  return clamped;
}

int64_t MakeStrictlyIncreasing(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped) {
  MERIDIAN_CHECK(before.size() == mapped.size());
  int64_t moved = 0;
  const MappedEvent* previous = nullptr;
  for (size_t event : ParentFirstOrder(before)) {
    MappedEvent& here = mapped[event];
    if (previous != nullptr && here.start_ps <= previous->start_ps) {
      const int64_t duration_ps = here.end_ps - here.start_ps;
      here.start_ps = previous->start_ps + kPsPerNs;
      here.end_ps = here.start_ps + duration_ps;
      ++moved;
    }
    previous = &here;
  }
  return moved;
}

}  // namespace meridian
