// critical_path as users run it: on traces of ours and of HTA, with wrong flags and broken files.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/graph/path_graph_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult FindPath(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/critical_path", arguments);
}

// Two steps: an operator launches a kernel and waits for it.
std::string Trace() {
  KinetoTrace trace;
  trace.Raw(
      R"({"ph": "M", "name": "process_name", "pid": 4242, "ts": 0, "args": {"name": "python"}})");
  for (int step = 0; step < 2; ++step) {
    const double at = 1000 * step;
    trace.Annotation(step == 0 ? "ProfilerStep#5" : "ProfilerStep#6", at, 120);
    trace.Op("aten::mm", at + 5, 100);
    trace.Call("cudaLaunchKernel", at + 10, 5, 10 * step + 1);
    trace.Call("cudaStreamSynchronize", at + 20, 55, 10 * step + 2);
    trace.Kernel("gemm", at + 30, 40, 7, 10 * step + 1);
    trace.Sync("Stream Sync", at + 20, 55, 7, 10 * step + 2);
  }
  return trace.Text();
}

TEST(CriticalPathCommandTest, ExplainsAStep) {
  const TemporaryDirectory directory;
  const CommandResult result = FindPath({"--trace=" + directory.Write("t.json", Trace()),
                                         "--annotation=ProfilerStep", "--instance=1"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("t.json, 'ProfilerStep' 1: 120.000 us\n"),
            HasSubstr("cpu_bound                   40.000  33.33\n"),
            HasSubstr("gpu_compute_bound           40.000  33.33\n"),
            HasSubstr("gpu_kernel_launch_overhead  20.000  16.67\n"),
            HasSubstr("host_gap                    20.000  16.67\n"),
            HasSubstr("40.000  33.33  gpu_compute_bound              3     6     11  gemm\n")));
}

TEST(CriticalPathCommandTest, JsonHasTheFieldsOthersRelyOn) {
  const TemporaryDirectory directory;
  const CommandResult result = FindPath({"--trace", directory.Write("t.json.gz", GzipText(Trace())),
                                         "--hta_compatible", "--instance=0", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(StartsWith("{"), HasSubstr("\"nodes\": "), HasSubstr("\"length_us\": "),
                    HasSubstr("\"critical_nodes\": "), HasSubstr("\"kernel_launch_delay\": 1,"),
                    HasSubstr("\"kernel_kernel_delay\": 0,"), HasSubstr("\"breakdown\": {"),
                    HasSubstr("\"wait_for_other_ranks\": 0"), HasSubstr("\"breakdown_percent\": {"),
                    HasSubstr("\"hta_compatible\": true")));
}

TEST(CriticalPathCommandTest, DrawsThePathIntoTheTrace) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("t.json", Trace());
  // A folder gets a file named after the trace.
  EXPECT_EQ(FindPath({"--trace=" + trace, "--overlay=" + directory.path()}).exit_code, 0);
  EXPECT_THAT(directory.List(), Contains("overlaid_critical_path_t.json"));
  const std::string overlay = directory.Read("overlaid_critical_path_t.json");
  EXPECT_THAT(overlay, AllOf(StartsWith("{\n"), HasSubstr("\"critical\": 1"),
                             HasSubstr("critical_path_sync_dependency")));
  // The name says whether it is compressed.
  EXPECT_EQ(FindPath({"--trace=" + trace, "--overlay=" + directory.PathOf("o.json.gz"),
                      "--noonly_critical", "--all_edges"})
                .exit_code,
            0);
  EXPECT_THAT(directory.Read("o.json.gz"), StartsWith("\x1f\x8b"));
  // It is a trace with the same path.
  const CommandResult again = FindPath({"--trace=" + directory.PathOf("o.json.gz")});
  EXPECT_EQ(again.exit_code, 0) << again.standard_error;
  EXPECT_THAT(again.standard_output, HasSubstr(": 1120.000 us\n"));
}

