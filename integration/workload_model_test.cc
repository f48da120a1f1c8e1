// workload_model as users run it.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/report/path_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "workload_model/testing/made_up_search.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandResult WorkloadModelCommand(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/workload_model", arguments);
}

// 20 us, and a ten-thousandth of what a node has to do, 30 times.
std::string TraceModel(double nodes, double size) {
  std::string text = "0 1 1 TRACE 1672854814708423.0\n1 2 1 TRACE";
  for (int i = 0; i < 30; ++i) absl::StrAppend(&text, " ", 20 + 1e-4 * std::exp2(size) / nodes);
  return text + "\n";
}

TEST(WorkloadModelTest, FitsAndPredicts) {
  const TemporaryDirectory directory;
  for (int nodes : {4, 8, 16, 32}) {
    for (int size = 16; size <= 20; ++size) {
      directory.Write(absl::StrCat("runs/a_", nodes, "-", nodes, "-1-", size, "-0.txt"),
                      TraceModel(nodes, size));
    }
  }
  const std::string model = directory.PathOf("out/M.json");
  const CommandResult fitted =
      WorkloadModelCommand({"fit", "--traces=" + directory.PathOf("runs"), "--output=" + model});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.standard_error;
  EXPECT_THAT(fitted.standard_output,
              AllOf(HasSubstr("1 transitions in 20 cells"), HasSubstr("NORMAL 1 u")));
  const CommandResult evaluated =
      WorkloadModelCommand({"evaluate", "--model=" + model, "--nodes=64", "--size=22", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.standard_error;
  WorkloadEvaluation evaluation;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(evaluated.standard_output, &evaluation).ok());
  const double truth = 30 * (20 + 1e-4 * std::exp2(22) / 64);
  EXPECT_NEAR(evaluation.total_us() / truth, 1, 0.01);
  EXPECT_LE(evaluation.low_us(), truth);
  EXPECT_GE(evaluation.high_us(), truth);
  EXPECT_TRUE(evaluation.extrapolated());
  // The same as a file of the motif.
  const std::string motif = directory.PathOf("out/exec.model");
  const CommandResult exponential = WorkloadModelCommand(
      {"fit", "--traces=" + directory.PathOf("runs"), "--output=" + motif, "--models=EXPONENTIAL"});
  ASSERT_EQ(exponential.exit_code, 0) << exponential.standard_error;
  EXPECT_THAT(directory.Read("out/exec.model"), HasSubstr("1 2 1 EXPONENTIAL "));
  EXPECT_EQ(
      WorkloadModelCommand({"evaluate", "--model=" + motif, "--nodes=4", "--size=16"}).exit_code,
      0);
  const CommandResult normal =
      WorkloadModelCommand({"fit", "--traces=" + directory.PathOf("runs"), "--output=" + motif});
  EXPECT_EQ(normal.exit_code, 2);
  EXPECT_THAT(normal.standard_error, HasSubstr("the published Ember motif reads no rows of type"));
  directory.Write("more/a_64-64-1-22-0.txt", TraceModel(64, 22));
  const CommandResult compared =
      WorkloadModelCommand({"report", "--model=" + model, "--traces=" + directory.PathOf("more")});
  ASSERT_EQ(compared.exit_code, 0) << compared.standard_error;
  EXPECT_THAT(compared.standard_output, HasSubstr("1 of 1 lie in their intervals"));
}

TEST(WorkloadModelTest, ModelsOfTheMotifAreEvaluated) {
  const TemporaryDirectory directory;
  const std::string model =
      directory.Write("exec.model", "1 2 1 EXPONENTIAL 0 0 0 0\n2 3 1 CONSTANT 5\n");
  const CommandResult result = WorkloadModelCommand(
      {"evaluate", "--model=" + model, "--nodes=4", "--size=16", "--ember_compatible"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("1.000"), HasSubstr("5.000")));
  for (const auto& [nodes, text] :
       {std::pair<const char*, const char*>{"1", "1 node, size 2,000,000: "},
        {"1e6", "1,000,000 nodes, size 2,000,000: "}}) {
    const CommandResult plain = WorkloadModelCommand(
        {"evaluate", "--model=" + model, std::string("--nodes=") + nodes, "--size=2e6"});
    EXPECT_THAT(plain.standard_output, StartsWith(text)) << plain.standard_error;
  }
  directory.Write("exec.model", "1 2 1 CONSTANT 1e308\n2 3 1 CONSTANT 1e308\n");
  const CommandResult infinite =
      WorkloadModelCommand({"evaluate", "--model=" + model, "--nodes=4", "--size=16"});
  EXPECT_EQ(infinite.exit_code, 2);
  EXPECT_THAT(infinite.standard_error, HasSubstr("the sum of all transitions is no finite number"));
}

// Of jobs, each file that is read: traces of ranks, their groups, profiles, the model.
TEST(WorkloadModelTest, MeasuredJobsAreNotOverwritten) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.PathOf("w");
  ASSERT_EQ(RunCommandLine("tools/chakra_export",
                           {"--traces=examples/jax_tp_cuda4", "--output=" + prefix})
                .exit_code,
            0);
  const std::string model = directory.PathOf("M.json");
  ASSERT_EQ(
      WorkloadModelCommand({"fit", "--et=" + prefix, "--size=1", "--output=" + model}).exit_code,
      0);
  const auto expect_refusal = [](const std::vector<std::string>& arguments) {
    const CommandResult result = WorkloadModelCommand(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments.back();
    EXPECT_THAT(result.standard_error, HasSubstr("is an input and would be overwritten"));
  };
  expect_refusal({"fit", "--et=" + prefix, "--size=1", "--output=" + prefix + ".1.et"});
  expect_refusal({"fit", "--et=" + prefix, "--size=1", "--output=" + prefix + ".comm_groups.json"});
  expect_refusal({"fit", "--traces=examples/jax_tp_cuda4", "--size=1",
                  "--output=examples/jax_tp_cuda4/rank0.xplane.pb.gz"});
  // A rank that is missing is not a smaller job.
  ASSERT_OK(FileSystem::Posix().Delete(prefix + ".2.et"));
  const CommandResult missing =
      WorkloadModelCommand({"fit", "--et=" + prefix, "--size=1", "--output=" + model});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.standard_error, HasSubstr("no file for rank 2"));
}

