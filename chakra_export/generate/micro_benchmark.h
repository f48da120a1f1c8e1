// SPDX-License-Identifier: Apache-2.0
// The same communication over and over, of each size in turn: what networks are measured with, and what
// simulations of physics on grids do.
// docs/chakra_generate.md#micro-benchmarks says who sends what to whom in each pattern. A rank begins
// a round when it has finished the one before.
#ifndef CHAKRA_EXPORT_GENERATE_MICRO_BENCHMARK_H_
#define CHAKRA_EXPORT_GENERATE_MICRO_BENCHMARK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// Returns the names of the patterns, in the order of that page.
std::vector<std::string> MicroPatternNames();

struct MicroBenchmarkOptions {
  // One of these names.
  std::string pattern = "all-reduce";
  int64_t ranks = 0;
  // Groups consist of ranks next to each other and work side by side. 0 for all ranks in one group,
  // or for groups of two where the pattern is of pairs.
  int64_t group_size = 0;
  // How many ranks of a group lie along each axis of a grid, of patterns that have one; the first axis is
  // that of neighbouring ranks. Empty: as equal as can be.
  std::vector<int64_t> grid;
  // Into how many blocks a sweep cuts its planes.
  int64_t blocks = 8;
  // The sizes, as comm_size counts: of an all-gather one rank's shard, else one rank's whole
  // buffer.
  std::vector<int64_t> bytes;
  // How often each size is communicated.
  int64_t repeats = 1;
  // How long every rank computes before each communication.
  int64_t compute_us = 0;
  // How fast it computes, in 10^12 operations per second.
  double tflops = 300;
};

// InvalidArgument for sizes that are out of range, do not divide each other or make a workload that
// is too large.
absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeMicroBenchmark(
    const MicroBenchmarkOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_MICRO_BENCHMARK_H_
