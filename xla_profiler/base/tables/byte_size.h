// Numbers of bytes as people write them: 4096, 64KiB, 10MB.
#ifndef XLA_PROFILER_BASE_TABLES_BYTE_SIZE_H_
#define XLA_PROFILER_BASE_TABLES_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Takes a whole number and B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of
// 1000), in capitals or not; none is B. InvalidArgument for anything else and what does not fit.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text);

// Returns the exact size in the largest of the powers of 1024 that divide it: "64KiB", "1000B".
std::string FormatByteSize(int64_t bytes);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TABLES_BYTE_SIZE_H_
