// Prints what it costs to export made-up runs of four ranks that grow from one to sixteen times:
//
//   ./bazelw run //chakra_export/xspace/testing:xspace_export_benchmark -- /tmp 5000
//
// for 5,000 to 80,000 steps of two kernels on each rank, with the files in /tmp.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::Status Measure(const std::string& folder, int steps) {
  FileSystem& files = FileSystem::Posix();
  SyntheticRunOptions run;
  run.ranks = 4;
  run.steps = steps;
  std::vector<std::string> traces;
  for (const XSpaceProto& profile : SyntheticRun(run)) {
    traces.push_back(absl::StrCat(folder, "/export_benchmark_", traces.size(), ".xplane.pb"));
    RETURN_IF_ERROR(WriteOutput(files, traces.back(), profile.SerializeAsString()));
  }
  const double before = CpuSeconds();
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   ExportXSpaces(files, traces, absl::StrCat(folder, "/export_benchmark")));
  const double seconds = CpuSeconds() - before;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  absl::PrintF("%8d nodes %7.3f CPU s %6.2f us each, %5d MB at most\n", report.nodes(), seconds,
               1e6 * seconds / static_cast<double>(report.nodes()), usage.ru_maxrss / 1024);
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  int steps = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &steps) || steps < 1) {
    absl::FPrintF(stderr, "usage: %s FOLDER STEPS\n", argv[0]);
    return 2;
  }
  for (const int factor : {1, 2, 4, 8, 16}) {
    const absl::Status status = Measure(argv[1], factor * steps);
    if (status.ok()) continue;
    absl::FPrintF(stderr, "%s\n", std::string(status.message()));
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) { return meridian::Run(argc, argv); }
