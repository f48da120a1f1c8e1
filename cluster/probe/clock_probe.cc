// clock_probe: measures the clocks between hosts, beside a job.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cluster/probe/clock_source.h"
#include "cluster/probe/probe_daemon.h"
#include "cluster/probe/probe_hosts.h"
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
    "The same, one a line, each also with slots=N behind it for the job's processes there.");
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

absl::StatusOr<std::vector<ProbeHost>> Hosts() {
  ProbeHost defaults;
  defaults.port = static_cast<int>(FLAGS_port.value());
  defaults.nodes = FLAGS_nodes_per_host.value();
  if (!FLAGS_hosts.value().empty()) {
    return ParseProbeHosts(FLAGS_hosts.value(), "--hosts", defaults);
  }
  const std::string file = UserPath(FLAGS_host_file);
  if (file.empty()) {
    return InvalidArgument("no hosts; give --host_file or --hosts, e.g. --hosts=gpu01,gpu02");
  }
  ASSIGN_OR_RETURN(const InputFile input, InputFile::Open(FileSystem::Posix(), file));
  return ParseProbeHosts(input.bytes(), file, defaults);
}

std::string MachineName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

absl::StatusOr<ProbeDaemonOptions> DaemonOptions() {
  const LauncherVariables variables = {EnvironmentVariable("SLURM_NODEID"),
                                       EnvironmentVariable("OMPI_COMM_WORLD_RANK"),
                                       EnvironmentVariable("OMPI_COMM_WORLD_SIZE")};
  if (FLAGS_port.value() < 1 || FLAGS_port.value() > 65535 || FLAGS_nodes_per_host.value() < 1 ||
      FLAGS_nodes_per_host.value() > 4096 || !(FLAGS_rate.value() >= 1) ||
      FLAGS_rate.value() > 10000) {
    return InvalidArgument("--port is 1 to 65535, --nodes_per_host 1 to 4096, --rate 1 to 10000");
  }
  ProbeDaemonOptions options;
  ASSIGN_OR_RETURN(options.hosts, Hosts());
  ASSIGN_OR_RETURN(options.host,
                   FindThisHost(options.hosts, FLAGS_host_index.value(), variables, MachineName()));
  std::string token = FLAGS_token.value();
  for (const char* variable : {"MERIDIAN_PROBE_TOKEN", "SLURM_JOB_ID"}) {
    if (token.empty()) token = EnvironmentVariable(variable);
  }
  // Hosts of lists of another length ask other neighbours: they are strangers too.
  options.key = absl::StrCat(token, "\n", options.hosts.size(), "\n", FLAGS_seed.value());
  options.seed = FLAGS_seed.value();
  options.packets_per_s = FLAGS_rate.value();
  ASSIGN_OR_RETURN(options.duration_ns, ScaledValue(FLAGS_duration_s, kNsPerS));
  return options;
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
  StopWhenSignalled();
  ASSIGN_OR_RETURN(ProbeDaemonOptions options, DaemonOptions());
  options.output_folder = folder;
  const std::unique_ptr<ClockSource> clock = SystemClockSource();
  ASSIGN_OR_RETURN(UdpSocket socket,
                   UdpSocket::Open(options.hosts[options.host].port, /*kernel_stamps=*/true));
  std::fprintf(stderr, "clock_probe: node %lld of %zu hosts, UDP port %d\n",
               static_cast<long long>(options.hosts[options.host].first_node), options.hosts.size(),
               socket.port());
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
           "srun --ntasks-per-node=1 clock_probe --hosts=$(scontrol show hostnames | paste -sd,) "
           "--output=probes/"},
          {&FLAGS_output, &FLAGS_hosts, &FLAGS_host_file, &FLAGS_host_index, &FLAGS_nodes_per_host,
           &FLAGS_port, &FLAGS_token, &FLAGS_seed, &FLAGS_rate, &FLAGS_duration_s},
          Probe};
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(meridian::ClockProbeCommand(), argc, argv);
}
