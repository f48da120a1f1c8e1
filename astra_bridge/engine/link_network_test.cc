#include "astra_bridge/engine/link_network.h"

#include <map>

#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

// 50 GiB/s are 53.6870912 bytes per ns.
constexpr int64_t kBytes = 262144;
// 262144 / 53.6870912 = 4882.8125; with 500 ns of latency 5382.8125.
constexpr int64_t kSendingNs = 4882;
constexpr int64_t kCrossingNs = 5382;

// A network and the arrivals on it, by message.
class Fixture {
 public:
  Fixture(const NetworkConfig& config, Congestion congestion)
      : topology_(config), events_(topology_.npus()), network(topology_, congestion, events_) {}

  std::map<uint32_t, int64_t> RunToEnd() {
    std::map<uint32_t, int64_t> arrivals;
    Event event;
    while (events_.Pop(&event)) {
      if (event.kind == EventKind::kLinkFree) {
        network.OnLinkFree(event.subject);
      } else if (network.Arrives(event.subject)) {
        arrivals[event.subject] = event.time_ns;
      }
    }
    return arrivals;
  }

 private:
  const Topology topology_;
  EventQueue events_;

 public:
  LinkNetwork network;
};

TEST(LinkNetworkTest, UnawareCountsLatencyPerHopAndSendingOnce) {
  const NetworkConfig ring = Network({Dimension(BlockShape::kRing, 8)});
  Fixture fixture(ring, Congestion::kUnaware);
  const uint32_t near = fixture.network.Send(0, 1, kBytes);
  const uint32_t far = fixture.network.Send(0, 4, kBytes);
  const uint32_t same = fixture.network.Send(0, 1, kBytes);
  const std::map<uint32_t, int64_t> arrivals = fixture.RunToEnd();
  EXPECT_EQ(arrivals.at(near), kCrossingNs);
  // 4 * 500 + 4882.8125.
  EXPECT_EQ(arrivals.at(far), 6882);
  EXPECT_EQ(arrivals.at(same), kCrossingNs);
}

TEST(LinkNetworkTest, UnawareChargesTheFirstDifferingDimensionOnly) {
  const NetworkConfig network = Network({Dimension(BlockShape::kFullyConnected, 2, 50, 500),
                                         Dimension(BlockShape::kSwitch, 2, 25, 1000)});
  Fixture fixture(network, Congestion::kUnaware);
  EXPECT_EQ(fixture.network.UncongestedNs(0, 3, kBytes), kCrossingNs);
  // 2 * 1000 + 262144 / 26.8435456.
  EXPECT_EQ(fixture.network.UncongestedNs(0, 2, kBytes), 11765);
}

TEST(LinkNetworkTest, AwareForwardsWholeMessagesFromLinkToLink) {
  Fixture fixture(Network({Dimension(BlockShape::kRing, 8)}), Congestion::kAware);
  const uint32_t message = fixture.network.Send(0, 3, kBytes);
  EXPECT_EQ(fixture.RunToEnd().at(message), 3 * kCrossingNs);
}

TEST(LinkNetworkTest, AwareLetsMessagesWaitInTheOrderTheyCame) {
  Fixture fixture(Network({Dimension(BlockShape::kFullyConnected, 3)}), Congestion::kAware);
  const uint32_t first = fixture.network.Send(0, 1, kBytes);
  const uint32_t second = fixture.network.Send(0, 1, kBytes);
  const uint32_t third = fixture.network.Send(0, 1, kBytes);
  const uint32_t elsewhere = fixture.network.Send(0, 2, kBytes);
  const std::map<uint32_t, int64_t> arrivals = fixture.RunToEnd();
  EXPECT_EQ(arrivals.at(first), kCrossingNs);
  EXPECT_EQ(arrivals.at(second), kSendingNs + kCrossingNs);
  EXPECT_EQ(arrivals.at(third), 2 * kSendingNs + kCrossingNs);
  EXPECT_EQ(arrivals.at(elsewhere), kCrossingNs);
}

TEST(LinkNetworkTest, SwitchHasOneLinkUpAndOneDownPerRank) {
  Fixture fixture(Network({Dimension(BlockShape::kSwitch, 4)}), Congestion::kAware);
  const uint32_t a = fixture.network.Send(0, 3, kBytes);
  const uint32_t b = fixture.network.Send(1, 3, kBytes);
  const std::map<uint32_t, int64_t> arrivals = fixture.RunToEnd();
  EXPECT_EQ(arrivals.at(a), 2 * kCrossingNs);
  // Waits for the way down.
  EXPECT_EQ(arrivals.at(b), 2 * kCrossingNs + kSendingNs);
}

TEST(LinkNetworkTest, GoesThroughDimensionsInOrder) {
  // Two rows of two behind switches; columns are fully connected.
  Fixture fixture(
      Network({Dimension(BlockShape::kSwitch, 2), Dimension(BlockShape::kFullyConnected, 2),
               Dimension(BlockShape::kSwitch, 2)}),
      Congestion::kAware);
  // A long message keeps the link from 1 to 3 busy for trunc(10 * 4882.8125) ns. Behind the first
  // switch the other is at 1 and waits for that link; it then crosses it and two of the last switch.
  fixture.network.Send(1, 3, 10 * kBytes);
  const uint32_t message = fixture.network.Send(0, 7, kBytes);
  EXPECT_EQ(fixture.RunToEnd().at(message), 48828 + 3 * kCrossingNs);
}

TEST(LinkNetworkTest, MeshHasNoWayAroundTheEnds) {
  Fixture fixture(Network({Dimension(BlockShape::kMesh, 4)}), Congestion::kAware);
  const uint32_t message = fixture.network.Send(3, 0, kBytes);
  EXPECT_EQ(fixture.RunToEnd().at(message), 3 * kCrossingNs);
}

TEST(LinkNetworkTest, RingOfTwoHasALinkEachWay) {
  Fixture fixture(Network({Dimension(BlockShape::kRing, 2)}), Congestion::kAware);
  const uint32_t there = fixture.network.Send(0, 1, kBytes);
  const uint32_t back = fixture.network.Send(1, 0, kBytes);
  const std::map<uint32_t, int64_t> arrivals = fixture.RunToEnd();
  EXPECT_EQ(arrivals.at(there), kCrossingNs);
  EXPECT_EQ(arrivals.at(back), kCrossingNs);
}

TEST(LinkNetworkTest, NumbersOfMessagesAreUsedAgain) {
  Fixture fixture(Network({Dimension(BlockShape::kFullyConnected, 2)}), Congestion::kAware);
  const uint32_t first = fixture.network.Send(0, 1, kBytes);
  fixture.RunToEnd();
  EXPECT_EQ(fixture.network.Send(1, 0, kBytes), first);
}

}  // namespace
}  // namespace meridian
