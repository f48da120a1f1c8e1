// AstraSim's place is taken by a program that replays its output and its failures.
#include "astra_bridge/sidecar/astra_simulator.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/sidecar/testing/script.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AstraSimulatorTest : public ::testing::Test {
 protected:
  AstraSimulatorTest() {
    options_.binary = ScriptedProgram();
    options_.work_folder = work_.path();
    options_.timeout = absl::Seconds(60);
    NetworkDimension dimension;
    dimension.npus = 2;
    network_.dimensions = {dimension};
    WorkloadNode node;
    node.id = 1;
    workload_.ranks.resize(2);
    for (RankWorkload& rank : workload_.ranks) rank.Add(node);
  }

  absl::StatusOr<SimulationResult> Run(const std::string& script) {
    UseScript(directory_, script);
    const absl::StatusOr<SimulationResult> simulation =
        SimulateWithAstraSim(FileSystem::Posix(), workload_, network_, SystemConfig(), options_);
    // Whatever happened: one run, and nothing left.
    EXPECT_EQ(ScriptRuns(directory_), 1);
    EXPECT_THAT(work_.List(), IsEmpty());
    return simulation;
  }

  const TemporaryDirectory directory_;
  const TemporaryDirectory work_;
  AstraSimulatorOptions options_;
  Workload workload_;
  NetworkConfig network_;
};

TEST_F(AstraSimulatorTest, ReadsTheTimesOfAllRanks) {
  ASSERT_OK_AND_ASSIGN(const SimulationResult simulation, Run(FinishScript({20, 10})));
  EXPECT_THAT(simulation.finish_ns, ElementsAre(20, 10));
  EXPECT_THAT(simulation.nodes, IsEmpty());
}

TEST_F(AstraSimulatorTest, PathsAreRelativeToAFolderOfItsOwn) {
  workload_.groups[1] = {0, 1};
  ASSERT_OK(Run(absl::StrCat("save ", directory_.PathOf("arguments"), "\n", FinishScript({1, 1}))));
  EXPECT_EQ(directory_.Read("arguments"),
            "--workload-configuration=workload\n--system-configuration=system.json\n"
            "--network-configuration=network.yml\n--remote-memory-configuration=memory.json\n"
            "--logging-folder=log\n--comm-group-configuration=groups.json\n");
}

TEST_F(AstraSimulatorTest, ACrashAfterTheLastRankIsNoFailure) {
  ASSERT_OK_AND_ASSIGN(const SimulationResult simulation,
                       Run(FinishScript({20, 10}) + "signal 6\n"));
  EXPECT_THAT(simulation.finish_ns, ElementsAre(20, 10));
}

TEST_F(AstraSimulatorTest, ExitZeroWithARankMissingIsAFailure) {
  EXPECT_THAT(Run(FinishScript({20}) + "exit 0\n"),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("1 of 2 ranks finished"),
                             HasSubstr("--engine=embedded says what is wrong"))));
}

TEST_F(AstraSimulatorTest, ACrashBeforeIsAFailure) {
  EXPECT_THAT(Run(FinishScript({20}) + "signal 11\n"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("crashed (signal 11)")));
}

TEST_F(AstraSimulatorTest, HalfAnOutputIsAFailure) {
  // "sys[0] finished, 2": no line break, no rest.
  EXPECT_THAT(Run("raw 5d207379735b305d2066696e69736865642c2032\nsignal 6\n"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("0 of 2 ranks")));
}

TEST_F(AstraSimulatorTest, GarbageIsAFailure) {
  EXPECT_THAT(Run("raw 00ff00ff0a\nflood 300000\nexit 0\n"), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Run(FinishScript({1, 2, 3})),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("makes no sense")));
}

TEST_F(AstraSimulatorTest, AHangEndsWithTheTimeout) {
  options_.timeout = absl::Milliseconds(200);
  EXPECT_THAT(Run(FinishScript({20}) + "sleep 60000\n"),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("after 200ms"), HasSubstr("1 of 2 ranks"))));
}

TEST_F(AstraSimulatorTest, AHangAfterTheLastRankIsNoFailure) {
  options_.timeout = absl::Milliseconds(300);
  EXPECT_OK(Run(FinishScript({20, 10}) + "sleep 60000\n"));
}

TEST_F(AstraSimulatorTest, TheLogTellsTimesOfNodes) {
  options_.node_times = true;
  ASSERT_OK_AND_ASSIGN(
      const SimulationResult simulation,
      Run(FinishScript({20, 1}) +
          "log [x] issue,sys->id=0, tick=0, node->id=1, node->name=, node->type=4\n"
          "log [x] issue,sys->id=1, tick=0, node->id=1, node->name=, node->type=4\n"
          "log [x] callback,sys->id=1, tick=1, node->id=1, node->name=, node->type=4\n"
          "log [x] callback,sys->id=0, tick=20, node->id=1, node->name=, node->type=4\n"));
  EXPECT_THAT(simulation.finish_ns, ElementsAre(20, 1));
  ASSERT_EQ(simulation.nodes.size(), 2u);
  EXPECT_EQ(simulation.nodes[0].rank, 0);
  EXPECT_EQ(simulation.nodes[0].finish_ns, 20);
}

TEST_F(AstraSimulatorTest, ALogWithoutAllNodesIsDataLoss) {
  options_.node_times = true;
  EXPECT_THAT(Run(FinishScript({20, 10}) +
                  "log [x] issue,sys->id=0, tick=0, node->id=1, node->name=, node->type=4\n"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("node 1 of rank 0 did not finish")));
}

// The program's own folder keeps the log of earlier runs.
TEST_F(AstraSimulatorTest, AnotherNetworksLogIsReadFromWhereTheRunBegins) {
  const auto log = [](const char* what, int tick) {
    return absl::StrCat("[x] ", what, ",sys->id=0, tick=", tick, ", node->id=1, node->name=\n");
  };
  directory_.Write("log/log.log", log("issue", 0) + log("callback", 7));
  options_.binary = directory_.PathOf("ns3");
  std::filesystem::create_symlink(ScriptedProgram(), options_.binary);
  options_.node_times = true;
  const auto run = [&](const std::string& script) {
    UseScript(directory_, FinishScript({20, 10}) + script);
    return RunAstraBackend(FileSystem::Posix(), {"/w", "/system.json", "/n", "", "", ""}, 2,
                           options_);
  };
  ASSERT_OK_AND_ASSIGN(const SimulationResult simulation,
                       run("log " + log("issue", 3) + "log " + log("callback", 20)));
  ASSERT_EQ(simulation.nodes.size(), 1u);
  EXPECT_EQ(simulation.nodes[0].issue_ns, 3);
  EXPECT_EQ(simulation.nodes[0].finish_ns, 20);
  EXPECT_THAT(run(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("/system.json: times of nodes need \"trace-enabled\"")));
  EXPECT_THAT(work_.List(), IsEmpty());
}

}  // namespace
}  // namespace meridian
