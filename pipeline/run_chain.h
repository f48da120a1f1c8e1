// SPDX-License-Identifier: Apache-2.0
// The whole chain, from the profiles of a run to one report:
//
//   align      clocks, happens-before, the combined profile, files for viewers
//   chakra     execution traces
//   path       critical path, blame, what-if, timeline
//   simulate   calibration, simulated against measured
//   report     report.html and report.json
//
// Everything goes into one folder; what the chain made there before is replaced. A stage that cannot do
// its work says why in the report; the others go on.
#ifndef PIPELINE_RUN_CHAIN_H_
#define PIPELINE_RUN_CHAIN_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/run_report.pb.h"
#include "trace_alignment/run/combine_run.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct ChainRequest {
  // Files and how clocks are found; its outputs are set by the chain.
  CombineRequest combine;
  // Execution traces of PyTorch, which Chakra traces need; may be empty.
  std::vector<std::string> host_traces;
  // Profiles of a sweep on the same machine; empty to calibrate with the run itself.
  std::vector<std::string> sweep;
  std::string output_dir;
  // Names of stages; empty for all. `align` is always run.
  std::set<std::string> stages;
  // The report of another run, to compare with; may be null.
  const RunReport* baseline = nullptr;
  // What the user called, and of which version, for the report.
  std::string command;
  std::string version;
};

// The names of the stages, in their order.
inline constexpr absl::string_view kChainStages[] = {"align", "chakra", "path", "simulate",
                                                     "report"};

// Returns the report as it was written, with the outputs of all stages in its `combine`. Errors are
// those of alignment, and of the environment: another process that fills the folder is one.
absl::StatusOr<RunReport> RunChain(FileSystem& file_system, const ChainRequest& request);

// Returns the report of a run to compare: the one in the folder, if `combine` made it or the folder is
// such a file; else that of the profiles in it, aligned and analysed in a temporary folder.
absl::StatusOr<RunReport> ReportOfRun(FileSystem& file_system, const std::string& folder,
                                      const InputFileOptions& input, absl::string_view version);

}  // namespace meridian

#endif  // PIPELINE_RUN_CHAIN_H_
