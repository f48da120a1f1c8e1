// Makes up the collectives of a run of many nodes and prints how long combine takes to match them and
// to find the clocks.
//
//   ./bazelw run //trace_alignment/combine:scale_benchmark -- 4096 1000
//
// for 4,096 nodes of one device and 1,000 all-reduces of everybody.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1.024e-3 * static_cast<double>(usage.ru_maxrss);
}

absl::Status Run(const SimulatedRunOptions& options) {
  std::mt19937_64 random(1);
  const std::vector<TrueClock> clocks = RandomClocks(options.nodes, &random);
  RunBuilder builder = SimulateRun(options, clocks, &random);
  // Every profile names all devices of the run.
  std::vector<int64_t> devices(options.nodes);
  std::iota(devices.begin(), devices.end(), 0);
  for (ProfileCollectives& profile : builder.profiles()) {
    profile.ops.resize(1);
    profile.assigned_devices = devices;
    LookUpGroups(&profile);
  }
  std::vector<ProfileCollectives> profiles = std::move(builder.profiles());
  const double start = CpuSeconds();
  ASSIGN_OR_RETURN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const double matched = CpuSeconds();
  AlignmentInputs inputs;
  for (uint32_t n = 0; n < options.nodes; ++n) {
    ASSIGN_OR_RETURN(const SessionClock clock, SessionClock::Create("node", {}, 0));
    inputs.nodes.push_back({n, clock, std::nullopt, std::nullopt});
  }
  AlignmentOptions alignment_options;
  alignment_options.method = AlignmentMethod::kCollectives;
  const double before = CpuSeconds();
  ASSIGN_OR_RETURN(const RunAlignment alignment, AlignRun(inputs, run, alignment_options));
  const double solved = CpuSeconds();
  absl::PrintF(
      "%d nodes, %d collectives: CPU s: match %.2f, solve %.2f; peak %.0f MB; %d violations left\n",
      options.nodes, options.executions, matched - start, solved - before, PeakMegabytes(),
      alignment.after.violations.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  meridian::SimulatedRunOptions options;
  options.all_reduce_only = true;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &options.nodes) ||
      !absl::SimpleAtoi(argv[2], &options.executions)) {
    std::fprintf(stderr, "usage: scale_benchmark nodes collectives\n");
    return 2;
  }
  const absl::Status status = meridian::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 3;
}
