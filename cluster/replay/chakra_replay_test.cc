// chakra_replay as users run it, on four processes of this machine, and what others make of it.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/testing/et_nodes.h"
#include "cluster/replay/replay_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using Flags = std::vector<std::string>;

class ChakraReplayTest : public ::testing::Test {
 protected:
  // Sockets of MPI lie in the folder of temporary files, whose path must be short.
  ChakraReplayTest() { setenv("TMPDIR", "/tmp", 1); }

  CommandResult Replay(int processes, const Flags& flags) {
    Flags all = {"--allow-run-as-root", "--oversubscribe", "-n", absl::StrCat(processes),
                 "cluster/replay/chakra_replay"};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCommandLine("/usr/bin/mpirun", all);
  }

  static CommandResult Meridian(const std::string& command, Flags flags) {
    flags.insert(flags.begin(), command);
    return RunCommandLine("tools/meridian", flags);
  }

  void Generate(Flags flags, const std::string& prefix) {
    flags.push_back("--output=" + prefix);
    const CommandResult result = Meridian("chakra_generate", flags);
    ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  }

  // Expects that the files of a replay agree with each other.
  void ExpectSound(const std::string& folder, const std::string& prefix) {
    const CommandResult valid = Meridian("validate_collectives", {"--traces=" + folder});
    EXPECT_EQ(valid.exit_code, 0) << valid.standard_output << valid.standard_error;
    EXPECT_THAT(valid.standard_output, HasSubstr("0 violation(s)"));
    EXPECT_THAT(valid.standard_output, HasSubstr("; 0 unmatched; executions matched by run_id"));
    const CommandResult checked = Meridian("chakra_inspect", {"--et=" + prefix, "--check"});
    EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
    EXPECT_THAT(checked.standard_output, HasSubstr("no problems"));
  }

  std::string WriteTraces(const std::vector<std::vector<Node>>& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      directory_.Write(absl::StrCat("w.", rank, ".et"), EncodeEt(ranks[rank]));
    }
    return directory_.PathOf("w");
  }

  const TemporaryDirectory directory_;
};

