// Where a formula for AstraSim's times is known, the engine gives what it says: with short cuts and
// without, on random cases. All for one dimension, all ranks, chunks one after another or, without
// congestion, side by side.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

struct Case {
  Congestion congestion = Congestion::kUnaware;
  NetworkDimension dimension;
  SystemConfig system;
  CollectiveKind op = CollectiveKind::kAllReduce;
  int64_t bytes = 0;

  int64_t n() const { return dimension.npus; }
  int64_t d() const { return system.endpoint_delay_ns; }
  int64_t chunk() const {
    return std::max<int64_t>(bytes / system.preferred_dataset_splits,
                             op == CollectiveKind::kAllGather ? 1 : n());
  }
  int64_t chunks() const {
    return bytes / system.preferred_dataset_splits < chunk() ? system.preferred_dataset_splits
                                                             : (bytes + chunk() - 1) / chunk();
  }
  // One message over so many links.
  int64_t T(int64_t message_bytes, int64_t hops) const {
    const double sending = static_cast<double>(message_bytes) / dimension.bytes_per_ns;
    if (congestion == Congestion::kUnaware) {
      return static_cast<int64_t>(static_cast<double>(hops) * dimension.latency_ns + sending);
    }
    return hops * static_cast<int64_t>(dimension.latency_ns + sending);
  }
  int64_t R(int64_t reduced_bytes) const {
    if (system.local_memory_bandwidth == 0) return 0;
    return 3 * static_cast<int64_t>(static_cast<double>(reduced_bytes) /
                                    (system.local_memory_bandwidth * 1e9) * 1e9);
  }
  int64_t neighbour_hops() const { return dimension.shape == BlockShape::kSwitch ? 2 : 1; }
};

int64_t RingChunkNs(const Case& c) {
  const int64_t n = c.n();
  const int64_t m = c.chunk() / n;
  const int64_t step = c.T(m, c.neighbour_hops()) + c.d();
  switch (c.op) {
    case CollectiveKind::kAllReduce:
      return c.d() + 2 * (n - 1) * step + (n - 1) * c.R(m);
    case CollectiveKind::kReduceScatter:
      return c.d() + (n - 1) * (step + c.R(m));
    case CollectiveKind::kAllGather:
      return c.d() + (n - 1) * (c.T(c.chunk(), c.neighbour_hops()) + c.d());
    default:
      return c.d() + n * (n - 1) / 2 * step;
  }
}

int64_t DirectChunkNs(const Case& c) {
  const int64_t m = c.chunk() / c.n();
  // The farthest of a ring; all are alike elsewhere.
  const int64_t hops = c.dimension.shape == BlockShape::kRing ? c.n() / 2 : c.neighbour_hops();
  switch (c.op) {
    case CollectiveKind::kAllReduce:
      return 3 * c.d() + 2 * c.T(m, hops) + c.R(m);
    case CollectiveKind::kReduceScatter:
      return 2 * c.d() + c.T(m, hops) + c.R(m);
    case CollectiveKind::kAllGather:
      return 2 * c.d() + c.T(c.chunk(), hops);
    default:
      return 2 * c.d() + c.T(m, hops);
  }
}

int64_t HalvingDoublingChunkNs(const Case& c) {
  // Bytes and partner's distance of each message.
  std::vector<std::pair<int64_t, int64_t>> messages;
  if (c.op == CollectiveKind::kAllGather) {
    int64_t bytes = c.chunk();
    for (int64_t offset = c.n() / 2; offset >= 1; offset /= 2, bytes *= 2) {
      messages.emplace_back(bytes, offset);
    }
  } else {
    int64_t bytes = c.chunk() / 2;
    for (int64_t offset = 1; offset < c.n(); offset *= 2, bytes /= 2) {
      messages.emplace_back(bytes, offset);
    }
    if (c.op == CollectiveKind::kAllReduce) {
      for (int64_t offset = c.n() / 2; offset >= 1; offset /= 2) {
        bytes *= 2;
        messages.emplace_back(bytes, offset);
      }
    }
  }
  int64_t levels = 0;
  while ((int64_t{1} << levels) < c.n()) ++levels;
  int64_t time = c.d();
  for (size_t k = 0; k < messages.size(); ++k) {
    const auto [bytes, offset] = messages[k];
    const int64_t hops = c.dimension.shape == BlockShape::kRing ? std::min(offset, c.n() - offset)
                                                                : c.neighbour_hops();
    time += c.T(bytes, hops) + c.d();
    const bool is_reduced = c.op != CollectiveKind::kAllGather && k + 1 < messages.size() &&
                            static_cast<int64_t>(k) + 1 < levels;
    if (is_reduced) time += c.R(messages[k + 1].first);
  }
  return time;
}

