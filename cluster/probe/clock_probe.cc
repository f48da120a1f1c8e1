// clock_probe: measures the clocks between hosts, beside a job.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/probe/clock_source.h"
#include "cluster/probe/probe_daemon.h"
#include "cluster/probe/probe_hosts.h"
#include "cluster/probe/probe_writer.h"
#include "cluster/probe/udp_socket.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

constexpr int64_t kNsPerS = 1000000000;

Flag<std::string> FLAGS_output("output", "", "The folder that the files go to.");
Flag<std::string> FLAGS_hosts("hosts", "", "All hosts, a comma list of host or host:port.");
Flag<std::string> FLAGS_host_file(
    "host_file", "",
    "The same, one a line, each also with slots=N behind it for the job's processes there. "
    "Default: Open MPI's host file, else Slurm's node list.");
Flag<int64_t> FLAGS_host_index(
    "host_index", -1,
    "Which of the hosts this one is, from 0. Default: as MPI or Slurm say, else by its name.");
Flag<int64_t> FLAGS_nodes_per_host(
    "nodes_per_host", 1,
    "How many processes of the job, each with a profile, a host runs where no slots= says so.");
Flag<int64_t> FLAGS_port("port", 7321, "The UDP port of hosts that are listed without one.");
Flag<std::string> FLAGS_token(
    "token", "",
    "A word that all hosts of the job know and others do not. Default: MERIDIAN_PROBE_TOKEN, which "
    "other users of the machine do not see, else SLURM_JOB_ID.");
Flag<uint64_t> FLAGS_seed("seed", 12345, "Who asks whom; the same on all hosts.");
Flag<double> FLAGS_rate("rate", 100, "How many packets a second a host sends at most.");
Flag<int64_t> FLAGS_duration_s("duration_s", 0, "Stop after so long; 0: when told to.");
Flag<int64_t> FLAGS_max_file_mb("max_file_mb", 64, "A file that would get larger is put aside.");
Flag<int64_t> FLAGS_kept_files("kept_files", 16, "How many files put aside are kept of each kind.");
Flag<bool> FLAGS_snapshot_only(
    "snapshot_only", false,
    "Do not probe: write snapshot pairs of the host's clock and --second_clock.");
Flag<std::string> FLAGS_second_clock(
    "second_clock", "monotonic_raw",
    "For --snapshot_only: monotonic_raw, monotonic, boottime, tai or a clock device, /dev/ptp0.");
Flag<int64_t> FLAGS_period_ms("period_ms", 1000, "For --snapshot_only: from pair to pair.");
Flag<std::optional<int64_t>> FLAGS_start_walltime_ns(
    "start_walltime_ns", std::nullopt,
    "For --snapshot_only: what the profiler read as it began, for the header.");
Flag<std::optional<int64_t>> FLAGS_start_gpu_ns("start_gpu_ns", std::nullopt,
                                                "The same of the second clock.");

std::atomic<bool> stop{false};

// What was measured is to be written, so a signal only ends the loop.
void StopWhenSignalled() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop = true; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

std::string FirstNonEmpty(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

absl::StatusOr<std::vector<ProbeHost>> Hosts(const LauncherVariables& variables) {
  ProbeHost defaults;
  defaults.port = static_cast<int>(FLAGS_port.value());
  defaults.nodes = FLAGS_nodes_per_host.value();
  if (!FLAGS_hosts.value().empty()) {
    return ParseProbeHosts(FLAGS_hosts.value(), "--hosts", defaults);
  }
  const std::string file = FirstNonEmpty({UserPath(FLAGS_host_file),
                                          EnvironmentVariable("OMPI_MCA_orte_default_hostfile"),
                                          EnvironmentVariable("PRTE_MCA_prte_default_hostfile")});
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const InputFile input, InputFile::Open(FileSystem::Posix(), file));
    return ParseProbeHosts(input.bytes(), file, defaults);
  }
  if (variables.slurm_node_list.empty()) {
    return InvalidArgument(
        "no hosts; give --host_file or --hosts, e.g. --hosts=gpu01,gpu02, or start it with srun");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ExpandSlurmNodeList(variables.slurm_node_list));
  return ParseProbeHosts(absl::StrJoin(names, "\n"), "Slurm's node list", defaults);
}