TEST_F(ChakraReplayTest, RunsGroupsExpertsAndStages) {
  const std::string et = directory_.PathOf("gpt");
  Generate(
      {"--pattern=transformer", "--dp=2", "--pp=2", "--layers=2", "--hidden=64", "--sequence=64",
       "--vocab=512", "--batch=8", "--microbatches=2", "--zero", "--experts=4", "--tflops=0.1"},
      et);
  const std::string output = directory_.PathOf("out/gpt");
  const CommandResult result =
      Replay(4, {"--et=" + et, "--output=" + output, "--repeats=3", "--compute=sleep", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  ChakraReplayReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
  EXPECT_EQ(report.ranks(), 4);
  ASSERT_EQ(report.repeats_size(), 3);
  EXPECT_EQ(report.median_ns(), report.repeats(report.median_repeat()).step_ns());
  // Sleeps are never shorter than asked for.
  EXPECT_GT(report.median_ns(), report.compute_ns());
  ExpectSound(directory_.PathOf("out"), output);

  const CommandResult exported = Meridian(
      "chakra_export",
      {"--traces=" + directory_.PathOf("out"), "--output=" + directory_.PathOf("exported/gpt")});
  EXPECT_EQ(exported.exit_code, 0) << exported.standard_error;
}

TEST_F(ChakraReplayTest, RunsEveryKindOfCollectiveInSubGroups) {
  std::vector<std::vector<Node>> ranks(4);
  uint64_t id = 0;
  for (int type = ChakraProtoMsg::CollectiveCommType_MIN;
       type <= ChakraProtoMsg::CollectiveCommType_MAX; ++type) {
    ++id;
    for (size_t rank = 0; rank < 4; ++rank) {
      const auto kind = static_cast<ChakraProtoMsg::CollectiveCommType>(type);
      const EtIds before = id > 1 ? EtIds{2 * id - 2} : EtIds{};
      // Of all ranks, then of {0, 2} and {3, 1}; bytes that four members cannot share evenly.
      ranks[rank].push_back(CollectiveNode(2 * id - 1, kind, 1002, before));
      ranks[rank].push_back(
          CollectiveNode(2 * id, kind, 4096, {2 * id - 1}, rank % 2 == 0 ? "1" : "2"));
    }
  }
  directory_.Write("w.comm_groups.json", R"({"1": [0, 2], "2": [3, 1]})");
  const std::string et = WriteTraces(ranks);
  const std::string output = directory_.PathOf("out/w");
  const CommandResult result =
      Replay(4, {"--et=" + et, "--output=" + output, "--compute=none", "--warmup=0"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("80 of them communication"));
  const CommandResult valid =
      Meridian("validate_collectives", {"--traces=" + directory_.PathOf("out")});
  EXPECT_EQ(valid.exit_code, 0) << valid.standard_output << valid.standard_error;
  // Ten kinds, of which the groups of two count twice, in five repeats.
  EXPECT_THAT(valid.standard_output, HasSubstr("0 violation(s) in 150 checked of 150"));
}

TEST_F(ChakraReplayTest, ASweepCanBeCalibratedAndSimulated) {
  const std::string et = directory_.PathOf("sweep");
  Generate({"--pattern=all-reduce", "--ranks=4", "--bytes=4KiB,64KiB,1MiB", "--compute_us=100"},
           et);
  const std::string output = directory_.PathOf("out/sweep");
  const CommandResult result =
      Replay(4, {"--et=" + et, "--output=" + output, "--repeats=6", "--compute=sleep"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  ExpectSound(directory_.PathOf("out"), output);
  const std::string machine = directory_.PathOf("machine");
  const CommandResult calibrated = Meridian(
      "astra_calibrate", {"--traces=" + directory_.PathOf("out"), "--calibration=" + machine});
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.standard_error;
  const CommandResult simulated =
      Meridian("astra_simulate", {"--workload=" + output, "--calibration=" + machine});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  EXPECT_THAT(simulated.standard_output, HasSubstr("simulated  "));
}

TEST_F(ChakraReplayTest, ADeadlockNamesTheNodesThatWait) {
  // Rank 0 is done long before.
  directory_.Write("w.comm_groups.json", R"({"1": [1, 2], "2": [1, 2]})");
  const std::string et =
      WriteTraces({{CompNode(1, 1)},
                   {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "1"),
                    CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}, "2")},
                   {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "2"),
                    CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}, "1")}});
  const CommandResult result = Replay(3, {"--et=" + et, "--output=" + directory_.PathOf("out/w"),
                                          "--timeout_s=1", "--warmup=0", "--repeats=1"});
  EXPECT_EQ(result.exit_code, 1) << result.standard_error;
  EXPECT_THAT(result.standard_error, AllOf(HasSubstr("s: rank 1 node 1 (n1) waits\n"),
                                           HasSubstr("s: rank 2 node 1 (n1) waits\n")));
}

