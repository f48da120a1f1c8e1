#include "astra_bridge/sidecar/astra_simulator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "re2/re2.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// AstraSim keeps that many logs of 10 MB: log.log, and before it log.1.log, log.2.log, ...
constexpr int kMaxRotatedLogs = 10;

constexpr char kOutputFile[] = "output.txt";
constexpr char kErrorFile[] = "errors.txt";

// The files of a run; those that the program does not know may be empty.
std::vector<std::string> ArgumentsOf(const AstraBackendFiles& files, absl::string_view memory,
                                     absl::string_view log_folder) {
  std::vector<std::string> arguments = {absl::StrCat("--workload-configuration=", files.prefix),
                                        absl::StrCat("--system-configuration=", files.system),
                                        absl::StrCat("--network-configuration=", files.network),
                                        absl::StrCat("--remote-memory-configuration=", memory)};
  const auto add = [&](absl::string_view name, absl::string_view value) {
    if (!value.empty()) arguments.push_back(absl::StrCat("--", name, "=", value));
  };
  add("logging-folder", log_folder);
  add("logical-topology-configuration", files.logical_topology);
  add("comm-group-configuration", files.groups);
  return arguments;
}

// Returns how large a file is; 0 when there is none.
size_t SizeOf(FileSystem& file_system, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<MappedRegion>> file = file_system.Map(path);
  return file.ok() ? (*file)->bytes().size() : 0;
}

std::string LogBase(const std::string& folder) {
  return absl::StrCat(folder, "/", kLogFolder, "/log");
}

// The log of the run begins behind so many bytes of log.log.
absl::StatusOr<std::vector<NodeTime>> ReadNodeTimes(FileSystem& file_system,
                                                    const std::string& folder, size_t begins_at,
                                                    int64_t ranks) {
  std::vector<InputFile> files;
  const std::string base = LogBase(folder);
  for (int part = kMaxRotatedLogs; part >= 0; --part) {
    const std::string path = absl::StrCat(base, part == 0 ? "" : absl::StrCat(".", part), ".log");
    const bool is_older = begins_at > 0 && part > 0;
    if (is_older || absl::IsNotFound(file_system.Kind(path).status())) continue;
    ASSIGN_OR_RETURN(InputFile file, InputFile::Open(file_system, path));
    files.push_back(std::move(file));
  }
  std::vector<absl::string_view> parts;
  for (const InputFile& file : files) parts.push_back(file.bytes());
  if (begins_at > 0 && (parts.empty() || parts[0].size() < begins_at)) {
    return absl::DataLossError(
        absl::StrCat(base, ".log was cut while AstraSim ran; remove it first"));
  }
  if (begins_at > 0) parts[0].remove_prefix(begins_at);
  absl::StatusOr<std::vector<NodeTime>> nodes = ParseAstraNodeTimes(parts, ranks);
  if (nodes.ok()) return nodes;
  return absl::DataLossError(absl::StrCat("AstraSim's log does not tell the times of all nodes: ",
                                          nodes.status().message()));
}

// Runs the program in one folder, where `log` is; what it says goes into another.
absl::StatusOr<SimulationResult> Run(FileSystem& file_system, const std::string& folder,
                                     const std::string& working_directory,
                                     const std::vector<std::string>& arguments, int64_t ranks,
                                     const AstraSimulatorOptions& options) {
  ChildProcessOptions child;
  child.command = {options.binary};
  child.command.insert(child.command.end(), arguments.begin(), arguments.end());
  child.working_directory = working_directory;
  child.output_file = absl::StrCat(folder, "/", kOutputFile);
  child.error_file = absl::StrCat(folder, "/", kErrorFile);
  child.timeout = options.timeout;
  const size_t log_bytes = SizeOf(file_system, absl::StrCat(LogBase(working_directory), ".log"));
  AstraRun run;
  ASSIGN_OR_RETURN(run.end, RunChildProcess(child));
  ASSIGN_OR_RETURN(const InputFile output, InputFile::Open(file_system, child.output_file));
  ASSIGN_OR_RETURN(const InputFile errors, InputFile::Open(file_system, child.error_file));
  run.output = output.bytes();
  run.errors = errors.bytes();
  SimulationResult result;
  ASSIGN_OR_RETURN(result.finish_ns, AstraFinishTimes(run, ranks, options.timeout));
  if (options.node_times) {
    ASSIGN_OR_RETURN(result.nodes, ReadNodeTimes(file_system, working_directory, log_bytes, ranks));
  }
  return result;
}

constexpr size_t kMaxComplaints = 2;
constexpr size_t kShownCharacters = 200;
constexpr int64_t kUnfinished = -1;

bool IsComplaint(absl::string_view line) {
  for (absl::string_view sign : {"[Error]", "[error]", "[critical]", "terminate called",
                                 "Assertion", "what():", "unreleased nodes"}) {
    if (absl::StrContains(line, sign)) return true;
  }
  return false;
}

bool ParseFinish(absl::string_view line, int64_t* rank, int64_t* finish_ns) {
  static const RE2& finished =
      *new RE2(R"(\] sys\[(\d+)\] finished, (\d+) cycles, exposed communication \d+ cycles\.)");
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), finished, rank, finish_ns);
}

std::string Shown(absl::string_view line) {
  return FirstCharacters(Printable(line.substr(0, 4 * kShownCharacters)), kShownCharacters);
}