std::string MachineName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

absl::StatusOr<ProbeDaemonOptions> DaemonOptions() {
  const LauncherVariables variables = {FirstNonEmpty({EnvironmentVariable("SLURM_STEP_NODELIST"),
                                                      EnvironmentVariable("SLURM_JOB_NODELIST")}),
                                       EnvironmentVariable("SLURM_NODEID"),
                                       EnvironmentVariable("OMPI_COMM_WORLD_RANK"),
                                       EnvironmentVariable("OMPI_COMM_WORLD_SIZE")};
  if (FLAGS_port.value() < 1 || FLAGS_port.value() > 65535 || FLAGS_nodes_per_host.value() < 1 ||
      FLAGS_nodes_per_host.value() > 4096 || !(FLAGS_rate.value() >= 1) ||
      FLAGS_rate.value() > 10000) {
    return InvalidArgument("--port is 1 to 65535, --nodes_per_host 1 to 4096, --rate 1 to 10000");
  }
  ProbeDaemonOptions options;
  ASSIGN_OR_RETURN(options.hosts, Hosts(variables));
  ASSIGN_OR_RETURN(options.host,
                   FindThisHost(options.hosts, FLAGS_host_index.value(), variables, MachineName()));
  // Hosts of lists of another length ask other neighbours: they are strangers too.
  options.key =
      absl::StrCat(FirstNonEmpty({FLAGS_token.value(), EnvironmentVariable("MERIDIAN_PROBE_TOKEN"),
                                  EnvironmentVariable("SLURM_JOB_ID")}),
                   "\n", options.hosts.size(), "\n", FLAGS_seed.value());
  options.seed = FLAGS_seed.value();
  options.packets_per_s = FLAGS_rate.value();
  ASSIGN_OR_RETURN(options.duration_ns, ScaledValue(FLAGS_duration_s, kNsPerS));
  return options;
}

absl::StatusOr<int> WriteSnapshotPairs(const std::string& folder, const RotationOptions& rotation) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ClockSource> clock,
                   SystemClockSource(FLAGS_second_clock.value()));
  ASSIGN_OR_RETURN(const int64_t period_ns, ScaledValue(FLAGS_period_ms, 1000000));
  ASSIGN_OR_RETURN(const int64_t duration_ns, ScaledValue(FLAGS_duration_s, kNsPerS));
  if (period_ns == 0) return InvalidArgument("--period_ms is 0");
  // Without hosts there is nothing to hold it against.
  int64_t node_id = FLAGS_host_index.value();
  if (node_id < 0 && !absl::SimpleAtoi(FirstNonEmpty({EnvironmentVariable("OMPI_COMM_WORLD_RANK"),
                                                      EnvironmentVariable("SLURM_NODEID"), "0"}),
                                       &node_id)) {
    return InvalidArgument("say which host this is with --host_index, from 0");
  }
  if (node_id < 0 || FLAGS_nodes_per_host.value() < 1) {
    return InvalidArgument("--nodes_per_host is at least 1, and hosts count from 0");
  }
  // The host's first node.
  node_id *= FLAGS_nodes_per_host.value();
  std::string header = absl::StrCat("{\"meta\":true,\"node_id\":", node_id, ",\"absolute\":true");
  if (FLAGS_start_walltime_ns.value().has_value()) {
    absl::StrAppend(&header, ",\"start_walltime_ns\":", *FLAGS_start_walltime_ns.value());
  }
  if (FLAGS_start_gpu_ns.value().has_value()) {
    absl::StrAppend(&header, ",\"start_gpu_ns\":", *FLAGS_start_gpu_ns.value());
  }
  RETURN_IF_ERROR(FileSystem::Posix().CreateDirectories(folder));
  RotatingFile file(FileSystem::Posix(), folder, absl::StrCat("node", node_id, ".snapshots"),
                    absl::StrCat(header, "}\n"), rotation);
  RETURN_IF_ERROR(WriteSnapshots(*clock, period_ns, duration_ns, file, stop));
  return kExitDone;
}