TEST_F(ChakraReplayTest, ALongComputationIsNoDeadlock) {
  const std::string et = WriteTraces(
      {{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)},
       {CompNode(1, 1'500'000), CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1})}});
  const CommandResult result =
      Replay(2, {"--et=" + et, "--output=" + directory_.PathOf("out/w"), "--timeout_s=1",
                 "--compute=sleep", "--warmup=0", "--repeats=1"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
}

// MPI does nothing for collectives without bytes; who comes early must wait all the same.
TEST_F(ChakraReplayTest, CollectivesOfNothingWaitForAll) {
  std::vector<std::vector<Node>> ranks(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    ranks[rank].push_back(CompNode(1, rank == 0 ? 1 : 20'000));
    uint64_t id = 1;
    for (const auto kind : {ChakraProtoMsg::ALL_REDUCE, ChakraProtoMsg::REDUCE_SCATTER}) {
      ++id;
      ranks[rank].push_back(CollectiveNode(id, kind, 0, {id - 1}));
    }
  }
  const CommandResult result =
      Replay(2, {"--et=" + WriteTraces(ranks), "--output=" + directory_.PathOf("out/w"),
                 "--compute=sleep", "--warmup=0", "--repeats=2"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CommandResult valid =
      Meridian("validate_collectives", {"--traces=" + directory_.PathOf("out")});
  EXPECT_EQ(valid.exit_code, 0) << valid.standard_output << valid.standard_error;
}

// On stand-ins for NCCL and the driver, whose collectives take 300 us.
TEST_F(ChakraReplayTest, RunsOverNccl) {
  const std::string et = WriteTraces(
      {{CompNode(1, 20'000), CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 4096, {1}),
        SendNode(3, 0, 1, 8, 5, {2})},
       {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 4096), RecvNode(2, 0, 1, 8, 5, {1})}});
  const std::string output = directory_.PathOf("out/w");
  const Flags flags = {"--et=" + et, "--output=" + output, "--backend=nccl", "--json"};
  setenv("LD_LIBRARY_PATH", "cluster/replay", 1);
  setenv("STAND_IN_CALLS", directory_.PathOf("calls").c_str(), 1);
  const CommandResult result = Replay(2, flags);
  // What was measured is a recording, too.
  const CommandResult again =
      Replay(2, {"--et=" + output, "--output=" + output + "2", "--backend=nccl"});
  setenv("STAND_IN_FAIL", "ncclCommInitRank", 1);
  const CommandResult failed = Replay(2, flags);
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("STAND_IN_CALLS");
  unsetenv("STAND_IN_FAIL");
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  ChakraReplayReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
  EXPECT_EQ(report.repeats_size(), 5);
  EXPECT_NEAR(report.median_ns() / 1000, 20'600, 400);
  EXPECT_FALSE(report.has_recorded_ns());
  // One repeat is the recording; what else the machine does only adds to it.
  EXPECT_THAT(
      again.standard_output,
      ContainsRegex("recorded [2-9].,... us; the replay is [+-].* % off; threads of the job"));
  const std::string calls = directory_.Read("calls");
  // A GPU for each rank, and the id of each communicator from rank 0 to both.
  EXPECT_THAT(calls,
              AllOf(HasSubstr("cuDeviceGet 0 "), HasSubstr("cuDeviceGet 1 "),
                    HasSubstr("ncclCommInitRank 2 1 0"), HasSubstr("ncclCommInitRank 2 1 1"),
                    HasSubstr("ncclCommInitRank 2 2 0"), HasSubstr("ncclCommInitRank 2 2 1")));
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.standard_error, HasSubstr("ncclCommInitRank: made to fail"));
}

TEST_F(ChakraReplayTest, BadInputIsRefusedOnce) {
  const std::string et = WriteTraces({{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)},
                                      {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 16)}});
  const Flags flags = {"--et=" + et, "--output=" + directory_.PathOf("out/w")};
  CommandResult result = Replay(2, flags);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("is ALL_REDUCE of 8 bytes, but its peer"));
  const size_t first = result.standard_error.find("but its peer");
  EXPECT_EQ(result.standard_error.find("but its peer", first + 1), std::string::npos);

  // Also of many ranks, the first of which to end has the others killed.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Replay(8, flags).standard_error, HasSubstr("traces of 2 ranks, but 8 processes"));
  }
  result = Replay(3, flags);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error,
              HasSubstr("traces of 2 ranks, but 3 processes; run it with mpirun -n 2"));

  result = Replay(2, {"--et=" + et, "--output=" + et});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("w.0.et is an input and would be overwritten"));
  result = Replay(1, {"--et=" + directory_.PathOf("none"), "--output=x"});
  EXPECT_EQ(result.exit_code, 2);
  result = Replay(1, {"--et=" + et, "--output=x", "--compute=fast"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("--compute=fast is none of busy, sleep, none"));
  result = Replay(1, {"--et=" + et, "--output=x", "--backend=gloo"});
  EXPECT_THAT(result.standard_error, HasSubstr("--backend=gloo is none of mpi, nccl"));
}

TEST_F(ChakraReplayTest, AFileThatCannotBeWrittenIsNamed) {
  const std::string et = WriteTraces({{CompNode(1, 1)}});
  const CommandResult result = Replay(1, {"--et=" + et, "--output=/dev/null/w"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("/dev/null: Not a directory"));
}

}  // namespace
}  // namespace meridian