TEST(CriticalPathCommandTest, TheTraceIsNotOverwritten) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("t.json", Trace());
  for (const char* flag : {"--save=", "--overlay="}) {
    const CommandResult result = FindPath({"--trace=" + trace, flag + trace});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.standard_error, HasSubstr("would be overwritten"));
    EXPECT_EQ(directory.Read("t.json"), Trace());
  }
}

TEST(CriticalPathCommandTest, RestoresWhatItSaved) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("t.json", Trace());
  for (const char* name : {"graph.mcp", "graph.mcp.gz"}) {
    for (const char* mode : {"--nohta_compatible", "--hta_compatible"}) {
      SCOPED_TRACE(std::string(name) + mode);
      const std::string file = directory.PathOf(name);
      const CommandResult saved = FindPath(
          {"--trace=" + trace, mode, "--annotation=ProfilerStep", "--json", "--save=" + file});
      EXPECT_EQ(saved.exit_code, 0) << saved.standard_error;
      const CommandResult restored = FindPath({"--restore=" + file, "--json"});
      EXPECT_EQ(restored.exit_code, 0) << restored.standard_error;
      EXPECT_EQ(restored.standard_output, saved.standard_output);
    }
  }
  // The overlay of a restored graph needs its trace, and no other.
  EXPECT_EQ(FindPath({"--restore=" + directory.PathOf("graph.mcp"), "--trace=" + trace,
                      "--overlay=" + directory.PathOf("o.json")})
                .exit_code,
            0);
  EXPECT_EQ(FindPath({"--restore=" + directory.PathOf("graph.mcp"),
                      "--trace=" + directory.Write("other.json", R"({"traceEvents": []})"),
                      "--overlay=" + directory.PathOf("o2.json")})
                .exit_code,
            2);
  EXPECT_THAT(directory.List(), Not(Contains("o2.json")));
}

TEST(CriticalPathCommandTest, ARestoredGraphWithoutAPathIsNamedNotItsTrace) {
  const TemporaryDirectory directory;
  GraphSource source;
  source.trace = "long_gone.json";
  const std::string file = directory.Write("graph.mcp", SerializeGraph(source, PathGraph()));
  const CommandResult result = FindPath({"--restore=" + file});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error,
              AllOf(StartsWith("critical_path: " + file + ": "), Not(HasSubstr("long_gone.json"))));
}

TEST(CriticalPathCommandTest, WrongUsageExitsWithTwo) {
  const TemporaryDirectory directory;
  const std::string trace = "--trace=" + directory.Write("t.json", Trace());
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "--trace names no file"},
      {{"--trase=x"}, "did you mean --trace?"},
      {{trace, "--instance=x"}, "--instance: 'x' is no instance"},
      {{trace, "--instance=2..1"}, "e.g. 3 or 1..4"},
      {{trace, "--instance=1"}, "--instance counts the occurrences of --annotation"},
      {{"--restore=g.cpg", "--annotation=Step"}, "a saved graph is of the window"},
      {{trace, "--annotation=epoch"}, "there are: ProfilerStep#5, ProfilerStep#6"},
      {{trace, "--annotation=epoch", "--hta_compatible"}, "there are: ProfilerStep#5"},
      {{trace, "--annotation=Step", "--instance=2"}, "occurs 2 time(s)"},
      {{"--trace=missing.json"}, "missing.json: No such file"},
      {{trace, "--overlay=/dev/null"}, "is not a regular file"},
      {{trace, "--traces=x"}, "give one of them"},
      {{trace, "--rank=0"}, "--rank chooses from --traces or --et"},
      {{"--traces=examples/jax_cuda2", "--rank=x"}, "--rank=x is no rank"},
      {{"--traces=examples/jax_cuda2", "--rank=2"}, "the traces have work of rank 0, 1"},
      {{"--traces=examples/jax_cuda2", "--hta_compatible"}, "goes with --trace"},
      {{"--traces=examples/jax_cuda2", "--annotation=epoch"}, "there are: train#0, train#1"},
      {{"--traces=examples/jax_cuda2", "--annotation=train", "--instance=8"}, "occurs 8 time(s)"},
      {{"--traces=examples/jax_tp_cuda4_skewed"}, "run combine first"},
      {{"--traces=examples/jax_tp_cuda4/rank0.xplane.pb.gz,"
        "examples/jax_tp_cuda4/rank1.xplane.pb.gz"},
       "no trace has the work of rank 2, 3 of 4"},
      {{"--traces=examples/jax_cuda2/rank0.xplane.pb,examples/jax_tp_cuda4/rank1.xplane.pb.gz"},
       "are they all of one run"},
      {{"--traces=missing.xplane.pb"}, "missing.xplane.pb"},
      {{"--et=" + directory.PathOf("missing")}, "missing"},
      {{"--restore=" + directory.PathOf("t.json")}, "this is no saved graph"},
  };
  for (const auto& [arguments, reason] : wrong) {
    const CommandResult result = FindPath(arguments);
    EXPECT_EQ(result.exit_code, 2) << reason;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith("critical_path: "), HasSubstr(reason)));
  }
}

