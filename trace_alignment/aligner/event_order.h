// Keeps a line readable after its times were mapped. A clock map is increasing, so order and
// nesting survive by themselves up to rounding and repaired stretches; this is the guard that makes
// it certain.
//
//   in the order (start ascending, duration descending), of the times before:
//     an event never starts before its predecessor does, equal starts stay equal,
//     and a child stays inside its parent
#ifndef TRACE_ALIGNMENT_ALIGNER_EVENT_ORDER_H_
#define TRACE_ALIGNMENT_ALIGNER_EVENT_ORDER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "xla_profiler/base/timespan.h"

namespace meridian {

// An event on the clock it was mapped to.
struct MappedEvent {
  int64_t start_ps = 0;
  int64_t end_ps = 0;

  friend bool operator==(const MappedEvent& a, const MappedEvent& b) {
    return a.start_ps == b.start_ps && a.end_ps == b.end_ps;
  }
};

// Clamps the mapped events of one line so that they keep the order and nesting of `before` (one
// each, in any order). Returns how many were changed. Linear for lines that are in order.
int64_t KeepOrderAndNesting(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped);

// Moves each start that is not later than its predecessor's to one nanosecond after it, durations
// kept. Returns how many were moved.
int64_t MakeStrictlyIncreasing(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_EVENT_ORDER_H_
