// SPDX-License-Identifier: Apache-2.0
// Times two ways of doing one thing in one process, taking turns, so that a busy machine slows
// both.
#ifndef BENCHMARKS_RATIO_BENCHMARK_H_
#define BENCHMARKS_RATIO_BENCHMARK_H_

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace meridian {

struct RatioCase {
  // What is measured, and what it is held against.
  std::string name;
  std::string floor_name;
  std::function<void()> run;
  std::function<void()> floor;
  // The ratio to reach; absent when it is only told.
  std::optional<double> reach;
  // Bytes one run works on, for a rate.
  uint64_t bytes = 0;
};

// Runs each case in turns, `rounds` times (at least once), prints a table of CPU seconds (the least
// of all rounds: noise only adds) and ratios, and returns true when every ratio is reached.
bool RunRatioCases(const std::vector<RatioCase>& cases, int rounds);

// Returns the process's CPU seconds so far.
double CpuSeconds();

// Returns the CPU seconds, of user and system, that were used.
double CpuSeconds(const rusage& usage);

// Returns the process's anonymous resident memory in bytes (mapped files aside).
int64_t AnonymousBytes();

}  // namespace meridian

#endif  // BENCHMARKS_RATIO_BENCHMARK_H_