constexpr char kTwoRanks[] = "--traces=examples/jax_cuda2";

TEST(CriticalPathCommandTest, BlamesTheRankThatSlept) {
  const CommandResult result = FindPath({kTwoRanks});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("rank0.xplane.pb and 1 more, the whole trace: 311414.365 us\n"),
            HasSubstr("the window lasts 311414.365 us\n"), HasSubstr("who kept others waiting\n"),
            HasSubstr("   3     1   8891.759  host_gap ")));
  const CommandResult json = FindPath({kTwoRanks, "--json"});
  EXPECT_THAT(
      json.standard_output,
      AllOf(HasSubstr("\"blame\": ["), HasSubstr("\"step\": 3,"), HasSubstr("\"op\": \"host_gap\""),
            HasSubstr("\"us\": 8891.75"), HasSubstr("\"blame_by_rank\": [")));
}

TEST(CriticalPathCommandTest, ChoosesStepsAndARank) {
  const CommandResult step = FindPath({kTwoRanks, "--annotation=train", "--instance=6"});
  EXPECT_EQ(step.exit_code, 0) << step.standard_error;
  EXPECT_THAT(step.standard_output, AllOf(HasSubstr("'train' 6: "), HasSubstr("   6     1   3")));
  const CommandResult rank = FindPath({kTwoRanks, "--rank=0"});
  EXPECT_EQ(rank.exit_code, 0) << rank.standard_error;
  EXPECT_THAT(rank.standard_output,
              AllOf(HasSubstr("wait_for_other_ranks "), Not(HasSubstr("who kept others waiting"))));
  // One rank's profile alone cannot tell who waits.
  const CommandResult alone = FindPath({"--traces=examples/jax_cuda2/rank1.xplane.pb"});
  EXPECT_EQ(alone.exit_code, 0) << alone.standard_error;
  EXPECT_THAT(alone.standard_output, HasSubstr("no trace has the work of rank 0 of 2"));
}

TEST(CriticalPathCommandTest, ACombinedProfileHasThePathOfItsParts) {
  const TemporaryDirectory directory;
  const std::string combined = directory.PathOf("combined.xplane.pb");
  ASSERT_EQ(RunCommandLine("tools/combine", {kTwoRanks, "--output=" + combined}).exit_code, 0);
  const auto blame = [](const std::string& traces) {
    const std::string json = FindPath({traces, "--json"}).standard_output;
    const size_t start = json.find("\"blame\": [");
    return start == std::string::npos ? "" : json.substr(start, json.find("\n ]", start) - start);
  };
  EXPECT_THAT(blame(kTwoRanks), HasSubstr("\"op\": \"host_gap\""));
  EXPECT_EQ(blame("--traces=" + combined), blame(kTwoRanks));
}

