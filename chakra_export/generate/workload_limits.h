// SPDX-License-Identifier: Apache-2.0
// Which sizes a made-up workload may have. Each check returns InvalidArgument that names the flag
// and what to do about it.
#ifndef CHAKRA_EXPORT_GENERATE_WORKLOAD_LIMITS_H_
#define CHAKRA_EXPORT_GENERATE_WORKLOAD_LIMITS_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

inline constexpr int64_t kMaxGeneratedRanks = 16384;
// All ranks together have at most this many nodes, some 8 GB of traces.
inline constexpr int64_t kMaxGeneratedNodes = 50000000;

// Refuses a value that is out of range: "--hidden=0: expected 1 to 1048576".
absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low, int64_t high);
absl::Status CheckTflops(double tflops);

// Refuses a value that is no multiple: "--layers=10 does not divide by --pp=4; 8 or 12 would".
absl::Status CheckDivides(absl::string_view flag, int64_t value, absl::string_view divisor_text,
                          int64_t divisor);

absl::Status CheckRankCount(absl::int128 ranks);
absl::Status CheckGroupCount(int64_t groups, absl::string_view remedy);
absl::Status CheckNodeCount(absl::int128 nodes, absl::string_view remedy);
// Refuses operations of one rank that do not fit into 64 bits, or take more than three years.
absl::Status CheckComputation(absl::int128 operations, double tflops, absl::string_view remedy);
// Refuses fewer than kMinAllGatherBytes.
absl::Status CheckAllGatherBytes(int64_t bytes, absl::string_view remedy);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_WORKLOAD_LIMITS_H_
