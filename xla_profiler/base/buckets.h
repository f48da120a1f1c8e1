// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_BUCKETS_H_
#define XLA_PROFILER_BASE_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// Values sorted into buckets by counting, e.g. the edges of a graph by the node that they lead to.
// Takes four bytes for each bucket beside the values, of which there are fewer than 2^32.
template <typename Value>
class Buckets {
 public:
  Buckets() : begins_(1, 0) {}

  // for_each(visit) calls visit(bucket, value) for every value, each time that it is called in the
  // same order; that is the order of the values in a bucket.
  template <typename ForEach>
  Buckets(size_t bucket_count, const ForEach& for_each) : begins_(bucket_count + 1, 0) {
    for_each([this](size_t bucket, const Value&) { ++begins_[bucket + 1]; });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    values_.resize(begins_.back());
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    for_each([&](size_t bucket, const Value& value) { values_[next[bucket]++] = value; });
  }

  absl::Span<const Value> Of(size_t bucket) const {
    return absl::MakeConstSpan(values_).subspan(begins_[bucket],
                                                begins_[bucket + 1] - begins_[bucket]);
  }

 private:
  // Where the values of each bucket begin; one entry more, the end of the last one's.
  std::vector<uint32_t> begins_;
  std::vector<Value> values_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_BUCKETS_H_
