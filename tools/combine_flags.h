// SPDX-License-Identifier: Apache-2.0
// The flags that say which profiles are put on one clock, and how: those of combine and of
// combine_mpi.
#ifndef TOOLS_COMBINE_FLAGS_H_
#define TOOLS_COMBINE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/command_line/command_line.h"

namespace meridian {

extern Flag<std::string> FLAGS_traces;
extern Flag<std::string> FLAGS_snapshots;
extern Flag<std::string> FLAGS_offsets;
extern Flag<std::string> FLAGS_probes;
extern Flag<std::string> FLAGS_method;
extern Flag<std::optional<int64_t>> FLAGS_reference_node;
extern Flag<std::string> FLAGS_node_ids;
extern Flag<std::string> FLAGS_profile_start_ns;
extern Flag<std::string> FLAGS_ranks;
extern Flag<double> FLAGS_max_drift_ppm;
extern Flag<int64_t> FLAGS_min_transfer_ns;
extern Flag<bool> FLAGS_end_agreement;
extern Flag<std::string> FLAGS_offset_slope;
extern Flag<int64_t> FLAGS_max_extrapolation_ms;

// Finds what the flags name.
absl::StatusOr<RunFiles> FindCombineFiles();

// Returns what the other flags say.
absl::StatusOr<CombineRequest> AlignmentRequest();

}  // namespace meridian

#endif  // TOOLS_COMBINE_FLAGS_H_
