#include "astra_bridge/sidecar/astra_binary.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {
namespace {

constexpr char kRemedy[] =
    "give its path with --astra_binary, put it into PATH, or use the embedded engine, which gives "
    "the same times";

// 1 MiB at 50 GiB/s is 19531.25 ns; with 500 ns per link, and 1 ns for the node before it:
constexpr int64_t kUnawareFinishNs = 1 + 20531;    // trunc(2 * 500 + 19531.25)
constexpr int64_t kAwareFinishNs = 1 + 2 * 20031;  // 2 * trunc(500 + 19531.25)

std::vector<absl::string_view> NamesFor(Congestion congestion) {
  return {congestion == Congestion::kAware ? "AstraSim_Analytical_Congestion_Aware"
                                           : "AstraSim_Analytical_Congestion_Unaware",
          "AstraSim"};
}

bool IsProgram(FileSystem& file_system, const std::string& path) {
  const absl::StatusOr<FileKind> kind = file_system.Kind(path);
  return kind.ok() && *kind == FileKind::kRegular && access(path.c_str(), X_OK) == 0;
}

// Returns the path from the root on: the child runs in another folder.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

// Rank 0 of 2 sends a megabyte to rank 1 over a switch, after a node of 1 ns.
Workload ProbeWorkload() {
  WorkloadNode start;
  start.id = 1;
  WorkloadNode message;
  message.id = 2;
  message.bytes = 1 << 20;
  message.tag = 1;
  Workload workload;
  workload.ranks.resize(2);
  for (int32_t rank : {0, 1}) {
    message.type = rank == 0 ? WorkloadNodeType::kSend : WorkloadNodeType::kReceive;
    message.peer = 1 - rank;
    workload.ranks[rank].Add(start);
    workload.ranks[rank].Add(message, {start.id});
  }
  return workload;
}

NetworkConfig ProbeNetwork() {
  NetworkDimension dimension;
  dimension.shape = BlockShape::kSwitch;
  dimension.npus = 2;
  dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(50);
  dimension.latency_ns = 500;
  NetworkConfig network;
  network.dimensions = {dimension};
  return network;
}

}  // namespace

absl::StatusOr<std::string> FindAstraBinary(FileSystem& file_system, const std::string& given,
                                            absl::string_view search_path, Congestion congestion) {
  if (!given.empty()) {
    if (IsProgram(file_system, given)) return Absolute(given);
    return absl::UnavailableError(
        absl::StrCat("--astra_binary=", given, ": there is no program that can be run"));
  }
  for (absl::string_view folder : absl::StrSplit(search_path, ':', absl::SkipEmpty())) {
    for (absl::string_view name : NamesFor(congestion)) {
      const std::string path = absl::StrCat(folder, "/", name);
      if (IsProgram(file_system, path)) return Absolute(path);
    }
  }
  return absl::UnavailableError(
      absl::StrCat("there is no AstraSim (", NamesFor(congestion)[0], ") in PATH; ", kRemedy));
}

absl::StatusOr<std::string> HashOfAstraBinary(FileSystem& file_system, const std::string& binary) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, binary));
  return absl::StrCat("binary ", HashDigits(HashOfText(file.bytes())));
}

absl::StatusOr<std::string> ProbeAstraBinary(FileSystem& file_system,
                                             const AstraSimulatorOptions& options,
                                             Congestion wanted) {
  const absl::StatusOr<SimulationResult> answer =
      SimulateWithAstraSim(file_system, ProbeWorkload(), ProbeNetwork(), SystemConfig(), options);
  if (!answer.ok()) {
    return absl::UnavailableError(absl::StrCat(
        options.binary, " fails a first try: ", answer.status().message(), "; ", kRemedy));
  }
  const int64_t finish_ns = answer->finish_ns[1];
  if (finish_ns != kAwareFinishNs && finish_ns != kUnawareFinishNs) {
    return absl::UnavailableError(absl::StrCat(
        options.binary, " is no AstraSim with the analytical network: a first try took ", finish_ns,
        " cycles, not ", kAwareFinishNs, " or ", kUnawareFinishNs, "; ", kRemedy));
  }
  const bool is_aware = finish_ns == kAwareFinishNs;
  if (is_aware == (wanted == Congestion::kAware)) {
    return HashOfAstraBinary(file_system, options.binary);
  }
  return InvalidArgument(
      options.binary, " is the congestion-", is_aware ? "aware" : "unaware",
      " AstraSim; give the other one with --astra_binary, or ask for --congestion=",
      is_aware ? "aware" : "unaware");
}

}  // namespace meridian