TEST(CriticalPathCommandTest, RestoresAndDrawsWhatSeveralRanksDid) {
  const TemporaryDirectory directory;
  const std::string graph = directory.PathOf("job.mcp.gz");
  const CommandResult saved = FindPath(
      {kTwoRanks, "--json", "--save=" + graph, "--overlay=" + directory.PathOf("saved.json")});
  EXPECT_EQ(saved.exit_code, 0) << saved.standard_error;
  const CommandResult restored =
      FindPath({"--restore=" + graph, "--json", "--overlay=" + directory.PathOf("restored.json")});
  EXPECT_EQ(restored.exit_code, 0) << restored.standard_error;
  EXPECT_EQ(restored.standard_output, saved.standard_output);
  const std::string overlay = directory.Read("saved.json");
  EXPECT_EQ(directory.Read("restored.json"), overlay);
  EXPECT_THAT(overlay, AllOf(HasSubstr("\"rank 1\""), HasSubstr("\"critical\":1"),
                             HasSubstr("critical_path_sync_dependency")));
  EXPECT_EQ(FindPath({kTwoRanks, "--overlay=" + directory.path()}).exit_code, 0);
  EXPECT_THAT(directory.List(), Contains("overlaid_critical_path_job.json.gz"));
}

TEST(CriticalPathCommandTest, ReadsChakraTraces) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.PathOf("w");
  ASSERT_EQ(RunCommandLine("tools/chakra_export", {kTwoRanks, "--output=" + prefix}).exit_code, 0);
  const CommandResult result = FindPath({"--et=" + prefix, "--annotation=step#3"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("'step#3' 0: "), HasSubstr("who kept others waiting\n")));
  for (const char* input : {".1.et", ".comm_groups.json"}) {
    const CommandResult refused = FindPath({"--et=" + prefix, "--save=" + prefix + input});
    EXPECT_EQ(refused.exit_code, 2) << input;
    EXPECT_THAT(refused.standard_error, HasSubstr("would be overwritten"));
  }
}

TEST(CriticalPathCommandTest, ClocksThatDisagreeCanBeInsistedOn) {
  const CommandResult result =
      FindPath({"--traces=examples/jax_tp_cuda4_skewed", "--allow_violations"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("the clocks disagree"));
}

TEST(CriticalPathCommandTest, ProfilesAreNotOverwritten) {
  const TemporaryDirectory directory;
  const std::string combined = directory.PathOf("combined.xplane.pb");
  ASSERT_EQ(RunCommandLine("tools/combine", {kTwoRanks, "--output=" + combined}).exit_code, 0);
  const std::string before = directory.Read("combined.xplane.pb");
  for (const char* flag : {"--save=", "--overlay="}) {
    const CommandResult result = FindPath({"--traces=" + combined, flag + combined});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.standard_error, HasSubstr("would be overwritten"));
  }
  EXPECT_EQ(directory.Read("combined.xplane.pb"), before);
}

TEST(CriticalPathCommandTest, JoinsKinetoTracesOfRealTraining) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const CommandResult result =
      FindPath({"--traces=" + *shared + "/traces/torch_nccl4/kineto_*.json.gz",
                "--annotation=ProfilerStep", "--instance=0"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("kineto_0.json.gz and 3 more"),
                                            HasSubstr("who kept others waiting\n")));
}

TEST(CriticalPathCommandTest, ExecutionTracesTellWhatCouldBeReordered) {
  const std::string folder = "examples/torch_pipeline4/";
  const std::string traces = "--traces=" + folder + "kineto_*.json.gz";
  const CommandResult plain = FindPath({traces});
  CommandResult result = FindPath({traces, "--host_traces=" + folder + "et_*.json.gz"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // All else stays as it is.
  EXPECT_THAT(result.standard_output,
              StartsWith(plain.standard_output + "\nif device work waited for its data alone"));
  result = FindPath({"--trace=" + folder + "kineto_1.json.gz", "--json",
                     "--host_traces=" + folder + "et_1.json.gz"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"reorder\": {"), HasSubstr("\"at_least_us\": ")));
}

TEST(CriticalPathCommandTest, ExecutionTracesThatDoNotFitAreRefused) {
  const std::string folder = "examples/torch_pipeline4/";
  const TemporaryDirectory directory;
  const std::string one = "--host_traces=" + folder + "et_1.json.gz";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--traces=" + folder + "kineto_*.json.gz", one},
       "names 1 execution traces for 4 profiles; expected one for each"},
      {{"--trace=" + directory.Write("t.json", Trace()), one},
       "et_1.json.gz: no operator of it is in the profile"},
      {{"--trace=" + folder + "kineto_1.json.gz", "--hta_compatible", one},
       "--host_traces: the tensors of no device work are known"},
      {{"--trace=" + folder + "kineto_1.json.gz", "--host_traces=" + folder + "kineto_1.json.gz"},
       "kineto_1.json.gz"},
      // Ranks number their calls alike.
      {{"--trace=" + folder + "kineto_2.json.gz", one},
       "et_1.json.gz: it is of process 1248, of which the profile shows nothing"},
  };
  for (const auto& [arguments, reason] : cases) {
    const CommandResult result = FindPath(arguments);
    EXPECT_EQ(result.exit_code, 2) << reason;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, HasSubstr(reason));
  }
}