// `progress` says how many ranks finished and what AstraSim said.
absl::Status Failure(const ChildProcessResult& end, absl::Duration timeout,
                     absl::string_view progress) {
  using End = ChildProcessResult::End;
  switch (end.end) {
    case End::kTimedOut:
      return absl::DeadlineExceededError(
          absl::StrCat("AstraSim was ended after ", absl::FormatDuration(timeout), ": ", progress));
    case End::kWroteTooMuch:
      return absl::AbortedError(
          absl::StrCat("AstraSim was ended because it wrote without end: ", progress));
    case End::kSignaled:
      return absl::AbortedError(
          absl::StrCat("AstraSim crashed (signal ", end.signal, "): ", progress));
    case End::kExited:
      break;
  }
  if (end.exit_code == 255) {
    return InvalidArgument("AstraSim refused its configuration (exit 255): ", progress);
  }
  return absl::AbortedError(absl::StrCat("AstraSim exited with ", end.exit_code, ": ", progress));
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
  AstraBackendFiles files{std::string(kWorkloadPrefix),
                          std::string(kSystemFile),
                          std::string(kNetworkFile),
                          "",
                          std::string(workload.groups.empty() ? "" : kGroupsFile),
                          ""};
  absl::StatusOr<SimulationResult> result =
      Run(file_system, folder.path(), folder.path(), ArgumentsOf(files, kMemoryFile, kLogFolder),
          ranks, options);
  if (!absl::IsAborted(result.status())) return result;
  return absl::AbortedError(
      absl::StrCat(result.status().message(),
                   "; --engine=embedded says what is wrong with inputs that it cannot finish"));
}

absl::StatusOr<SimulationResult> RunAstraBackend(FileSystem& file_system,
                                                 const AstraBackendFiles& files, int64_t ranks,
                                                 const AstraSimulatorOptions& options) {
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create(options.work_folder, "astra"));
  std::string memory = files.memory;
  if (memory.empty()) {
    memory = absl::StrCat(folder.path(), "/", kMemoryFile);
    RETURN_IF_ERROR(WriteScratchFile(file_system, memory, RemoteMemoryToJson(RemoteMemory())));
  }
  const std::string program_folder = options.binary.substr(0, options.binary.rfind('/') + 1);
  absl::StatusOr<SimulationResult> result =
      Run(file_system, folder.path(), program_folder, ArgumentsOf(files, memory, /*log_folder=*/""),
          ranks, options);
  if (result.ok() && options.node_times && result->nodes.empty()) {
    return InvalidArgument(files.system, ": times of nodes need \"trace-enabled\": 1");
  }
  return result;
}

absl::StatusOr<std::vector<int64_t>> AstraFinishTimes(const AstraRun& run, int64_t ranks,
                                                      absl::Duration timeout) {
  std::vector<int64_t> finish_ns(ranks, kUnfinished);
  std::vector<std::string> complaints;
  int64_t finished = 0;
  for (absl::string_view line : absl::StrSplit(run.output, '\n')) {
    if (complaints.size() < kMaxComplaints && IsComplaint(line)) complaints.push_back(Shown(line));
    int64_t rank = 0, rank_ns = 0;
    if (!ParseFinish(line, &rank, &rank_ns)) continue;
    if (rank >= ranks || (finish_ns[rank] != kUnfinished && finish_ns[rank] != rank_ns)) {
      return absl::AbortedError(absl::StrCat("AstraSim's output makes no sense: of ", ranks,
                                             " ranks, one more or again: ", Shown(line)));
    }
    if (finish_ns[rank] == kUnfinished) ++finished;
    finish_ns[rank] = rank_ns;
  }
  if (finished == ranks) return finish_ns;
  if (complaints.empty()) {
    const std::vector<absl::string_view> lines =
        absl::StrSplit(absl::StripAsciiWhitespace(run.errors), '\n');
    if (!lines.back().empty()) complaints.push_back(Shown(lines.back()));
  }
  std::string progress = absl::StrCat(finished, " of ", ranks, " ranks finished");
  if (!complaints.empty()) {
    absl::StrAppend(&progress, "; it said: ", absl::StrJoin(complaints, " | "));
  }
  return Failure(run.end, timeout, progress);
}

absl::StatusOr<std::vector<NodeTime>> ParseAstraNodeTimes(
    absl::Span<const absl::string_view> log_parts, int64_t ranks) {
  std::vector<NodeTime> nodes;
  // Positions in `nodes`.
  absl::flat_hash_map<std::pair<int32_t, uint64_t>, size_t> by_rank_and_id;
  const auto lost = [](const NodeTime& node, absl::string_view what) {
    return absl::DataLossError(absl::StrCat("node ", node.id, " of rank ", node.rank, " ", what));
  };
  static const RE2& node_line =
      *new RE2(R"((issue|callback),sys->id=(\d+), tick=(\d+), node->id=(\d+), node->name=)");
  for (absl::string_view part : log_parts) {
    for (absl::string_view line : absl::StrSplit(part, '\n')) {
      NodeTime node;
      int64_t tick = 0;
      re2::StringPiece what;
      if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), node_line, &what,
                             &node.rank, &tick, &node.id)) {
        continue;
      }
      const bool is_issue = what == "issue";
      const auto [known, is_new] =
          by_rank_and_id.insert({std::make_pair(node.rank, node.id), nodes.size()});
      if (is_issue) {
        if (!is_new) return lost(node, "was issued twice");
        node.issue_ns = tick;
        node.finish_ns = kUnfinished;
        nodes.push_back(node);
      } else if (is_new || nodes[known->second].finish_ns != kUnfinished) {
        return lost(node, "finished but was not running");
      } else {
        nodes[known->second].finish_ns = tick;
      }
    }
  }
  for (const NodeTime& node : nodes) {
    if (node.finish_ns == kUnfinished) return lost(node, "did not finish");
    if (node.rank >= ranks) {
      return absl::DataLossError(absl::StrCat("there is no rank ", node.rank));
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeTime& a, const NodeTime& b) {
    return std::tie(a.rank, a.id) < std::tie(b.rank, b.id);
  });
  return nodes;
}

}  // namespace meridian
