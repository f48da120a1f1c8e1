// SPDX-License-Identifier: Apache-2.0
// Which executions on different ranks are one and the same. Profiles begin and end at different
// moments, so the n-th on one rank is not the n-th on another; in order of trust:
//
//   run_id       XLA gives each execution an id that all ranks share; believed when at least half
//                of the profiles find most of their ids in others. Ops that never have one (messages
//                of PyTorch) are then matched in order, if all ranks have as many
//   step         the user's step number, the program and the instruction within the step
//   subsequence  the longest common subsequence of (program, instruction) with the first profile
//                that has the instruction
//   order        for most events nothing but the order tells (CollectiveOp::by_order): within their
//                steps, and only where all ranks have as many
#ifndef XLA_PROFILER_COLLECTIVES_RUN_RESOLUTION_H_
#define XLA_PROFILER_COLLECTIVES_RUN_RESOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/collectives/collective_event.h"

namespace meridian {

enum class RunMethod { kRunId, kStep, kSubsequence, kOrder };

// "run_id", "step", "subsequence" or "order".
absl::string_view RunMethodName(RunMethod method);

// Events of one op with equal run and occurrence, on whichever devices, are one execution.
struct EventRun {
  // Means something only in comparison; kUnknownId when the event has no counterpart.
  int64_t run = kUnknownId;
  uint32_t occurrence = 0;
};

struct RunResolution {
  RunMethod method = RunMethod::kRunId;
  // The run of each event: runs[p][e] is that of event e of profile p.
  std::vector<std::vector<EventRun>> runs;
  // Why a weaker method was taken; empty for run_id.
  std::vector<std::string> notes;
};

RunResolution ResolveRuns(absl::Span<const ProfileCollectives> profiles);

// Returns a number that ops of equal program and instruction share across profiles, and no others.
absl::uint128 OpIdentity(const CollectiveOp& op);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_RUN_RESOLUTION_H_
