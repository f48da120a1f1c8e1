// SPDX-License-Identifier: Apache-2.0
// What `combine` does: the profiles of a run, read, put on one clock, written and checked.
//
//   open -> collectives -> clocks -> combined file -> exports for viewers
//                                 -> aligned files -> read back and checked
//
// Nothing is written before the clocks are known, and the files appear together, whole, or not at
// all.
#ifndef TRACE_ALIGNMENT_RUN_COMBINE_RUN_H_
#define TRACE_ALIGNMENT_RUN_COMBINE_RUN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/combine/combiner.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {

struct CombineRequest {
  RunFiles files;
  InputFileOptions input;
  // When each profile began, one per trace, for those that do not say; or empty.
  std::vector<std::optional<int64_t>> profile_start_ns;
  std::optional<int64_t> StartOf(size_t trace) const {
    return profile_start_ns.empty() ? std::nullopt : profile_start_ns[trace];
  }
  // One per trace, or empty to find them (node_ids.h).
  std::vector<int64_t> node_ids;
  // The id of a node; absent for the lowest.
  std::optional<int64_t> reference_node;
  // One per device, trace by trace, or empty to find them (rank_resolution.h).
  std::vector<int64_t> ranks;
  AlignmentOptions alignment;
  PlaneNaming naming = PlaneNaming::kViewer;
  // As in CombineOptions; of XSpaces alone.
  bool keep_original = false;
  int64_t max_extrapolation_ns = 60000000000;

  // Where things go; empty for what is not wanted. The combined file is gzip when it ends in .gz.
  std::string output;
  // Gets plugins/profile/<run>/<trace> for every trace.
  std::string output_dir;
  // Exports of the combined profile, which need not be wanted itself; gzip likewise.
  std::string trace_json;
  std::string perfetto;
  // The JSON of a run of XSpaces with more events is left out, which is noted: viewers cannot hold it.
  int64_t most_json_events = std::numeric_limits<int64_t>::max();
  // What else the command will write; none of these may be an input either.
  std::vector<std::string> other_outputs;
  // Check the written files instead of what was computed.
  bool validate = false;
  // Gets the collectives of the aligned XSpaces, if they were read to be checked; may be null.
  CollectiveRun* aligned_collectives = nullptr;
};

// Errors: InvalidArgument and the like for bad input, naming the file.
absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request);

// The same with the files left in `outputs`, for the caller to commit together with its own.
absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request,
                                         OutputFiles& outputs);

// Adds a file that was written.
void AddOutput(const OutputFile& file, CombineReport* report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_COMBINE_RUN_H_
