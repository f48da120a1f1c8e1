// Prints what it costs to make up training steps of 96 layers and 64 microbatches on 8 to 1,024
// ranks:
//
//   ./bazelw run //benchmarks:chakra_generate_benchmark
//
// The traces, up to 900 MB at a time, are in the folder for temporary files.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/ratio_benchmark.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/run/workload_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

struct Shape {
  int64_t tensor_parallel;
  int64_t data_parallel;
  int64_t pipeline_parallel;
};

// Ordered so that the most memory grows, if at all, with the ranks.
constexpr Shape kShapes[] = {{8, 1, 1}, {8, 2, 4}, {8, 8, 1}, {8, 8, 4}, {8, 16, 8}};

absl::Status Measure(const Shape& shape, TextTable* table) {
  TransformerOptions options;
  options.tensor_parallel = shape.tensor_parallel;
  options.data_parallel = shape.data_parallel;
  options.pipeline_parallel = shape.pipeline_parallel;
  options.layers = 96;
  options.hidden = 12288;
  options.microbatches = 64;
  options.batch = 64 * shape.data_parallel;
  const TemporaryDirectory directory;
  const double before = CpuSeconds();
  ASSIGN_OR_RETURN(const std::unique_ptr<GeneratedWorkload> workload, MakeTransformerStep(options));
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   WriteGeneratedWorkload(FileSystem::Posix(), *workload, directory.PathOf("w")));
  const double seconds = CpuSeconds() - before;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  table->AddRow({absl::StrCat(shape.tensor_parallel, " x ", shape.data_parallel, " x ",
                              shape.pipeline_parallel),
                 WithThousands(workload->rank_count()), WithThousands(report.nodes()),
                 absl::StrFormat("%.2f", seconds),
                 WithThousands(static_cast<int64_t>(static_cast<double>(report.nodes()) / seconds)),
                 WithThousands(usage.ru_maxrss / 1024)});
  return absl::OkStatus();
}

absl::Status MeasureAll() {
  TextTable table({"tp x dp x pp", ">ranks", ">nodes", ">CPU s", ">nodes/s", ">MB at most"});
  for (const Shape& shape : kShapes) RETURN_IF_ERROR(Measure(shape, &table));
  std::fputs(table.ToString().c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main() {
  const absl::Status status = meridian::MeasureAll();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return meridian::ExitCode(status);
}
