// chakra_export as users run it, and what others make of its traces.
#include <string>
#include <vector>

#include "chakra_export/run/workload_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kSystem[] = R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
  "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
  "collective-optimization": "localBWAware", "local-mem-bw": 1600,
  "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
  "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"]})";

CommandResult Export(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/chakra_export", arguments);
}

std::string FileBytes(const std::string& path) {
  const auto region = FileSystem::Posix().Map(path);
  EXPECT_THAT(region, IsOk()) << path;
  return region.ok() ? std::string((*region)->bytes()) : std::string();
}

struct Example {
  const char* folder;
  int ranks;
};

class ChakraExportTest : public ::testing::TestWithParam<Example> {
 protected:
  const TemporaryDirectory directory_;
};

TEST_P(ChakraExportTest, TracesRunToTheEndInTheSimulator) {
  const std::string prefix = directory_.PathOf("w");
  const CommandResult exported =
      Export({std::string("--traces=") + GetParam().folder, "--output=" + prefix, "--json"});
  ASSERT_EQ(exported.exit_code, 0) << exported.standard_error;
  ChakraWorkloadReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(exported.standard_output, &report).ok());
  ASSERT_EQ(report.ranks_size(), GetParam().ranks);

  ASSERT_THAT(WriteOutput(FileSystem::Posix(), directory_.PathOf("n.yml"),
                          "topology: [ FullyConnected ]\nnpus_count: [ " +
                              std::to_string(GetParam().ranks) +
                              " ]\nbandwidth: [ 10.0 ]\nlatency: [ 20000.0 ]\n"),
              IsOk());
  ASSERT_THAT(WriteOutput(FileSystem::Posix(), directory_.PathOf("s.json"), kSystem), IsOk());
  std::vector<std::string> flags = {"--workload=" + prefix,
                                    "--network=" + directory_.PathOf("n.yml"),
                                    "--system=" + directory_.PathOf("s.json"), "--json"};
  std::vector<std::string> check = {"--et=" + prefix, "--check"};
  if (!report.comm_groups().empty()) {
    flags.push_back("--comm_groups=" + report.comm_groups());
    check.push_back("--comm_groups=" + report.comm_groups());
  }
  const CommandResult simulated = RunCommandLine("tools/astra_simulate", flags);
  EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  for (int rank = 0; rank < GetParam().ranks; ++rank) {
    EXPECT_THAT(simulated.standard_output, HasSubstr("\"id\": " + std::to_string(rank)));
  }
  const CommandResult checked = RunCommandLine("tools/chakra_inspect", check);
  EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
  EXPECT_THAT(checked.standard_output, HasSubstr("no problems"));
}

// The engine skips computations without bytes as ASTRA-sim does, and then does not end.
TEST_P(ChakraExportTest, TracesRunToTheEndOnARoofline) {
  const std::string prefix = directory_.PathOf("w");
  directory_.Write("n.yml", "topology: [ FullyConnected ]\nnpus_count: [ " +
                                std::to_string(GetParam().ranks) +
                                " ]\nbandwidth: [ 10.0 ]\nlatency: [ 20000.0 ]\n");
  std::string system = kSystem;
  system.insert(1, R"("roofline-enabled": 1, "peak-perf": 100, )");
  directory_.Write("s.json", system);
  for (const char* const how :
       {"--intent=profiled", "--granularity=step", "--intent=post_transformed"}) {
    const CommandResult exported =
        Export({std::string("--traces=") + GetParam().folder, "--output=" + prefix, how});
    ASSERT_EQ(exported.exit_code, 0) << exported.standard_error;
    const CommandResult simulated = RunCommandLine(
        "tools/astra_simulate", {"--workload=" + prefix, "--network=" + directory_.PathOf("n.yml"),
                                 "--system=" + directory_.PathOf("s.json")});
    EXPECT_EQ(simulated.exit_code, 0) << how << ": " << simulated.standard_error;
  }
}

