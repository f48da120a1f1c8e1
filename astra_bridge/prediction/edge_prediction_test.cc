#include "astra_bridge/prediction/prediction_run.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/testing/predictions.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/timing/network_timing.h"
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
using ::testing::Not;

// Seconds by edge id.
TimingSetup FixedSetup(std::map<std::string, double> seconds) {
  TimingSetup setup;
  setup.timing = [seconds = std::move(seconds)](const CommEdge& edge) {
    return seconds.at(edge.id);
  };
  setup.warnings = {"careful"};
  return setup;
}

CommEdgeList List(const std::vector<std::string>& ids) {
  CommEdgeList list;
  for (const std::string& id : ids) {
    list.edges.emplace_back();
    list.edges.back().id = id;
    list.edges.back().participants = {0, 1};
    // No two are alike.
    list.edges.back().bytes = static_cast<int64_t>(list.edges.size());
  }
  list.duplicates_dropped = 3;
  return list;
}

void Ignore(uint64_t) {}

TEST(EdgePredictionTest, EachAlone) {
  const TimingSetup setup = FixedSetup({{"a", 2e-6}, {"b", 3e-6}});
  std::vector<uint64_t> steps;
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(setup, List({"a", "b"}), TimingMode::kIsolated,
                                    [&](uint64_t done) { steps.push_back(done); }));
  EXPECT_EQ(report.engine(), "embedded, congestion-aware");
  EXPECT_EQ(report.mode(), "isolated");
  EXPECT_EQ(report.iteration_ns(), 3000);
  ASSERT_EQ(report.edges_size(), 2);
  EXPECT_EQ(report.edges(0).id(), "a");
  EXPECT_EQ(report.edges(0).seconds(), 2e-6);
  EXPECT_EQ(report.inflation(), 1);
  EXPECT_EQ(report.fallbacks(), 0);
  EXPECT_EQ(report.duplicates_dropped(), 3);
  EXPECT_THAT(report.warnings(), ElementsAre("careful"));
  EXPECT_THAT(steps, ElementsAre(1, 2));
}

// 1 MiB twice from 0 to 1: one sends after the other, 19531 + 20031.
TEST(EdgePredictionTest, AllAtOnce) {
  CommEdgeList list;
  for (const std::string id : {"a", "b"}) {
    list.edges.push_back(Edge(CollectiveKind::kPointToPoint, 1 << 20, {0, 1}));
    list.edges.back().id = id;
  }
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(RingSetup(), list, TimingMode::kSnapshot, Ignore));
  EXPECT_EQ(report.mode(), "snapshot");
  EXPECT_EQ(report.iteration_ns(), 39562);
  EXPECT_NEAR(report.inflation(), (20031.0 + 39562) / (2 * 20031), 1e-12);
  EXPECT_NEAR(report.edges(0).seconds(), 20031e-9, 1e-15);
  EXPECT_NEAR(report.edges(1).seconds(), 39562e-9, 1e-15);
  EXPECT_NEAR(report.edges(1).isolated_seconds(), 20031e-9, 1e-15);
  EXPECT_THAT(FormatPrediction(report),
              AllOf(HasSubstr("iteration  39.562 us"), HasSubstr("inflation  1.4875"),
                    HasSubstr("cache hits 0\n")));
}

TEST(EdgePredictionTest, WithoutCongestionManyAtOnceTakeAsLongAsAlone) {
  TimingSetup setup = RingSetup();
  setup.congestion = Congestion::kUnaware;
  CommEdgeList list;
  for (int64_t i = 1; i <= 200; ++i) {
    list.edges.push_back(Edge(CollectiveKind::kPointToPoint, 1000 * i, {0, 1}));
  }
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(setup, list, TimingMode::kSnapshot, Ignore));
  EXPECT_DOUBLE_EQ(report.inflation(), 1);
}

TEST(EdgePredictionTest, EdgesOnDifferentTopologiesDoNotMeet) {
  TimingSetup setup = RingSetup();
  const Fabric ring = FabricOf({Dimension(BlockShape::kRing, 4)});
  setup.fabrics =
      std::make_shared<FabricSet>(std::map<std::string, Fabric>{{"x", ring}, {"y", ring}});
  setup.timing = EmbeddedTiming(setup.fabrics, Congestion::kAware);
  CommEdgeList list;
  for (const std::string key : {"x", "y", "y"}) {
    list.edges.push_back(Edge(CollectiveKind::kPointToPoint, 1 << 20, {0, 1}));
    list.edges.back().topology_key = key;
  }
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(setup, list, TimingMode::kSnapshot, Ignore));
  EXPECT_NEAR(report.edges(0).seconds(), 20031e-9, 1e-15);
  EXPECT_NEAR(report.edges(1).seconds(), 20031e-9, 1e-15);
  EXPECT_NEAR(report.edges(2).seconds(), 39562e-9, 1e-15);
}

// Edges edge0, edge1, ..., that many, of 0, 1, ... us.
std::map<std::string, double> ManyEdges(int count) {
  std::map<std::string, double> seconds;
  for (int i = 0; i < count; ++i) seconds[absl::StrCat("edge", i)] = i * 1e-6;
  return seconds;
}

std::vector<std::string> Ids(int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(absl::StrCat("edge", i));
  return ids;
}

TEST(EdgePredictionTest, SaysWhatTheCacheSaved) {
  const TemporaryDirectory directory;
  const auto cache = std::make_shared<TimingCache>(FileSystem::Posix(), directory.path(), "p");
  cache->Find("a");
  ASSERT_OK(cache->Store("a", 1.0));
  cache->Find("a");
  TimingSetup setup = FixedSetup({});
  setup.cache = cache;
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(setup, List({}), TimingMode::kIsolated, Ignore));
  EXPECT_EQ(report.cache_hits(), 1);
  EXPECT_THAT(FormatPrediction(report), HasSubstr("cache hits 1\n"));
}

TEST(EdgePredictionTest, ManyEdgesAreShortenedForPeople) {
  const TimingSetup setup = FixedSetup(ManyEdges(1025));
  ASSERT_OK_AND_ASSIGN(const PredictionReport report,
                       PredictEdges(setup, List(Ids(1025)), TimingMode::kIsolated, Ignore));
  EXPECT_EQ(report.edges_size(), 1025);
  EXPECT_THAT(FormatPrediction(report),
              AllOf(HasSubstr("edge1024"), HasSubstr("and 1,005 that are faster"),
                    Not(HasSubstr("edge1004 "))));
}

}  // namespace
}  // namespace meridian
