#include "astra_bridge/prediction/shared_transfers.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/network_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// One switch, links of a byte per nanosecond.
FabricSet Star(int npus) {
  Fabric fabric;
  const absl::StatusOr<NetworkConfig> network = ParseNetworkConfig(
      absl::StrCat("topology: [ Links ]\nbandwidth_unit: GB\nnpus_count: [ ", npus,
                   " ]\nlinks: { shape: star, bandwidth: 1, latency: 0 }\n"),
      "");
  EXPECT_OK(network.status());
  if (network.ok()) fabric.network = *network;
  fabric.system = DefaultSystemConfig(fabric.network);
  return FabricSet::ForAllEdges(fabric);
}

CommEdge Edge(CollectiveKind kind, int64_t bytes, std::vector<int32_t> ranks) {
  CommEdge edge;
  edge.kind = kind;
  edge.bytes = bytes;
  edge.participants = std::move(ranks);
  return edge;
}

// Two steps of half the bytes, each after 10 ns, and 10 ns more.
double RingOfTwoNs(double bytes) { return bytes + 30; }

TEST(SharedTransfersTest, ThoseThatDoNotMeetLastAsAlone) {
  const FabricSet fabric = Star(4);
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 1000000, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 3000000, {2, 3}),
                                       Edge(CollectiveKind::kPointToPoint, 500000, {0, 1})};
  const SharedTransfers transfers(edges, fabric, Congestion::kFair, /*overhead_ns=*/100);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> lasts_ns,
      transfers.LastsNs({{{0, 0}, {0, 0}, {2000000, 2500000}}, {1000000, 3000000, 3000000}},
                        std::vector<EdgeScale>(3)));
  EXPECT_THAT(lasts_ns, ElementsAre(RingOfTwoNs(1e6) + 100, RingOfTwoNs(3e6) + 100, 500000 + 100));
}

TEST(SharedTransfersTest, WhoComesEarlySendsOnLinksThatOthersUse) {
  const FabricSet fabric = Star(3);
  // 0 sends to 1 what it has for their all-reduce while 2 sends to 1, too.
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 2000000, {0, 1}),
                                       Edge(CollectiveKind::kPointToPoint, 1000000, {2, 1})};
  const SharedTransfers transfers(edges, fabric, Congestion::kFair);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> lasts_ns,
      transfers.LastsNs({{{0, 2000000}, {0, 0}}, {4000000, 2000000}}, std::vector<EdgeScale>(2)));
  EXPECT_THAT(lasts_ns[1], DoubleNear(2000000, 20));
}

TEST(SharedTransfersTest, ALaterTransferWaitsForTheOneBeforeIt) {
  const FabricSet fabric = Star(2);
  // The schedule has the first last 10 ns, so the second begins 5 ns after that.
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 1000000, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 1000000, {0, 1})};
  const SharedTransfers transfers(edges, fabric, Congestion::kFair);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> lasts_ns,
      transfers.LastsNs({{{0, 0}, {15, 15}}, {10, 25}}, std::vector<EdgeScale>(2)));
  // They do not share links.
  EXPECT_THAT(lasts_ns, ElementsAre(RingOfTwoNs(1e6), RingOfTwoNs(1e6)));
}

TEST(SharedTransfersTest, ScalesMakeThemLastWhatWasMeasured) {
  const FabricSet fabric = Star(4);
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 1000000, {0, 1, 2, 3}),
                                       Edge(CollectiveKind::kAllReduce, 8, {0, 1}),
                                       Edge(CollectiveKind::kAllToAll, 4000000, {2, 3})};
  const SharedTransfers transfers(edges, fabric, Congestion::kFair);
  const std::vector<double> measured_ns = {1700000, 20, 1000000};
  const EdgeSchedule schedule = transfers.Apart(measured_ns);
  ASSERT_OK_AND_ASSIGN(const std::vector<EdgeScale> scales,
                       transfers.FitScales(schedule, measured_ns));
  EXPECT_THAT(scales[0].bytes, DoubleNear(1700000 / 1500000.0, 1e-3));
  EXPECT_THAT(scales[0].time, DoubleNear(1, 1e-3));
  // Fewer bytes do not make up for what the endpoints take.
  EXPECT_LT(scales[1].time, 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> lasts_ns, transfers.LastsNs(schedule, scales));
  EXPECT_THAT(lasts_ns,
              ElementsAre(DoubleNear(1700000, 1), DoubleNear(20, 1e-6), DoubleNear(1000000, 1)));
}

}  // namespace
}  // namespace meridian
