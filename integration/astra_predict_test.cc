// astra_predict as users run it: lists of edges, configurations, wrong input.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFull4[] =
    "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
constexpr char kRing4[] =
    "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
constexpr char kTwoSends[] =
    R"({"edge_id":"e1","op_kind":"P2P","size_bytes":1048576,"src_rank":0,"dst_rank":1}
{"edge_id":"e2","op_kind":"P2P","size_bytes":1048576,"src_rank":0,"dst_rank":1}
)";

class AstraPredictTest : public ::testing::Test {
 protected:
  AstraPredictTest() {
    edges_ = directory_.Write("edges.jsonl", kTwoSends);
    network_ = directory_.Write("network.yml", kFull4);
    // Nothing of the machine's own is changed.
    setenv("HOME", directory_.PathOf("home").c_str(), 1);
    unsetenv("XDG_CACHE_HOME");
  }

  CommandResult Predict(std::vector<std::string> arguments) {
    return RunCommandLine("tools/astra_predict", arguments);
  }

  std::vector<std::string> Basic(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--edges=" + edges_, "--network=" + network_, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void ExpectRefused(const CommandResult& result, int exit_code,
                     const ::testing::Matcher<std::string>& message) {
    EXPECT_EQ(result.exit_code, exit_code) << result.standard_error;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith("astra_predict: "), message));
  }

  const TemporaryDirectory directory_;
  std::string edges_;
  std::string network_;
};

// 1 MiB at 50 GB/s of 2^30 bytes and 500 ns: 20031.25 ns, cut to whole nanoseconds.
TEST_F(AstraPredictTest, TheEmbeddedEngineUnlessToldOtherwise) {
  const CommandResult result = Predict(Basic({}));
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"engine\": \"embedded, congestion-aware\""),
                    HasSubstr("\"mode\": \"isolated\""), HasSubstr("\"iteration_ns\": 20031,"),
                    HasSubstr("\"id\": \"e2\""), HasSubstr("\"seconds\": 2.0031e-05"),
                    HasSubstr("\"inflation\": 1,"), HasSubstr("\"cache_hits\": 0,"),
                    HasSubstr("\"fallbacks\": 0,")));
}

TEST_F(AstraPredictTest, EdgesTogetherShareTheLink) {
  const CommandResult result = Predict(Basic({"--mode=snapshot"}));
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // One sends after the other: 19531 + 20031.
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"iteration_ns\": 39562,"), HasSubstr("\"inflation\": 1.487"),
                    HasSubstr("\"engine\": \"embedded, congestion-aware\"")));
  EXPECT_THAT(Predict(Basic({"--mode=snapshot", "--congestion=unaware"})).standard_output,
              HasSubstr("\"iteration_ns\": 20031,"));
}

// Who asks by standard input is answered until it ends, which is at once here.
TEST_F(AstraPredictTest, ServesUntilTheInputEnds) {
  const CommandResult result = Predict({"--serve", "--network=" + network_});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, AllOf(StartsWith("{\"engine\":"), EndsWith("}\n")));
  ExpectRefused(Predict({"--serve", "--network=nowhere.yml"}), 2, HasSubstr("nowhere.yml"));
  ExpectRefused(Predict({"--serve", "--network=" + network_, "--mode=isolated"}), 2,
                HasSubstr("leave out --mode"));
  ExpectRefused(Predict(Basic({"--serve"})), 2, HasSubstr("or --serve"));
}

TEST_F(AstraPredictTest, PeopleGetATable) {
  const CommandResult result = Predict({"--edges=" + edges_, "--network=" + network_});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("e1"), HasSubstr("20.031"), HasSubstr("iteration  20.031 us")));
}

TEST_F(AstraPredictTest, ASecondRunIsAllCacheHits) {
  const std::vector<std::string> arguments =
      Basic({"--mode=snapshot", "--cache=" + directory_.PathOf("times")});
  const CommandResult first = Predict(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.standard_error;
  EXPECT_THAT(first.standard_output, HasSubstr("\"cache_hits\": 0,"));
  const CommandResult second = Predict(arguments);
  EXPECT_THAT(second.standard_output,
              AllOf(HasSubstr("\"cache_hits\": 1,"), HasSubstr("\"iteration_ns\": 39562,")));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> stored,
                       FileSystem::Posix().List(directory_.PathOf("times")));
  EXPECT_EQ(stored.size(), 1u);
}

// A byte at the end of a program changes its content, not what it does.
TEST_F(AstraPredictTest, AnotherProgramDoesNotTakeWhatThisOneKept) {
  const std::vector<std::string> arguments = Basic({"--cache=" + directory_.PathOf("times")});
  EXPECT_EQ(Predict(arguments).exit_code, 0);
  const std::string upgraded = directory_.PathOf("astra_predict");
  std::filesystem::copy_file("tools/astra_predict", upgraded);
  std::ofstream(upgraded, std::ios::app) << "1";
  EXPECT_THAT(RunCommandLine(upgraded, arguments).standard_output, HasSubstr("\"cache_hits\": 0,"));
  EXPECT_THAT(RunCommandLine(upgraded, arguments).standard_output, HasSubstr("\"cache_hits\": 1,"));
}

