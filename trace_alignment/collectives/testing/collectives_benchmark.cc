// Makes up a run and prints what it costs to match its collectives, to check them and to align the
// nodes by them:
//
//   ./bazelw run //trace_alignment/collectives/testing:collectives_benchmark -- 1024 4000
//
// for 1,024 nodes of one device and 4,000 collectives, all of them all-reduces of everybody; with a
// third argument "mixed", of all kinds.
#include <ctime>

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::Status Run(const SimulatedRunOptions& options) {
  std::mt19937_64 random(1);
  const std::vector<TrueClock> clocks = RandomClocks(options.nodes, &random);
  const ResolvedRun run = SimulateRun(options, clocks, &random).Resolve();

  const double start = CpuSeconds();
  ASSIGN_OR_RETURN(const CollectiveTable table,
                   BuildCollectiveTable(run.profiles, run.ranks, run.runs));
  const double built = CpuSeconds();
  const HappensBefore before = CheckHappensBefore(table);
  const double checked = CpuSeconds();
  ASSIGN_OR_RETURN(const ClockAlignment alignment, AlignByCollectives(table, {}));
  const double solved = CpuSeconds();
  const HappensBefore after = CheckAligned(table, alignment);
  const double checked_again = CpuSeconds();

  absl::PrintF("%d members of %d instances; violations %d, then %d\n", table.members().size(),
               table.instances().size(), before.violations.size(), after.violations.size());
  absl::PrintF("build %.3f, check %.3f, solve %.3f, check again %.3f CPU s\n", built - start,
               checked - built, solved - checked, checked_again - solved);
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  meridian::SimulatedRunOptions options;
  options.nodes = 1024;
  options.executions = 4000;
  options.all_reduce_only = argc <= 3;
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &options.nodes)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &options.executions)) ||
      (argc > 3 && argv[3] != std::string("mixed"))) {
    std::fprintf(stderr, "usage: collectives_benchmark [nodes] [collectives] [mixed]\n");
    return 2;
  }
  const absl::Status status = meridian::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 3;
}
