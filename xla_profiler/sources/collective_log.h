// SPDX-License-Identifier: Apache-2.0
// What a source that knows nothing but collectives makes of its files: one rank's collectives,
// written as the Kineto trace of a job that does nothing else.
#ifndef XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_
#define XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

struct LoggedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The name of its group, equal on all members and different from that of other groups.
  std::string group;
  int64_t group_size = 0;
  // What one rank puts in and gets out.
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  // Of a send or receive: the other end's rank in the job; absent when it is not known.
  std::optional<int64_t> peer;
  // Equal on all members for one execution and different for different ones; 0 when only the order
  // within the group tells.
  uint64_t execution = 0;
  // How it was carried out, as NCCL's kernels are named: "RING_LL"; empty when it is not known.
  std::string protocol;
  // Unix time by the host's clock. The launch is absent when it is not known.
  std::optional<int64_t> launched_ns;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// The collectives of one rank.
struct CollectiveLog {
  int64_t rank = 0;
  // How many ranks the job has.
  int64_t world_size = 0;
  // Empty when it is not known.
  std::string hostname;
  int64_t pid = 0;
  // The groups of which all ranks are known, in the groups' order.
  std::vector<std::pair<std::string, std::vector<int64_t>>> groups;
  // In any order.
  std::vector<LoggedCollective> collectives;
};

// Returns the text of the trace. Each group has a stream of its own.
std::string CollectiveLogToKineto(const CollectiveLog& log);

// Returns an execution's number (LoggedCollective::execution) from what tells it: the group, what
// is done, and how many times the group has done that before.
uint64_t ExecutionNumber(const std::string& group, const std::string& what, int64_t count);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_COLLECTIVE_LOG_H_
