// SPDX-License-Identifier: Apache-2.0
// Profiles of any size, made up: for benchmarks and tests of large files.
#ifndef XLA_PROFILER_TESTING_SYNTHETIC_SPACE_H_
#define XLA_PROFILER_TESTING_SYNTHETIC_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

struct SyntheticSpaceOptions {
  // The space has at least this many bytes.
  uint64_t min_bytes = 1 << 20;
  // Lines of the one GPU plane; each has the same events.
  int events_per_line = 100000;
};

// Writes an XSpace with a GPU plane and a Task Environment. Events look like those of a JAX run:
// kernels on streams with correlation id, HLO op, module and kernel details.
absl::Status WriteSyntheticXSpace(const SyntheticSpaceOptions& options, ByteSink& sink);

std::string SyntheticXSpace(const SyntheticSpaceOptions& options);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_SYNTHETIC_SPACE_H_