class ClosedFormTest : public testing::Test {
 protected:
  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Case RandomCase(const std::string& algorithm, bool is_power_of_two) {
    Case c;
    const int64_t shape = Between(0, 2);
    c.dimension.shape = shape == 0   ? BlockShape::kRing
                        : shape == 1 ? BlockShape::kFullyConnected
                                     : BlockShape::kSwitch;
    c.dimension.npus =
        static_cast<int32_t>(is_power_of_two ? int64_t{1} << Between(1, 5) : Between(2, 24));
    c.dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(static_cast<double>(Between(1, 400)));
    c.dimension.latency_ns = static_cast<double>(Between(0, 4000)) / 4;
    c.system = SystemWith({algorithm});
    c.system.endpoint_delay_ns = Between(1, 1000);
    c.system.local_memory_bandwidth = Between(0, 1) == 0 ? 0 : 1600;
    c.system.preferred_dataset_splits = static_cast<int32_t>(Between(1, 8));
    c.op = static_cast<CollectiveKind>(Between(0, 3));
    c.bytes = Between(8, int64_t{1} << Between(4, 30));
    return c;
  }

  void ExpectTime(const Case& c, int64_t expected_ns) {
    for (const bool events_only : {false, true}) {
      SimulationOptions options;
      options.congestion = c.congestion;
      options.events_only = events_only;
      ASSERT_OK_AND_ASSIGN(const SimulationResult result,
                           Simulate(EveryRank(c.dimension.npus, CollectiveNode(1, c.op, c.bytes)),
                                    Network({c.dimension}), c.system, options));
      ASSERT_EQ(result.finish_ns, std::vector<int64_t>(c.n(), expected_ns))
          << CollectiveKindName(c.op) << " of " << c.bytes << " among " << c.n();
    }
  }

  std::mt19937_64 random_{5};
};

TEST_F(ClosedFormTest, RingWithoutCongestion) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    Case c = RandomCase("ring", false);
    c.system.active_chunks_per_dimension = static_cast<int32_t>(Between(1, 4));
    const int64_t active = c.system.active_chunks_per_dimension;
    ExpectTime(c, (c.chunks() + active - 1) / active * RingChunkNs(c));
  }
}

TEST_F(ClosedFormTest, RingWithCongestion) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    Case c = RandomCase("ring", false);
    c.congestion = Congestion::kAware;
    ExpectTime(c, c.chunks() * RingChunkNs(c));
  }
}

TEST_F(ClosedFormTest, DirectWithoutCongestion) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const Case c = RandomCase("direct", false);
    // There, messages of the two halves overlap.
    if (c.dimension.shape == BlockShape::kRing && c.op == CollectiveKind::kAllReduce) continue;
    ExpectTime(c, c.chunks() * DirectChunkNs(c));
  }
}

TEST_F(ClosedFormTest, HalvingDoublingWithoutCongestion) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const Case c = RandomCase("halvingDoubling", true);
    if (c.op == CollectiveKind::kAllToAll) continue;
    ExpectTime(c, c.chunks() * HalvingDoublingChunkNs(c));
  }
}

TEST_F(ClosedFormTest, HalvingDoublingWithLinksOfItsOwn) {
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    Case c = RandomCase("halvingDoubling", true);
    if (c.op == CollectiveKind::kAllToAll || c.dimension.shape == BlockShape::kRing) continue;
    c.congestion = Congestion::kAware;
    ExpectTime(c, c.chunks() * HalvingDoublingChunkNs(c));
  }
}

// More bytes or less bandwidth never make a chunk faster. (Of a collective they may: what a split
// leaves over is a whole chunk more.)
TEST_F(ClosedFormTest, TimeGrowsWithBytesAndWithSlowness) {
  for (const char* const algorithm : {"ring", "direct", "halvingDoubling"}) {
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      Case c = RandomCase(algorithm, true);
      if (c.op == CollectiveKind::kAllToAll) continue;
      c.congestion = i % 2 == 0 ? Congestion::kUnaware : Congestion::kAware;
      c.system.preferred_dataset_splits = 1;
      const auto time = [](const Case& c) {
        SimulationOptions options;
        options.congestion = c.congestion;
        const absl::StatusOr<SimulationResult> result =
            Simulate(EveryRank(c.dimension.npus, CollectiveNode(1, c.op, c.bytes)),
                     Network({c.dimension}), c.system, options);
        EXPECT_OK(result.status());
        return result.ok() ? result->makespan_ns() : 0;
      };
      const int64_t base_ns = time(c);
      Case larger = c;
      larger.bytes += Between(0, 1000);
      EXPECT_GE(time(larger), base_ns);
      Case slower = c;
      slower.dimension.bytes_per_ns /= 1.5;
      EXPECT_GE(time(slower), base_ns);
    }
  }
}

}  // namespace
}  // namespace meridian