// All ranks of the example work together: they are one axis.
TEST(WorkloadModelTest, AMeasuredJobIsScaled) {
  const TemporaryDirectory directory;
  const std::string output = directory.PathOf("et/large");
  const CommandResult result = WorkloadModelCommand(
      {"scale", "--traces=examples/jax_cpu4", "--ranks=8", "--output=" + output});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("4 ranks -> 8 ranks"), HasSubstr("assumed: ")));
  const CommandResult checked =
      RunCommandLine("tools/chakra_inspect", {"--et=" + output, "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
  EXPECT_THAT(checked.standard_output, HasSubstr("no problems"));
  const CommandResult on_a_roofline = RunCommandLine(
      "tools/astra_simulate",
      {"--workload=" + output,
       "--network=" + directory.Write("n.yml",
                                      "topology: [ Switch ]\nnpus_count: [ 8 ]\n"
                                      "bandwidth: [ 10 ]\nlatency: [ 500 ]\n"),
       "--system=" + directory.Write("s.json",
                                     R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
                             "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
                             "collective-optimization": "localBWAware", "local-mem-bw": 1600,
                             "peak-perf": 100, "roofline-enabled": 1,
                             "all-reduce-implementation": ["ring"],
                             "all-gather-implementation": ["ring"],
                             "reduce-scatter-implementation": ["ring"],
                             "all-to-all-implementation": ["ring"]})")});
  EXPECT_EQ(on_a_roofline.exit_code, 0) << on_a_roofline.standard_error;
  const CommandResult again = WorkloadModelCommand(
      {"scale", "--et=" + output, "--layout=16", "--output=" + directory.PathOf("et/larger")});
  EXPECT_EQ(again.exit_code, 0) << again.standard_error;
  // Neither --ranks nor --layout.
  EXPECT_EQ(WorkloadModelCommand({"scale", "--et=" + output, "--output=x"}).exit_code, 2);
}

// The report of mpiP that comes with traces of the made-up search: calls take 5 us.
std::string SearchReport() {
  std::string text =
      "@--- Callsites: 9 ---\n ID TmpID HashID Lev File/Address Line Parent_Funct MPI_Call\n";
  const char* const kCalls[] = {"Allreduce", "Allgather", "Sendrecv",  "Bcast",  "Sendrecv",
                                "Sendrecv",  "Alltoall",  "Allreduce", "Barrier"};
  for (int i = 1; i <= 9; ++i) {
    absl::StrAppend(&text, " ", i, " ", i, " 77 0 bfs.cc ", 10 * i, " main ", kCalls[i - 1], "\n");
  }
  absl::StrAppend(&text, "@--- Callsite Time statistics (all, milliseconds): 9 ---\n",
                  "Name Site Rank Count Max Mean Min App% MPI%\n");
  for (int i = 1; i <= 9; ++i) {
    absl::StrAppend(&text, kCalls[i - 1], " ", i, " 0 20 0.006 0.005 0.004 1.0 9.0\n",
                    kCalls[i - 1], " ", i, " * 80 0.006 0.005 0.004 1.0 9.0\n");
  }
  return text;
}

// Traced on 4, 9 and 16 ranks; generated for 256, in the forms of Chakra and of Ember.
TEST(WorkloadModelTest, ASearchThatWasTracedIsRunLarger) {
  const TemporaryDirectory directory;
  for (int64_t root : {2, 3, 4}) {
    for (int size : {14, 16, 18}) {
      MadeUpSearch search;
      search.root_of_ranks = root;
      search.size = size;
      search.roots = 6;
      search.seed = static_cast<uint64_t>(100 * root + size);
      for (int64_t rank = 0; rank < root * root; ++rank) {
        directory.Write(absl::StrCat("runs/n", root * root, "_s", size, ".trace_", rank),
                        SearchTrace(search, rank));
      }
    }
  }
  const std::string model = directory.PathOf("M.json");
  const CommandResult fitted =
      WorkloadModelCommand({"fit", "--traces=" + directory.PathOf("runs/*"),
                            "--name_pattern=n(?P<nodes>\\d+)_s(?P<size>\\d+)", "--output=" + model,
                            "--callsites=" + directory.Write("run.mpiP", SearchReport())});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.standard_error;
  EXPECT_THAT(fitted.standard_output, HasSubstr("control flow of ranks 'all': 9 callsites"));
  const std::string prefix = directory.PathOf("et/large");
  const CommandResult generated = WorkloadModelCommand(
      {"generate", "--model=" + model, "--nodes=256", "--size=20", "--output=" + prefix});
  ASSERT_EQ(generated.exit_code, 0) << generated.standard_error;
  EXPECT_THAT(generated.standard_output, AllOf(HasSubstr("256 ranks of up to"),
                                               HasSubstr("with calls as they were measured")));
  const CommandResult checked =
      RunCommandLine("tools/chakra_inspect", {"--et=" + prefix, "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
  const std::string network = directory.Write(
      "network.yml",
      "topology: [ Ring ]\nnpus_count: [ 256 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  const CommandResult simulated =
      RunCommandLine("tools/astra_simulate", {"--workload=" + prefix, "--network=" + network});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  EXPECT_THAT(simulated.standard_output, HasSubstr("makespan"));
  const CommandResult ember =
      WorkloadModelCommand({"generate", "--model=" + model, "--nodes=256", "--size=20",
                            "--format=ember", "--output=" + directory.PathOf("motif/Search")});
  ASSERT_EQ(ember.exit_code, 0) << ember.standard_error;
  EXPECT_THAT(directory.Read("motif/Search.cc"), HasSubstr("class EmberSearchGenerator"));
  EXPECT_THAT(directory.Read("motif/Search.exec.model"), HasSubstr("\n1 2 1 "));
  EXPECT_THAT(directory.Read("motif/Search.msg.model"), HasSubstr("\n1 1 CONSTANT 8\n"));
  EXPECT_THAT(directory.Read("motif/Search.py"), HasSubstr("Search seed="));
  for (const char* const name : {"exec", "msg"}) {
    const CommandResult evaluated = WorkloadModelCommand(
        {"evaluate", absl::StrCat("--model=", directory.PathOf("motif/Search."), name, ".model"),
         "--nodes=256", "--size=20"});
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.standard_error;
  }
  const std::string own = directory.Write("motif/Own.exec.model", directory.Read("M.json"));
  const CommandResult over =
      WorkloadModelCommand({"generate", "--model=" + own, "--nodes=256", "--size=20",
                            "--format=ember", "--output=" + directory.PathOf("motif/Own")});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.standard_error,
              HasSubstr("Own.exec.model is an input and would be overwritten"));
  for (const auto& [flags, message] :
       {std::pair<std::vector<std::string>, std::string>{{"--nodes=250"}, "there are none of 250"},
        {{"--nodes=256", "--format=sst"}, "neither chakra nor ember"},
        {{"--nodes=256", "--format=ember"}, "is no name of a motif"},
        {{"--nodes=256", "--threads=2"}, "no model of 2 threads"}}) {
    std::vector<std::string> arguments = {"generate", "--model=" + model, "--size=20",
                                          "--output=" + prefix + "-1"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const CommandResult result = WorkloadModelCommand(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.standard_error, HasSubstr(message));
  }
}

// A model of a training step, of one of its runs: generated again, it takes as long.
TEST(WorkloadModelTest, AStepIsModelledAndRegenerated) {
  const TemporaryDirectory directory;
  const std::string model = directory.PathOf("M.json");
  const CommandResult fitted = WorkloadModelCommand(
      {"fit", "--traces=examples/jax_tp_cuda4", "--size=1", "--output=" + model});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.standard_error;
  const CommandResult evaluated =
      WorkloadModelCommand({"evaluate", "--model=" + model, "--nodes=4", "--size=1", "--json"});
  WorkloadEvaluation evaluation;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(evaluated.standard_output, &evaluation).ok());
  // What critical_path says the whole of its six steps takes.
  const CommandResult path =
      RunCommandLine("tools/critical_path", {"--traces=examples/jax_tp_cuda4", "--json"});
  PathReport measured;
  google::protobuf::util::JsonParseOptions loose;
  loose.ignore_unknown_fields = true;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(path.standard_output, &measured, loose).ok());
  EXPECT_NEAR(evaluation.iterations(), 6, 1e-9);
  EXPECT_NEAR(evaluation.iteration_us() * 6 / measured.length_us(), 1, 0.1);
  const CommandResult generated =
      WorkloadModelCommand({"generate", "--model=" + model, "--nodes=4", "--size=1", "--json",
                            "--output=" + directory.PathOf("et/again")});
  ASSERT_EQ(generated.exit_code, 0) << generated.standard_error;
  CallWorkloadReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(generated.standard_output, &report).ok());
  EXPECT_NEAR(report.replayed_us() / measured.length_us(), 1, 0.1);
  EXPECT_EQ(
      RunCommandLine("tools/chakra_inspect", {"--et=" + directory.PathOf("et/again"), "--check"})
          .exit_code,
      0);
  // Without a size nobody knows where the job stands.
  const CommandResult unsized =
      WorkloadModelCommand({"fit", "--traces=examples/jax_tp_cuda4", "--output=" + model});
  EXPECT_EQ(unsized.exit_code, 2);
  EXPECT_THAT(unsized.standard_error, HasSubstr("--size=1"));
  // PyTorch, and the Chakra traces of a job.
  EXPECT_EQ(WorkloadModelCommand(
                {"fit", "--traces=examples/torch_pipeline4", "--size=1", "--output=" + model})
                .exit_code,
            0);
}

TEST(WorkloadModelTest, MistakesSayWhatToDo) {
  const TemporaryDirectory directory;
  const std::string bad = directory.Write("a_4-4-1-16-0.txt", "TRACE 1 -> 2 x MPI_Send\n");
  const std::string unnamed = directory.Write("a.txt", "1 2 1 TRACE 5\n");
  const std::string calls = directory.Write("c_4-4-1-16-0.trace", "TRACE 1 -> 2 5.0 MPI_Barrier\n");
  const std::string table =
      directory.Write("run.mpiP",
                      "@--- Callsites: 1 ---\n ID Lev File/Address Line Parent_Funct MPI_Call\n"
                      "  1   0 a.c 7 main Barrier\n");
  const std::string good = directory.Write("b_4-4-1-16-0.txt", "1 2 1 TRACE 5\n");
  for (const auto& [arguments, message] :
       {std::pair<std::vector<std::string>, std::string>{{}, "workload_model COMMAND"},
        {{"fits"}, "'fits' is none of its commands"},
        {{"fit"}, "--traces names no file"},
        {{"fit", "--traces=" + bad}, "a_4-4-1-16-0.txt:1: 'TRACE 1 -> 2 x MPI_Send' is no call"},
        {{"fit", "--traces=" + unnamed}, "does not tell nodes and size"},
        {{"fit", "--traces=" + good, "--models=POLYNOMIAL", "--order=9"}, "--order=9"},
        {{"fit", "--traces=" + good, "--order=3"}, "--order is of --models=POLYNOMIAL"},
        {{"fit", "--traces=" + calls, "--callsites=" + table}, "callsite 2 of the trace is not in"},
        {{"fit", "--traces=" + good, "--models=EXPONENTIAL"}, "too few cells"},
        {{"fit", "--traces=" + good, "--models=MAGIC"}, "'MAGIC' is no type"},
        {{"evaluate", "--model=" + good, "--nodes=0", "--size=3"}, "--nodes=64"},
        {{"evaluate", "--model=" + bad, "--nodes=4", "--size=3"}, "no model of workload_model"},
        {{"evaluate", "--model=" + good, "--nodes=4", "--size=3", "--threads=2"}, "2 threads"}}) {
    const CommandResult result = WorkloadModelCommand(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.standard_error, HasSubstr(message));
  }
  EXPECT_EQ(WorkloadModelCommand({"--help"}).exit_code, 0);
  EXPECT_THAT(WorkloadModelCommand({"fit", "--help"}).standard_output, HasSubstr("--name_pattern"));
}

}  // namespace
}  // namespace meridian
