// SPDX-License-Identifier: Apache-2.0
// The order in which NumPy's default argsort leaves equal keys. HTA sorts rows by time with it, and
// where rows have one time the order decides which edge a kernel gets; so the order is part of what
// there is to reproduce. NumPy documents it as unstable, but it is deterministic: a quicksort on
// indices with
//
//   pivot   the median of first, middle and last, ordered in place, then kept next to the last
//   ranges  of 17 or more are parted, the smaller part first; shorter ones are sorted by insertion
//   depth   a range on the way to which there were over 2 floor(log2 n) partings is sorted by heap
//
// NumPy before 2.0 does this on every machine (1.25 and later have another way on AVX-512).
#ifndef CRITICAL_PATH_HTA_UNSTABLE_ORDER_H_
#define CRITICAL_PATH_HTA_UNSTABLE_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// Returns the indices of the keys in ascending order of the keys.
std::vector<uint32_t> UnstableOrder(absl::Span<const int64_t> keys);

// Returns the values in ascending order of key(value), of equal keys as UnstableOrder leaves them.
template <typename T, typename Key>
std::vector<T> UnstablySorted(const std::vector<T>& values, const Key& key) {
  std::vector<int64_t> keys;
  for (const T& value : values) keys.push_back(key(value));
  std::vector<T> sorted;
  for (uint32_t i : UnstableOrder(keys)) sorted.push_back(values[i]);
  return sorted;
}

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_UNSTABLE_ORDER_H_
