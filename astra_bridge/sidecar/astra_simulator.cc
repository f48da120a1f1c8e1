#include "astra_bridge/sidecar/astra_simulator.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "astra_bridge/sidecar/astra_output.h"
#include "astra_bridge/sidecar/child_process.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/scratch_folder.h"

namespace meridian {
namespace {

// AstraSim keeps that many logs of 10 MB: log.log, and before it log.1.log, log.2.log, ...
constexpr int kMaxRotatedLogs = 10;

constexpr char kOutputFile[] = "output.txt";
constexpr char kErrorFile[] = "errors.txt";

ChildProcessOptions CommandFor(const Workload& workload, const std::string& folder,
                               const AstraSimulatorOptions& options) {
  ChildProcessOptions child;
  child.command = {options.binary,
                   absl::StrCat("--workload-configuration=", kWorkloadPrefix),
                   absl::StrCat("--system-configuration=", kSystemFile),
                   absl::StrCat("--network-configuration=", kNetworkFile),
                   absl::StrCat("--remote-memory-configuration=", kMemoryFile),
                   absl::StrCat("--logging-folder=", kLogFolder)};
  if (!workload.groups.empty()) {
    child.command.push_back(absl::StrCat("--comm-group-configuration=", kGroupsFile));
  }
  child.working_directory = folder;
  child.output_file = kOutputFile;
  child.error_file = kErrorFile;
  child.timeout = options.timeout;
  return child;
}

absl::StatusOr<std::vector<NodeTime>> ReadNodeTimes(FileSystem& file_system,
                                                    const std::string& folder, int64_t ranks) {
  std::vector<InputFile> files;
  const std::string base = absl::StrCat(folder, "/", kLogFolder, "/log");
  for (int part = kMaxRotatedLogs; part >= 0; --part) {
    const std::string path = absl::StrCat(base, part == 0 ? "" : absl::StrCat(".", part), ".log");
    if (absl::IsNotFound(file_system.Kind(path).status())) continue;
    ASSIGN_OR_RETURN(InputFile file, InputFile::Open(file_system, path));
    files.push_back(std::move(file));
  }
  std::vector<absl::string_view> parts;
  for (const InputFile& file : files) parts.push_back(file.bytes());
  absl::StatusOr<std::vector<NodeTime>> nodes = ParseAstraNodeTimes(parts, ranks);
  if (nodes.ok()) return nodes;
  return absl::DataLossError(absl::StrCat("AstraSim's log does not tell the times of all nodes: ",
                                          nodes.status().message()));
}

}  // namespace

absl::StatusOr<SimulationResult> SimulateWithAstraSim(FileSystem& file_system,
                                                      const Workload& workload,
                                                      const NetworkConfig& network,
                                                      const SystemConfig& system,
                                                      const AstraSimulatorOptions& options) {
  const int64_t ranks = static_cast<int64_t>(workload.ranks.size());
  MERIDIAN_CHECK(ranks == network.npus());
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create(options.work_folder, "astra"));
  RETURN_IF_ERROR(
      WriteAstraFiles(file_system, folder.path(), workload, network, system, options.node_times));
  AstraRun run;
  ASSIGN_OR_RETURN(run.end, RunChildProcess(CommandFor(workload, folder.path(), options)));
  const auto open = [&](absl::string_view name) {
    return InputFile::Open(file_system, absl::StrCat(folder.path(), "/", name));
  };
  ASSIGN_OR_RETURN(const InputFile output, open(kOutputFile));
  ASSIGN_OR_RETURN(const InputFile errors, open(kErrorFile));
  run.output = output.bytes();
  run.errors = errors.bytes();
  SimulationResult result;
  ASSIGN_OR_RETURN(result.finish_ns, AstraFinishTimes(run, ranks, options.timeout));
  if (options.node_times) {
    ASSIGN_OR_RETURN(result.nodes, ReadNodeTimes(file_system, folder.path(), ranks));
  }
  return result;
}

}  // namespace meridian