TEST_P(ChakraExportTest, ACombinedFileGivesTheSameBytes) {
  const std::string combined = directory_.PathOf("combined.xplane.pb");
  const CommandResult combine = RunCommandLine(
      "tools/combine",
      {std::string("--traces=") + GetParam().folder, "--output=" + combined, "--method=none"});
  ASSERT_EQ(combine.exit_code, 0) << combine.standard_error;
  const std::string apart = directory_.PathOf("apart");
  const std::string joint = directory_.PathOf("joint");
  ASSERT_EQ(Export({std::string("--traces=") + GetParam().folder, "--output=" + apart}).exit_code,
            0);
  ASSERT_EQ(Export({"--traces=" + combined, "--output=" + joint}).exit_code, 0);
  for (int rank = 0; rank < GetParam().ranks; ++rank) {
    const std::string suffix = "." + std::to_string(rank) + ".et";
    EXPECT_EQ(FileBytes(apart + suffix), FileBytes(joint + suffix)) << suffix;
  }
}

INSTANTIATE_TEST_SUITE_P(, ChakraExportTest,
                         ::testing::Values(Example{"examples/jax_cuda2", 2},
                                           Example{"examples/jax_tp_cuda4", 4},
                                           Example{"examples/jax_cpu4", 4}),
                         [](const auto& info) { return std::string(info.param.folder).substr(9); });

