// Combining a run of 16 nodes, against parsing and serializing its profiles with libprotobuf.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "google/protobuf/arena.h"
#include "third_party/xplane/xplane.pb.h"
#include "tools/benchmarks/ratio_benchmark.h"
#include "tools/command.h"
#include "tools/pipeline/combine_run.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/temporary_directory.h"

ABSL_FLAG(int64_t, nodes, 16, "Nodes of the run.");
ABSL_FLAG(int64_t, steps, 400, "Steps of the run; each has one collective of each kind.");
ABSL_FLAG(int64_t, compute_kernels, 4,
          "Kernels before each collective. In examples/jax_tp_cuda4 one kernel of five "
          "communicates.");
ABSL_FLAG(int, rounds, 3, "How often both sides take turns.");

namespace meridian {
namespace {

SyntheticCluster MakeCluster() {
  ClusterOptions options;
  options.nodes = absl::GetFlag(FLAGS_nodes);
  options.steps = absl::GetFlag(FLAGS_steps);
  options.collectives = OneOfEach(2);
  options.compute_kernels = absl::GetFlag(FLAGS_compute_kernels);
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  return SyntheticCluster(options);
}

// On an arena is the least that a tool can do: one allocation for all messages of a profile.
void ParseAndSerialize(const std::vector<InputFile>& files, bool on_arena) {
  for (const InputFile& file : files) {
    google::protobuf::Arena arena;
    tensorflow::profiler::XSpace on_heap;
    tensorflow::profiler::XSpace* space = on_arena ? on_heap.New(&arena) : &on_heap;
    MERIDIAN_CHECK(
        space->ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size())));
    std::string bytes;
    MERIDIAN_CHECK(space->SerializeToString(&bytes));
  }
}

absl::StatusOr<int> Run() {
  FileSystem& files = FileSystem::Posix();
  const TemporaryDirectory directory;
  RETURN_IF_ERROR(WriteCluster(files, MakeCluster(), {}, directory.PathOf("run")));
  CombineRequest request;
  ASSIGN_OR_RETURN(request.files, FindRunFiles(files, directory.PathOf("run")));
  request.output = directory.PathOf("combined.xplane.pb");
  std::vector<InputFile> inputs;
  uint64_t bytes = 0;
  for (const std::string& trace : request.files.traces) {
    ASSIGN_OR_RETURN(InputFile input, InputFile::Open(files, trace));
    bytes += input.bytes().size();
    inputs.push_back(std::move(input));
  }
  RatioCase combine;
  combine.name = "combine, clocks from collectives";
  combine.floor_name = "parse + serialize";
  combine.reach = 0.6;
  combine.bytes = bytes;
  combine.run = [&] { MERIDIAN_CHECK(CombineRun(files, request).ok()); };
  combine.floor = [&] { ParseAndSerialize(inputs, /*on_arena=*/false); };
  RatioCase on_arena = combine;
  on_arena.floor_name = "the same on an arena";
  on_arena.reach.reset();
  on_arena.floor = [&] { ParseAndSerialize(inputs, /*on_arena=*/true); };
  RatioCase validate = combine;
  validate.name = "the same, and reading the result back";
  validate.reach.reset();
  CombineRequest checked = request;
  checked.validate = true;
  validate.run = [&] { MERIDIAN_CHECK(CombineRun(files, checked).ok()); };
  std::printf("%lld nodes, %.1f MB\n", static_cast<long long>(inputs.size()),
              static_cast<double>(bytes) / 1e6);
  return RunRatioCases({combine, on_arena, validate}, absl::GetFlag(FLAGS_rounds))
             ? kExitDone
             : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"combine_benchmark",
                               "Measures combine against libprotobuf.",
                               {"combine_benchmark --nodes=16"},
                               {"nodes", "steps", "compute_kernels", "rounds"}},
                              argc, argv, meridian::Run);
}
