// What the embedded engine costs, against what AstraSim cost on the same runs: CPU seconds in
// process (inputs in memory) and of the whole command (execution traces read from files).
//
//   ./bazelw run //benchmarks:engine_benchmark -- [--astra_folder=/path/to/astra-sim/bin]
//
// AstraSim's seconds are recorded ones, of 2 cores of an Arm Neoverse-V1, unless its programs are
// there to be measured in the same run. Exits with 1 when a time to reach is missed, or when a run
// does not end when AstraSim's did.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/golden_runs.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "benchmarks/ratio_benchmark.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_astra_folder("astra_folder", "",
                                     "Folder of AstraSim's programs. Default: recorded times.");
Flag<std::string> FLAGS_only("only", "", "Part of the names of the cases to run. Default: all.");
Flag<int> FLAGS_rounds("rounds", 5, "How often each case runs; the least time counts.");

// CPU seconds of all children that have ended.
double ChildCpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return CpuSeconds(usage);
}

// What a case is to reach, as a share of AstraSim's CPU time.
struct Reach {
  std::optional<double> in_process;
  std::optional<double> whole_process;
};

Reach ReachOf(const GoldenCost& cost) {
  const int32_t npus = cost.run.network.npus();
  const bool is_ring = absl::EndsWith(cost.name, "ALL_REDUCE ring");
  Reach reach;
  if (is_ring && npus == 64) reach.in_process = 1.0 / 50;
  if (is_ring && npus == 1024) reach.in_process = 1.0 / 500;
  if (npus == 64) reach.whole_process = 1.0 / 3;
  if (npus == 256) reach.whole_process = 1.0 / 10;
  if (is_ring && npus == 1024) reach.whole_process = 1.0 / 200;
  return reach;
}

absl::Status CheckFinish(const GoldenCost& cost, const SimulationResult& result) {
  if (result.makespan_ns() == cost.makespan_ns) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(cost.name, ": ends at ", result.makespan_ns(),
                                          " ns, but AstraSim's at ", cost.makespan_ns));
}

// Returns the least CPU seconds of one call, over several rounds of as many calls as can be timed.
absl::StatusOr<double> TimeInProcess(const GoldenCost& cost, int rounds) {
  constexpr double kMeasurableSeconds = 0.005;
  SimulationOptions options;
  options.congestion = cost.run.congestion;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double begin = CpuSeconds();
    int calls = 0;
    while (calls == 0 || CpuSeconds() - begin < kMeasurableSeconds) {
      ASSIGN_OR_RETURN(const SimulationResult result,
                       Simulate(cost.run.workload, cost.run.network, cost.run.system, options));
      RETURN_IF_ERROR(CheckFinish(cost, result));
      ++calls;
    }
    least = std::min(least, (CpuSeconds() - begin) / calls);
  }
  return least;
}

absl::StatusOr<double> TimeWholeProcess(const GoldenCost& cost, int rounds) {
  const TemporaryDirectory folder;
  RETURN_IF_ERROR(WriteAstraFiles(FileSystem::Posix(), folder.path(), cost.run.workload,
                                  cost.run.network, cost.run.system,
                                  /*node_times=*/false));
  const std::vector<std::string> arguments = {
      "--workload=" + folder.PathOf(kWorkloadPrefix), "--network=" + folder.PathOf(kNetworkFile),
      "--system=" + folder.PathOf(kSystemFile),
      cost.run.congestion == Congestion::kAware ? "--congestion=aware" : "--congestion=unaware"};
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double begin = ChildCpuSeconds();
    const CommandResult result = RunCommandLine("tools/astra_simulate", arguments);
    least = std::min(least, ChildCpuSeconds() - begin);
    if (result.exit_code != 0) return absl::InternalError(result.standard_error);
  }
  return least;
}

absl::StatusOr<double> TimeAstraSim(const GoldenCost& cost, const std::string& folder) {
  const TemporaryDirectory work;
  AstraSimulatorOptions options;
  ASSIGN_OR_RETURN(options.binary,
                   FindAstraBinary(FileSystem::Posix(), "", folder, cost.run.congestion));
  options.work_folder = work.path();
  const double begin = ChildCpuSeconds();
  ASSIGN_OR_RETURN(const SimulationResult simulation,
                   SimulateWithAstraSim(FileSystem::Posix(), cost.run.workload, cost.run.network,
                                        cost.run.system, options));
  const double seconds = ChildCpuSeconds() - begin;
  RETURN_IF_ERROR(CheckFinish(cost, simulation));
  return seconds;
}

std::string Milliseconds(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }

std::string Share(double seconds, double of_seconds) {
  return absl::StrFormat("1/%.0f", of_seconds / seconds);
}

absl::StatusOr<int> Measure() {
  TextTable table({"case", ">AstraSim ms", ">in process ms", ">ratio", ">reach", ">command ms",
                   ">ratio", ">reach", ""});
  const int rounds = std::max(1, FLAGS_rounds.value());
  const std::string folder = UserPath(FLAGS_astra_folder.value());
  bool all_reached = true;
  for (const GoldenCost& cost : GoldenCosts()) {
    if (!absl::StrContains(cost.name, FLAGS_only.value())) continue;
    double astra_s = cost.cpu_s;
    if (!folder.empty()) {
      ASSIGN_OR_RETURN(astra_s, TimeAstraSim(cost, folder));
    }
    ASSIGN_OR_RETURN(const double in_process_s, TimeInProcess(cost, rounds));
    ASSIGN_OR_RETURN(const double whole_process_s, TimeWholeProcess(cost, rounds));
    const Reach reach = ReachOf(cost);
    const bool reached = in_process_s <= reach.in_process.value_or(1) * astra_s &&
                         whole_process_s <= reach.whole_process.value_or(1) * astra_s;
    all_reached = all_reached && reached;
    const auto reach_text = [](std::optional<double> share) {
      return share.has_value() ? Share(*share, 1) : std::string("-");
    };
    table.AddRow({cost.name, Milliseconds(astra_s), Milliseconds(in_process_s),
                  Share(in_process_s, astra_s), reach_text(reach.in_process),
                  Milliseconds(whole_process_s), Share(whole_process_s, astra_s),
                  reach_text(reach.whole_process), reached ? "" : "MISSED"});
  }
  RETURN_IF_ERROR(Print(table.ToString()));
  return all_reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"engine_benchmark",
       "Measures the embedded network engine against AstraSim.",
       {"engine_benchmark",
        "engine_benchmark --astra_folder=/opt/astra-sim/bin --only=\"Ring 256\""},
       {&meridian::FLAGS_astra_folder, &meridian::FLAGS_only, &meridian::FLAGS_rounds},
       meridian::Measure},
      argc, argv);
}
