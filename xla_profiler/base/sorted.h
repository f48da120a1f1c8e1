// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_SORTED_H_
#define XLA_PROFILER_BASE_SORTED_H_

#include "absl/algorithm/container.h"

namespace meridian {

// Sorts, stably, what is mostly in order already, as events of a trace are: to look takes a fraction
// of the time of sorting.
template <typename Container, typename Before>
void StableSortUnlessSorted(Container* values, const Before& before) {
  if (!absl::c_is_sorted(*values, before)) absl::c_stable_sort(*values, before);
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_SORTED_H_
