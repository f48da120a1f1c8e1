// Combining a run of 16 nodes, against parsing and serializing its profiles with libprotobuf; and
// aligning a large Kineto trace, against inflating it.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmarks/ratio_benchmark.h"
#include "google/protobuf/arena.h"
#include "third_party/xplane/xplane.pb.h"
#include "tools/command.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

Flag<int64_t> FLAGS_nodes("nodes", 16, "Nodes of the run.");
Flag<int64_t> FLAGS_steps("steps", 400, "Steps of the run; each has one collective of each kind.");
Flag<int64_t> FLAGS_compute_kernels(
    "compute_kernels", 4,
    "Kernels before each collective. In examples/jax_tp_cuda4 one kernel of five "
    "communicates.");
Flag<std::string> FLAGS_kineto("kineto", "examples/torch_pipeline4/kineto_0.json.gz",
                               "A Kineto trace whose events make up the large one.");
Flag<int64_t> FLAGS_kineto_megabytes("kineto_megabytes", 400, "How large that is.");
Flag<int> FLAGS_rounds("rounds", 3, "How often both sides take turns.");

SyntheticCluster MakeCluster() {
  ClusterOptions options;
  options.nodes = FLAGS_nodes.value();
  options.steps = FLAGS_steps.value();
  options.collectives = OneOfEach(2);
  options.compute_kernels = FLAGS_compute_kernels.value();
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

// A Kineto trace of a bundled rank, its events as often as it takes.
std::string LargeKinetoTrace(absl::string_view rank, size_t bytes) {
  constexpr absl::string_view kEvents = "\"traceEvents\": [";
  const size_t begin = rank.find(kEvents) + kEvents.size();
  const size_t end = rank.rfind(']');
  std::string large(rank.substr(0, begin));
  const absl::string_view events = rank.substr(begin, end - begin);
  for (bool is_first = true; large.size() < bytes; is_first = false) {
    absl::StrAppend(&large, is_first ? "" : ",", events);
  }
  absl::StrAppend(&large, rank.substr(end));
  return large;
}

// The trace is read, aligned and written; the floor inflates it with zlib, which takes a third of the
// time that `gzip -d` takes: twice the time of that is six times the floor.
absl::StatusOr<bool> RunKineto(const TemporaryDirectory& directory) {
  FileSystem& files = FileSystem::Posix();
  ASSIGN_OR_RETURN(const InputFile rank, InputFile::Open(files, FLAGS_kineto.value()));
  const std::string text = LargeKinetoTrace(
      rank.bytes(), static_cast<size_t>(FLAGS_kineto_megabytes.value()) * 1'000'000);
  CombineRequest request;
  request.files.traces = {directory.Write("kineto_0.json", text)};
  request.alignment.method = AlignmentMethod::kNone;
  request.output_dir = directory.PathOf("aligned");
  const std::string compressed = directory.Write("kineto_0.json.gz", GzipText(text));
  InputFileOptions inflate;
  inflate.max_inflated_bytes = uint64_t{1} << 40;
  RatioCase align;
  align.name = "align a Kineto trace";
  align.floor_name = "inflate it";
  align.reach = 6;
  align.bytes = text.size();
  align.run = [&] { MERIDIAN_CHECK(CombineRun(files, request).ok()); };
  align.floor = [&] { MERIDIAN_CHECK(InputFile::Open(files, compressed, inflate).ok()); };
  return RunRatioCases({align}, FLAGS_rounds.value());
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
  const bool is_fast = RunRatioCases({combine, on_arena, validate}, FLAGS_rounds.value());
  ASSIGN_OR_RETURN(const bool is_kineto_fast, RunKineto(directory));
  return is_fast && is_kineto_fast ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"combine_benchmark",
       "Measures combine against libprotobuf, and for Kineto traces against gzip.",
       {"combine_benchmark --nodes=16"},
       {&meridian::FLAGS_nodes, &meridian::FLAGS_steps, &meridian::FLAGS_compute_kernels,
        &meridian::FLAGS_kineto, &meridian::FLAGS_kineto_megabytes, &meridian::FLAGS_rounds},
       meridian::Run},
      argc, argv);
}
