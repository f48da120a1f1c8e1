// SPDX-License-Identifier: Apache-2.0
// Whether a line still reads the same after its times were mapped.
#ifndef TRACE_ALIGNMENT_TESTING_ORDER_CHECK_H_
#define TRACE_ALIGNMENT_TESTING_ORDER_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/testing/profile_events.h"

namespace meridian {

// How many events start with their predecessor, and how many have a parent.
struct OrderCheck {
  int64_t equal_starts = 0;
  int64_t children = 0;
};

// The events of a profile before and after, in the same order. Internal that names the first event
// which, on its line and in the order (start ascending, duration descending) of the times before,
// starts before its predecessor, or not with it though it did, or leaves a parent, or changed its
// name or line.
absl::StatusOr<OrderCheck> CheckOrderAndNesting(const std::vector<ProfileEvent>& before,
                                                const std::vector<ProfileEvent>& after);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_ORDER_CHECK_H_
