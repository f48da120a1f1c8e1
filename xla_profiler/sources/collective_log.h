// SPDX-License-Identifier: Apache-2.0
// What a source that is no profiler makes of its files: one rank's collectives, and the other work
// that it knows of, written as the Kineto trace of a job that does nothing else.
#ifndef XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_
#define XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// From when on times that are no Unix times are shown, up to a year: 2001, when no GPU was profiled.
inline constexpr int64_t kMadeUpTimesNs = 1'000'000'000'000'000'000;
inline bool IsMadeUp(int64_t unix_ns) {
  constexpr int64_t kYearNs = int64_t{365} * 86400 * 1'000'000'000;
  return unix_ns > kMadeUpTimesNs - kYearNs && unix_ns < kMadeUpTimesNs + kYearNs;
}

// How long before its first event a converted trace's clock is 0, a day: whichever way clocks are put
// right, no event comes before 0, where viewers drop it.
inline constexpr int64_t kBaseBeforeFirstNs = 86'400'000'000'000;

// Something that a rank did.
struct LoggedWork {
  // As in Kineto traces: "kernel" for work of the device, "cpu_op", "cuda_runtime" (calls) and
  // "user_annotation" (steps, "ProfilerStep#7") for what is the host's.
  absl::string_view category = "kernel";
  // What the program calls it; a collective's may be empty.
  std::string name;
  // The name of the device's stream or of the host's thread. Empty for the thread that launches,
  // and for the stream of a collective's group.
  std::string stream;
  // Unix time by the host's clock.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // When the host launched work of the device; absent when it is not known.
  std::optional<int64_t> launched_ns;
};

struct LoggedCollective : LoggedWork {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The name of its group, equal on all members and different from that of other groups.
  std::string group;
  int64_t group_size = 0;
  // What one rank puts in and gets out; absent when it is not known.
  std::optional<int64_t> in_bytes;
  std::optional<int64_t> out_bytes;
  // Of a send or receive: the other end's rank in the job; absent when it is not known.
  std::optional<int64_t> peer;
  // Equal on all members for one execution and different for different ones; 0 when only the order
  // within the group tells, of messages within the step.
  uint64_t execution = 0;
  // How it was carried out, as NCCL's kernels are named: "RING_LL"; empty when it is not known.
  std::string protocol;
  // How long it ran, where start and end only tell between which times; 0 when that is not known.
  // Absent where it ran from start to end.
  std::optional<int64_t> ran_ns;
  // Messages that are exchanged together, in one kernel: all but the last of them say so. They
  // follow each other in the log, and are launched at different times.
  bool is_with_next = false;
};

// What one rank did.
struct CollectiveLog {
  int64_t rank = 0;
  // How many ranks the job has; 0 when it is not known.
  int64_t world_size = 0;
  // Empty when it is not known.
  std::string hostname;
  int64_t pid = 0;
  // The groups of which all ranks are known, in the groups' order.
  std::vector<std::pair<std::string, std::vector<int64_t>>> groups;
  // In any order.
  std::vector<LoggedCollective> collectives;
  std::vector<LoggedWork> work;
  // Events that are Kineto's already, in JSON with commas between them, and the Unix time at which
  // their clock is 0; absent where collectives and work are all there is.
  std::string events;
  std::optional<int64_t> base_ns;
};

// Returns the text of the trace.
std::string CollectiveLogToKineto(const CollectiveLog& log);

// Returns an execution's number (LoggedCollective::execution) from what tells it: the group, what
// is done, and how many times the group has done that before.
uint64_t ExecutionNumber(const std::string& group, const std::string& what, int64_t count);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_