TEST(ChakraExportCommandTest, ClocksWithViolationsAreBadInputAndNothingIsWritten) {
  const TemporaryDirectory directory;
  const CommandResult result =
      Export({"--traces=examples/jax_tp_cuda4_skewed", "--output=" + directory.PathOf("w")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.standard_error,
      AllOf(HasSubstr("rank2.xplane.pb.gz and examples/jax_tp_cuda4_skewed/rank3.xplane.pb.gz"),
            HasSubstr("504 of 528 collectives"), HasSubstr("run combine first")));
  EXPECT_THAT(*FileSystem::Posix().List(directory.path()), IsEmpty());
}

TEST(ChakraExportCommandTest, NotesAreOnStandardErrorUnlessTheyArePartOfTheJson) {
  const TemporaryDirectory directory;
  const std::vector<std::string> flags = {"--traces=examples/jax_cpu4", "--flavor=full",
                                          "--output=" + directory.PathOf("w")};
  const CommandResult text = Export(flags);
  ASSERT_EQ(text.exit_code, 0) << text.standard_error;
  EXPECT_THAT(text.standard_output, Not(HasSubstr("host nodes")));
  EXPECT_THAT(text.standard_error,
              AllOf(HasSubstr("warning: "), HasSubstr("--flavor=full adds no host nodes")));
  std::vector<std::string> json_flags = flags;
  json_flags.push_back("--json");
  const CommandResult json = Export(json_flags);
  ASSERT_EQ(json.exit_code, 0) << json.standard_error;
  EXPECT_THAT(json.standard_output, HasSubstr("--flavor=full adds no host nodes"));
  EXPECT_THAT(json.standard_error, IsEmpty());
}

TEST(ChakraExportCommandTest, TornFilesAreBadInputThatNamesTheFile) {
  const TemporaryDirectory directory;
  const std::string whole = FileBytes("examples/jax_cuda2/rank0.xplane.pb");
  const std::string torn = directory.PathOf("torn.xplane.pb");
  ASSERT_THAT(WriteOutput(FileSystem::Posix(), torn, whole.substr(0, whole.size() / 2)), IsOk());
  const CommandResult result = Export({"--traces=" + torn, "--output=" + directory.PathOf("w")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, AllOf(HasSubstr("torn.xplane.pb"), HasSubstr("offset")));
}

// What can be wrong with a run, each bad input that names what is wrong and writes nothing.
class BadRunTest : public ::testing::Test {
 protected:
  // Expects that these profiles are refused with all these words.
  void ExpectRefused(const std::string& traces, const std::vector<std::string>& words,
                     const std::string& intent = "profiled") {
    const CommandResult result = Export(
        {"--traces=" + traces, "--intent=" + intent, "--output=" + directory_.PathOf("out/w")});
    EXPECT_EQ(result.exit_code, 2) << traces;
    EXPECT_THAT(result.standard_output, IsEmpty());
    for (const std::string& word : words) {
      EXPECT_THAT(result.standard_error, HasSubstr(word)) << traces;
    }
    EXPECT_THAT(*FileSystem::Posix().List(directory_.PathOf("out")), IsEmpty());
  }

  BadRunTest() { EXPECT_OK(FileSystem::Posix().CreateDirectories(directory_.PathOf("out"))); }

  const TemporaryDirectory directory_;
};

TEST_F(BadRunTest, NotAProfile) {
  ExpectRefused(directory_.Write("a.xplane.pb", "{\"traceEvents\": []}"), {"a.xplane.pb"});
  ExpectRefused(directory_.Write("b.xplane.pb", ""), {"b.xplane.pb"});
  ExpectRefused(directory_.Write("c.xplane.pb", std::string("\x1f\x8b\x08") + std::string(20, 'x')),
                {"c.xplane.pb"});
  // A length of 2^63 bytes.
  ExpectRefused(directory_.Write("d.xplane.pb",
                                 "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
                                 "abc"),
                {"d.xplane.pb", "offset"});
  ExpectRefused("/dev/null", {"/dev/null"});
  ExpectRefused(directory_.PathOf("absent.xplane.pb"), {"absent.xplane.pb"});
  ExpectRefused(directory_.PathOf("out"), {"out"});
}

// Told by what is in them, with the command that is for them.
TEST_F(BadRunTest, ProfilesOfPytorch) {
  const std::string json = "\n {\n \"schemaVersion\": 1, \"traceEvents\": []\n }\n";
  for (const std::string& bytes : {json, GzipText(json)}) {
    ExpectRefused(directory_.Write("kineto_0.json.gz", bytes),
                  {"kineto_0.json.gz is a Kineto trace; expected an XSpace, chakra_link makes "
                   "Chakra traces of PyTorch runs"});
  }
  ExpectRefused(directory_.Write("et_0.json", R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})"),
                {"et_0.json is a PyTorch execution trace; expected an XSpace, chakra_link"});
  ExpectRefused(directory_.Write("t.csv", "rank,kind,start_ns,end_ns\n0,all-reduce,1,2\n"),
                {"t.csv is ", "; expected an XSpace, combine makes Chakra traces of others"});
}

TEST_F(BadRunTest, AMissingRank) {
  ExpectRefused("examples/jax_cuda2/rank1.xplane.pb", {"no profile has the work of rank 0 of 2"});
}

TEST_F(BadRunTest, TwoProfilesOfOneRank) {
  const std::string copy =
      directory_.Write("copy.xplane.pb", FileBytes("examples/jax_cuda2/rank0.xplane.pb"));
  ExpectRefused("examples/jax_cuda2/rank0.xplane.pb," + copy,
                {"rank0.xplane.pb", "copy.xplane.pb"});
}

TEST_F(BadRunTest, ProfilesOfDifferentRuns) {
  ExpectRefused("examples/jax_cuda2/rank0.xplane.pb,examples/jax_tp_cuda4/rank1.xplane.pb.gz",
                {"rank"});
}

// The second rank's HLO says all-gather where the first says all-to-all.
TEST_F(BadRunTest, ProfilesThatDisagreeAboutAnOpcode) {
  std::string bytes = FileBytes("examples/jax_cuda2/rank1.xplane.pb");
  const std::string from =
      "\x12\x0a"
      "all-to-all";
  size_t replaced = 0;
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at)) {
    bytes.replace(at, from.size(),
                  "\x12\x0a"
                  "all-gather");
    ++replaced;
  }
  ASSERT_GT(replaced, 0u);
  const std::string changed = directory_.Write("changed.xplane.pb", bytes);
  for (const char* intent : {"profiled", "post_transformed"}) {
    ExpectRefused(
        "examples/jax_cuda2/rank0.xplane.pb," + changed,
        {"rank0.xplane.pb", "changed.xplane.pb", "disagree about", "all-to-all", "all-gather"},
        intent);
  }
}

TEST(ChakraExportCommandTest, FlagsThatMeanNothingAreBadUsage) {
  for (const char* flag :
       {"--flavor=other", "--granularity=loop", "--intent=later", "--steps=5..3", "--steps=a",
        "--ranks=0,x", "--profile_start_ns=soon", "--profile_start_ns=1"}) {
    const CommandResult result =
        Export({"--traces=examples/jax_cuda2", "--output=/nowhere/w", flag});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.standard_error, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace meridian