TEST(CriticalPathCommandTest, BrokenTracesExitWithTwoAndAReason) {
  const TemporaryDirectory directory;
  const std::string whole = Trace();
  KinetoTrace host_only;
  host_only.Op("op", 0, 10);
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"", "is empty; expected a Kineto trace"},
      {"no JSON at all", "is no trace that is known; expected a Kineto trace"},
      {whole.substr(0, whole.size() / 2), "offset "},
      {R"({"schemaVersion": 1})", "traceEvents"},
      {GzipText(whole).substr(0, 200), "truncated gzip data"},
      {R"({"traceEvents": []})", "no "},
      {host_only.Text(), "no kernel"},
  };
  for (const auto& [text, reason] : broken) {
    for (const char* mode : {"--nohta_compatible", "--hta_compatible"}) {
      SCOPED_TRACE(reason + mode);
      const std::string path = directory.Write("broken.json", text);
      const CommandResult result = FindPath({"--trace=" + path, mode});
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.standard_output, "");
      EXPECT_THAT(result.standard_error,
                  AllOf(StartsWith("critical_path: " + path), HasSubstr(reason)));
    }
  }
}

TEST(CriticalPathCommandTest, NoOverlayIsWrittenFromWhatIsNotJson) {
  const TemporaryDirectory directory, out;
  const std::string sound = directory.Write("t.json", Trace());
  const std::string graph = directory.PathOf("graph.mcp");
  ASSERT_EQ(FindPath({"--trace=" + sound, "--save=" + graph}).exit_code, 0);
  const std::string name = "\"python\"";
  for (const std::string value : {"tru", "python", "01", "\"py\\qthon\"", ""}) {
    std::string text = Trace();
    text.replace(text.find(name), name.size(), value);
    const std::string damaged = "--trace=" + directory.Write("damaged.json", text);
    const std::vector<std::vector<std::string>> modes = {
        {damaged}, {damaged, "--hta_compatible"}, {damaged, "--restore=" + graph}};
    for (std::vector<std::string> arguments : modes) {
      SCOPED_TRACE(value + arguments.back());
      arguments.push_back("--overlay=" + out.PathOf("o.json"));
      const CommandResult result = FindPath(arguments);
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.standard_output, "");
      EXPECT_THAT(result.standard_error,
                  StartsWith("critical_path: " + directory.PathOf("damaged.json") + ": offset "));
      EXPECT_THAT(out.List(), IsEmpty());
    }
  }
}

// The case that HTA's documentation works through.
TEST(CriticalPathCommandTest, HasTheNumbersOfHta) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const std::string trace = *shared +
                            "/samples/kineto/critical_path/alexnet/"
                            "benchmark_result_2869224_1695835535_trace.json.gz";
  const CommandResult result = FindPath(
      {"--trace=" + trace, "--hta_compatible",
       "--annotation=[param|pytorch.model.alex_net|0|0|0|measure|forward]", "--instance=1"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr(": 35834.000 us\n149 of 418 nodes and 421 edges"),
                    HasSubstr("cpu_bound                   32042.000  89.42\n"),
                    HasSubstr("gpu_compute_bound            3712.000  10.36\n")));
}

}  // namespace
}  // namespace meridian
