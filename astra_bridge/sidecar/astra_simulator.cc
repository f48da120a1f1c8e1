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
  return absl::AbortedError(
      absl::StrCat("AstraSim exited with ", end.exit_code, ": ", progress,
                   "; --engine=embedded says what is wrong with inputs that it cannot finish"));
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
