#include "astra_bridge/configuration/timing_setup.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/sidecar/testing/script.h"
#include "astra_bridge/testing/fabrics.h"
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

class TimingSetupTest : public ::testing::Test {
 protected:
  TimingSetupTest() {
    config_.topologies[""].network = directory_.Write(
        "network.yml",
        "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
    environment_.work_folder = directory_.path();
  }

  absl::StatusOr<TimingSetup> SetUpIt() {
    return SetUpTiming(FileSystem::Posix(), config_, environment_);
  }

  const TemporaryDirectory directory_;
  TimingConfig config_;
  TimingEnvironment environment_;
  const CommEdge edge_ = Edge(CollectiveKind::kPointToPoint, 1 << 20, {0, 1});
};

TEST_F(TimingSetupTest, WithoutAModelItIsTheEmbeddedEngine) {
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.timing->engine().name, "embedded, congestion-aware");
  EXPECT_EQ(setup.cache, nullptr);
  EXPECT_THAT(setup.warnings, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, setup.timing->EstimateEdge(edge_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 20031e-9);
}

TEST_F(TimingSetupTest, AnalyticalMeansThatEdgesNeverSlowEachOtherDown) {
  config_.model = TimingModel::kAnalytical;
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.timing->engine().name, "embedded, congestion-unaware");
  EXPECT_EQ(setup.congestion, Congestion::kUnaware);
  EXPECT_FALSE(setup.overhead_ns.has_value());
}

TEST_F(TimingSetupTest, TheEmbeddedEngineWithACache) {
  config_.cache_folder = directory_.PathOf("cache/times");
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.timing->engine().name, "embedded, congestion-aware");
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, setup.timing->EstimateEdge(edge_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 20031e-9);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> stored,
                       FileSystem::Posix().List(directory_.PathOf("cache/times")));
  EXPECT_EQ(stored.size(), 1u);
}

TEST_F(TimingSetupTest, AFolderThatCannotHoldTheCacheIsNamed) {
  config_.cache_folder = directory_.Write("notes.txt", "a file");
  EXPECT_THAT(SetUpIt().status().message(), HasSubstr("notes.txt"));
}

TEST_F(TimingSetupTest, WithoutAstraSimTheEmbeddedEngineTakesItsPlaceWithAWarning) {
  config_.model = TimingModel::kAstra;
  environment_.search_path = directory_.path();
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.timing->engine().name, "embedded, congestion-aware");
  EXPECT_THAT(setup.warnings, ElementsAre(AllOf(HasSubstr("there is no AstraSim"),
                                                HasSubstr("the embedded engine"))));
}

TEST_F(TimingSetupTest, WhoInsistsOnAstraSimIsToldThatItIsMissing) {
  config_.model = TimingModel::kAstra;
  environment_.require_astra = true;
  EXPECT_THAT(SetUpIt(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("--astra_binary")));
}

TEST_F(TimingSetupTest, AstraSimDoesNotTimeWhatRunsTogether) {
  config_.model = TimingModel::kAstra;
  config_.mode = TimingMode::kSnapshot;
  EXPECT_THAT(SetUpIt(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("--engine=embedded"), HasSubstr("isolated"))));
}

TEST_F(TimingSetupTest, AstraSimIsProbedAndMayFallBack) {
  config_.model = TimingModel::kAstra;
  config_.astra_binary = ScriptedProgram();
  // The first run is the probe; the second one crashes.
  UseScript(directory_, absl::StrCat("run 1\n", FinishScript({40063, 40063}), "run 2\nsignal 6\n"));
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.timing->engine().name, "AstraSim analytical, congestion-aware");
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, setup.timing->EstimateEdge(edge_));
  EXPECT_TRUE(estimate.is_fallback());
  EXPECT_THAT(estimate.fallback_reason, HasSubstr("crashed (signal 6)"));
  EXPECT_DOUBLE_EQ(estimate.seconds, 20031e-9);
}

TEST_F(TimingSetupTest, CorrectionsAreApplied) {
  config_.corrections = directory_.Write("c.json", R"({"p2p":[{"bytes":1048576,"ratio":2}]})");
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.overhead_ns, 0);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, setup.timing->EstimateEdge(edge_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 40062e-9);
}

TEST_F(TimingSetupTest, TheLayoutIsTheConfigurations) {
  config_.topologies["pod"] = config_.topologies[""];
  config_.topologies.erase("");
  config_.layout.rank_to_device = {{8, 0}, {9, 1}};
  config_.layout.groups["tp"] = {8, 9};
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  std::vector<CommEdge> edges(1);
  edges[0].group_id = "tp";
  edges[0].topology_key = "pod";
  ASSERT_OK(PlaceEdges(setup.layout, &edges));
  EXPECT_THAT(edges[0].participants, ElementsAre(0, 1));
}

TEST_F(TimingSetupTest, ANetworkIsNeeded) {
  config_.topologies.clear();
  EXPECT_THAT(SetUpIt(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--network")));
}

}  // namespace
}  // namespace meridian
