#include "astra_bridge/schedule/snapshot_manifest.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "astra_bridge/embedded_timing.h"
#include "astra_bridge/schedule/testing/workload_builder.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(SnapshotManifestTest, HasIntervalsMembersAndSizes) {
  WorkloadBuilder builder;
  builder.Send({0, 1}, 1, 1 << 20, 0);
  builder.Receive({1, 1}, 0, 1 << 20, 0);
  builder.Send({0, 2}, 1, 1 << 19, 1);
  builder.Receive({1, 2}, 0, 1 << 19, 1);
  const ExecutionGraph graph = std::move(builder).Build();
  TimingSetup setup;
  setup.fabrics = OneFabric(FabricOf({Dimension(BlockShape::kRing, 4)}));
  setup.timing = std::make_unique<EmbeddedTiming>(setup.fabrics, Congestion::kAware, nullptr);
  IterationOptions options;
  options.mode = TimingMode::kSnapshot;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<IterationPrediction> prediction,
                       PredictIteration(setup, graph, CommunicationMatch(graph), options));
  const SnapshotManifest manifest =
      MakeSnapshotManifest(*prediction, options, setup.timing->engine(), graph);
  EXPECT_EQ(manifest.engine(), "embedded, congestion-aware");
  EXPECT_EQ(manifest.partition(), "none");
  EXPECT_EQ(manifest.extractions(), 1);
  EXPECT_EQ(manifest.isolated_iteration_ns(), 20031);

  ASSERT_EQ(manifest.edges_size(), 2);
  EXPECT_EQ(manifest.edges(1).id(), "send 0>1 tag 1#0");
  EXPECT_EQ(manifest.edges(1).kind(), "p2p");
  EXPECT_EQ(manifest.edges(1).bytes(), 1 << 19);
  EXPECT_THAT(manifest.edges(1).participants(), ElementsAre(0, 1));
  // trunc(500 + 9765.625).
  EXPECT_THAT(manifest.edges(1).isolated_seconds(), DoubleEq(10265e-9));
  EXPECT_EQ(manifest.edges(1).end_ns(), 10265);
  // 20031 + 10265 * (29796 - 20031) / 20031 = 25035.1; see below.
  EXPECT_EQ(manifest.edges(0).end_ns(), 25035);
  EXPECT_EQ(manifest.iteration_ns(), 25035);

  // Both, then the larger one alone. The smaller goes first: it is first in canonical order.
  ASSERT_EQ(manifest.snapshots_size(), 2);
  EXPECT_EQ(manifest.snapshots(0).start_ns(), 0);
  EXPECT_EQ(manifest.snapshots(0).end_ns(), 10265);
  EXPECT_THAT(manifest.snapshots(0).edges(), ElementsAre(1, 0));
  EXPECT_EQ(manifest.snapshots(0).bytes(), 3 << 19);
  EXPECT_THAT(manifest.snapshots(1).edges(), ElementsAre(0));
  const ManifestBatch& both = manifest.batches(manifest.snapshots(0).batch());
  // The larger waits for 9765 ns.
  EXPECT_THAT(both.seconds(), ElementsAre(DoubleEq(10265e-9), DoubleEq(29796e-9)));
  EXPECT_THAT(both.inflation(), DoubleEq(29796.0 / 20031));
  EXPECT_THAT(both.inflation_over_sum(), DoubleEq(29796.0 / 30296));
  EXPECT_EQ(both.rule(), "simulated together");
  EXPECT_EQ(both.fallback_reason(), "");
}

TEST(SnapshotManifestTest, NothingTakesNoTime) {
  BatchEstimate batch;
  EXPECT_EQ(InflationOverSum(batch), 1);
}

TEST(SnapshotManifestTest, BytesStopAtTheLargestNumber) {
  const std::vector<CommEdge> edges(
      3, Edge(CommKind::kAllReduce, std::numeric_limits<int64_t>::max() / 2, {0, 1}));
  EXPECT_EQ(TotalBytes(edges, {0, 1}), std::numeric_limits<int64_t>::max() - 1);
  EXPECT_EQ(TotalBytes(edges, {0, 1, 2}), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace meridian
