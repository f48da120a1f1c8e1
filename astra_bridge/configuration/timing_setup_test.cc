#include "astra_bridge/configuration/timing_config.h"

#include <string>
#include <vector>

#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TimingSetupTest : public ::testing::Test {
 protected:
  TimingSetupTest() {
    config_.topologies[""].network = directory_.Write(
        "network.yml",
        "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  }

  absl::StatusOr<TimingSetup> SetUpIt() { return SetUpTiming(FileSystem::Posix(), config_); }

  const TemporaryDirectory directory_;
  TimingConfig config_;
  const CommEdge edge_ = Edge(CollectiveKind::kPointToPoint, 1 << 20, {0, 1});
};

TEST_F(TimingSetupTest, WithoutAModelItIsTheEmbeddedEngine) {
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.congestion, Congestion::kAware);
  EXPECT_EQ(setup.cache, nullptr);
  EXPECT_THAT(setup.warnings, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const double seconds, setup.timing(edge_));
  EXPECT_DOUBLE_EQ(seconds, 20031e-9);
}

TEST_F(TimingSetupTest, AnalyticalMeansThatEdgesNeverSlowEachOtherDown) {
  config_.model = TimingModel::kAnalytical;
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.congestion, Congestion::kUnaware);
  EXPECT_FALSE(setup.overhead_ns.has_value());
}

TEST_F(TimingSetupTest, TheEmbeddedEngineWithACache) {
  config_.cache_folder = directory_.PathOf("cache/times");
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  ASSERT_OK_AND_ASSIGN(const double seconds, setup.timing(edge_));
  EXPECT_DOUBLE_EQ(seconds, 20031e-9);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> stored,
                       FileSystem::Posix().List(directory_.PathOf("cache/times")));
  EXPECT_EQ(stored.size(), 1u);
}

TEST_F(TimingSetupTest, AFolderThatCannotHoldTheCacheIsNamed) {
  config_.cache_folder = directory_.Write("notes.txt", "a file");
  EXPECT_THAT(SetUpIt().status().message(), HasSubstr("notes.txt"));
}

TEST_F(TimingSetupTest, InPlaceOfAstraSimItIsTheEmbeddedEngineWithAWarning) {
  config_.model = TimingModel::kAstra;
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.congestion, Congestion::kAware);
  EXPECT_THAT(setup.warnings, ElementsAre(HasSubstr("the embedded engine")));
}

TEST_F(TimingSetupTest, CorrectionsAreApplied) {
  config_.corrections = directory_.Write("c.json", R"({"p2p":[{"bytes":1048576,"ratio":2}]})");
  ASSERT_OK_AND_ASSIGN(const TimingSetup setup, SetUpIt());
  EXPECT_EQ(setup.overhead_ns, 0);
  ASSERT_OK_AND_ASSIGN(const double seconds, setup.timing(edge_));
  EXPECT_DOUBLE_EQ(seconds, 40062e-9);
}

TEST_F(TimingSetupTest, ANetworkIsNeeded) {
  config_.topologies.clear();
  EXPECT_THAT(SetUpIt(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--network")));
}

}  // namespace
}  // namespace meridian
