// combine_mpi: the profiles of a run's nodes on one clock, by as many processes as MPI starts.

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cluster/mpi/mpi_processes.h"
#include "tools/combine_flags.h"
#include "tools/combine_report_text.h"
#include "tools/command.h"
#include "tools/profiles.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/wire/packed_bytes.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_output_dir("output_dir", "",
                                   "A folder that all ranks can write into. Aligned profiles go to "
                                   "plugins/profile/<run>/, one per node.");
Flag<std::string> FLAGS_report_json("report_json", "",
                                    "Also writes what --json prints to this file.");

// Returns what the flags say. The first rank looks for the files, for all: thousands of ranks that
// search one folder are a burden, and might find different things.
absl::StatusOr<CombineRequest> ReadRequest(RunProcesses& processes) {
  absl::StatusOr<RunFiles> found = RunFiles();
  if (processes.is_first()) found = FindCombineFiles();
  RETURN_IF_ERROR(processes.Agree(found.status()));
  RunFiles& files = *found;
  const auto pack = [&](PackedBytes& bytes) {
    bytes(files.traces, files.snapshots, files.offsets, files.probes, files.name, files.notes);
  };
  PackedBytes packed;
  pack(packed);
  std::string bytes = packed.bytes();
  processes.Broadcast(&bytes);
  PackedBytes received(bytes);
  pack(received);
  RETURN_IF_ERROR(received.Finish());
  ASSIGN_OR_RETURN(CombineRequest request, AlignmentRequest());
  request.files = std::move(files);
  ASSIGN_OR_RETURN(request.output_dir, RequiredPath(FLAGS_output_dir, "folder", "out/"));
  request.other_outputs = {UserPath(FLAGS_report_json)};
  return request;
}

// The first rank prints; what fails, fails on all.
absl::StatusOr<int> CombineTogether(RunProcesses& processes) {
  ASSIGN_OR_RETURN(const CombineRequest request, ReadRequest(processes));
  ASSIGN_OR_RETURN(CombineReport report, CombineRun(FileSystem::Posix(), request, processes));
  if (!processes.is_first()) return kExitDone;
  if (FLAGS_report_json.given()) {
    OutputFiles outputs(FileSystem::Posix());
    RETURN_IF_ERROR(WriteReport("report_json", UserPath(FLAGS_report_json), ReportToJson(report),
                                &outputs, &report));
    RETURN_IF_ERROR(outputs.Commit());
  }
  return PrintReport(report, FormatCombineReport);
}

int CombineMain(int argc, char** argv) {
  MpiProcesses processes;
  const Command command = {
      "combine_mpi",
      "Puts the profiles of a run's nodes on one clock, as combine does, by many processes: each "
      "reads and writes the profiles of some nodes, the first finds the clocks. Writes the aligned "
      "profiles and the report; the files are those of combine, byte for byte.",
      {"mpirun -n 16 combine_mpi --run_dir=logs/ --output_dir=out/"},
      {&FLAGS_run_dir, &FLAGS_traces, &FLAGS_snapshots, &FLAGS_offsets, &FLAGS_probes,
       &FLAGS_method, &FLAGS_reference_node, &FLAGS_node_ids, &FLAGS_profile_start_ns, &FLAGS_ranks,
       &FLAGS_max_drift_ppm, &FLAGS_min_transfer_ns, &FLAGS_end_agreement, &FLAGS_offset_slope,
       &FLAGS_max_extrapolation_ms, &FLAGS_output_dir, &FLAGS_report_json},
      [&]() { return CombineTogether(processes); }};
  return RunMpiCommand(&processes, command, argc, argv);
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) { return meridian::CombineMain(argc, argv); }