std::string CountsText(const ProbeCounts& counts) {
  const std::pair<absl::string_view, int64_t> fields[] = {
      {"packets_sent", counts.packets_sent},
      {"packets_received", counts.packets_received},
      {"foreign", counts.foreign},
      {"refused", counts.refused},
      {"over_rate", counts.over_rate},
      {"own_steps", counts.own_steps},
      {"neighbour_steps", counts.neighbour_steps},
      {"answered", counts.answered},
      {"lost", counts.lost}};
  std::string text;
  if (!JsonWanted()) {
    for (const auto& [name, count] : fields) absl::StrAppend(&text, name, " ", count, "\n");
    return text;
  }
  JsonWriter json(&text);
  json.BeginObject();
  for (const auto& [name, count] : fields) json.Member(name, count);
  json.EndObject();
  return absl::StrCat(text, "\n");
}

absl::StatusOr<int> Probe() {
  ASSIGN_OR_RETURN(const std::string folder, RequiredPath(FLAGS_output, "folder", "probes/"));
  RotationOptions rotation;
  ASSIGN_OR_RETURN(rotation.max_file_bytes, ScaledValue(FLAGS_max_file_mb, 1 << 20));
  ASSIGN_OR_RETURN(rotation.kept_files, ScaledValue(FLAGS_kept_files, 1));
  StopWhenSignalled();
  if (FLAGS_snapshot_only.value()) return WriteSnapshotPairs(folder, rotation);
  ASSIGN_OR_RETURN(ProbeDaemonOptions options, DaemonOptions());
  options.output_folder = folder;
  options.rotation = rotation;
  ASSIGN_OR_RETURN(const std::unique_ptr<ClockSource> clock, SystemClockSource("monotonic_raw"));
  ASSIGN_OR_RETURN(UdpSocket socket,
                   UdpSocket::Open(options.hosts[options.host].port, /*kernel_stamps=*/true));
  std::fprintf(stderr, "clock_probe: node %lld of %zu hosts, UDP port %d, stamps by %s\n",
               static_cast<long long>(options.hosts[options.host].first_node), options.hosts.size(),
               socket.port(),
               socket.stamps_sent()       ? "the kernel"
               : socket.stamps_received() ? "the kernel (received) and the program"
                                          : "the program");
  ASSIGN_OR_RETURN(const ProbeCounts counts,
                   RunProbeDaemon(options, socket, *clock, FileSystem::Posix(), stop));
  RETURN_IF_ERROR(Print(CountsText(counts)));
  if (counts.answered == 0) {
    std::fprintf(stderr,
                 "clock_probe: warning: no neighbour has answered: are the others started with the "
                 "same hosts, --token and --seed, and is the port open?\n");
  }
  return kExitDone;
}

Command ClockProbeCommand() {
  return {"clock_probe",
          "Measures how far the clocks of a job's hosts are apart, beside the job, until it is "
          "told to stop. Start one on each host; combine --probes=FOLDER uses what they write.",
          {"clock_probe --hosts=gpu01,gpu02 --output=probes/",
           "srun --ntasks-per-node=1 clock_probe --output=probes/",
           "clock_probe --snapshot_only --second_clock=boottime --output=pairs/"},
          {&FLAGS_output, &FLAGS_hosts, &FLAGS_host_file, &FLAGS_host_index, &FLAGS_nodes_per_host,
           &FLAGS_port, &FLAGS_token, &FLAGS_seed, &FLAGS_rate, &FLAGS_duration_s,
           &FLAGS_max_file_mb, &FLAGS_kept_files, &FLAGS_snapshot_only, &FLAGS_second_clock,
           &FLAGS_period_ms, &FLAGS_start_walltime_ns, &FLAGS_start_gpu_ns},
          Probe};
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(meridian::ClockProbeCommand(), argc, argv);
}