TEST_F(AstraPredictTest, AConfigurationSaysItAllAndFlagsOverrideIt) {
  directory_.Write("ring.yml", kRing4);
  directory_.Write(
      "edges.jsonl",
      R"({"edge_id":"g","op_kind":"AG","size_bytes":67108864,"participants":[0,1,2,3],"topology_key":"ring"}
{"edge_id":"h","op_kind":"AG","size_bytes":67108864,"participants":[0,1,2,3]}
)");
  const std::string config = directory_.Write("timing.yml", R"(
network_backend:
  model: embedded
  astra: {mode: snapshot}
topologies:
  default: network.yml
  ring: ring.yml
cache: mine
)");
  const CommandResult result = Predict({"--edges=" + edges_, "--config=" + config, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // The ring takes 10 + 3 * (trunc(500 + 64 * 19531.25) + 10) ns, and they do not meet.
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"engine\": \"embedded, congestion-aware\""),
                    HasSubstr("\"mode\": \"snapshot\""), HasSubstr("\"inflation\": 1,"),
                    HasSubstr("\"iteration_ns\": 3751540,")));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> stored,
                       FileSystem::Posix().List(directory_.PathOf("mine")));
  EXPECT_EQ(stored.size(), 2u);
  const CommandResult alone = Predict({"--edges=" + edges_, "--config=" + config,
                                       "--congestion=unaware", "--mode=isolated", "--json"});
  EXPECT_THAT(alone.standard_output,
              AllOf(HasSubstr("\"engine\": \"embedded, congestion-unaware\""),
                    HasSubstr("\"mode\": \"isolated\"")));
}

TEST_F(AstraPredictTest, CorrectionsAreApplied) {
  const std::string corrections =
      directory_.Write("c.json", R"({"p2p":[{"bytes":1048576,"ratio":2}]})");
  EXPECT_THAT(Predict(Basic({"--corrections=" + corrections})).standard_output,
              HasSubstr("\"iteration_ns\": 40062,"));
}

TEST_F(AstraPredictTest, AModelForAstraSimIsTheEmbeddedEngineWithAWarning) {
  const std::string config = directory_.Write("timing.yml", "network_backend: {model: astra}\n");
  const CommandResult result = Predict(Basic({"--config=" + config}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_error, AllOf(HasSubstr("warning"), HasSubstr("the embedded engine")));
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("\"engine\": \"embedded, congestion-aware\""),
                                            HasSubstr("\"iteration_ns\": 20031,")));
}

TEST_F(AstraPredictTest, BadInputExitsWithTwoFileAndKey) {
  ExpectRefused(Predict({}), 2, HasSubstr("--edges"));
  ExpectRefused(Predict({"--edges=" + edges_}), 2, HasSubstr("--network"));
  ExpectRefused(Predict({"--edges=missing.jsonl", "--network=" + network_}), 2,
                HasSubstr("missing.jsonl"));
  ExpectRefused(Predict(Basic({"--mode=fast"})), 2, HasSubstr("--mode=fast"));
  ExpectRefused(Predict(Basic({"--congestion=some"})), 2, HasSubstr("--congestion=some"));

  const struct {
    const char* file;
    const char* contents;
    std::vector<std::string> arguments;
    std::vector<std::string> message;
  } kCases[] = {
      {"edges.jsonl",
       R"({"edge_id":"a","op_kind":"XX","size_bytes":1,"participants":[0,1]})",
       {},
       {"edges.jsonl:1", "op_kind"}},
      {"edges.jsonl",
       R"({"edge_id":"a","op_kind":"AR","size_bytes":1,"participants":[0,4]})",
       {},
       {"edge a", "device 4", "network.yml"}},
      {"edges.jsonl",
       R"({"edge_id":"a","op_kind":"AR","size_bytes":1,"group_id":"tp"})",
       {},
       {"edges.jsonl:1", "participants"}},
      {"network.yml",
       "topology: Ring\nnpus_count: 4\nbandwidth: 50\nlatency: 500\n",
       {},
       {"network.yml", "topology"}},
      {"network.yml",
       "topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [500]\n",
       {},
       {"network.yml", "bandwidth"}},
      {"system.json",
       R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["magic"]})",
       {"--system"},
       {"system.json", "all-reduce-implementation"}},
      {"timing.yml",
       "network_backend: {model: magic}",
       {"--config"},
       {"timing.yml", "network_backend.model"}},
      {"c.json", R"({"p2p":[]})", {"--corrections"}, {"c.json", "p2p"}},
  };
  for (const auto& wrong : kCases) {
    directory_.Write("edges.jsonl", kTwoSends);
    directory_.Write("network.yml", kFull4);
    const std::string path = directory_.Write(wrong.file, wrong.contents);
    std::vector<std::string> arguments = Basic({});
    for (const std::string& flag : wrong.arguments) arguments.push_back(flag + "=" + path);
    const CommandResult result = Predict(arguments);
    for (const std::string& part : wrong.message) ExpectRefused(result, 2, HasSubstr(part));
  }
}

TEST_F(AstraPredictTest, AHalvingDoublingOfSixIsRefused) {
  directory_.Write("network.yml",
                   "topology: [ Ring ]\nnpus_count: [ 6 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  directory_.Write(
      "edges.jsonl",
      R"({"edge_id":"a","op_kind":"AR","size_bytes":64,"participants":[0,1,2,3,4,5]})");
  const std::string system = directory_.Write(
      "system.json",
      R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["halvingDoubling"]})");
  ExpectRefused(Predict(Basic({"--system=" + system})), 2,
                AllOf(HasSubstr("edge a"), HasSubstr("halvingDoubling")));
}

}  // namespace
}  // namespace meridian
