#include "astra_bridge/engine/network_config.h"

#include <random>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kGood[] = R"(# a comment
topology: [ Ring, FullyConnected, Switch ]
npus_count: [ 4, 2, 8 ]
bandwidth: [ 50.0, 25, 12.5 ]
latency: [ 500, 33.3, 0 ]
something_else: 7
)";

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kGood;
  return text.replace(text.find(from), from.size(), to);
}

TEST(NetworkConfigTest, ListsKeysThatHaveNoMeaning) {
  ASSERT_OK_AND_ASSIGN(const NetworkConfig one, ParseNetworkConfig(kGood, "n.yml"));
  EXPECT_EQ(one.unknown_keys,
            "n.yml: something_else: not known and ignored; there are topology, npus_count, "
            "bandwidth, latency, bandwidth_unit, links");
  ASSERT_OK_AND_ASSIGN(
      const NetworkConfig more,
      ParseNetworkConfig(Replaced("something_else: 7", "band: 7\ny: 8\nx: {}"), "n.yml"));
  EXPECT_THAT(more.unknown_keys, StartsWith("n.yml: band: not known and ignored, as are 2 more;"));
  ASSERT_OK_AND_ASSIGN(
      const NetworkConfig none,
      ParseNetworkConfig(Replaced("something_else: 7", "bandwidth_unit: GB"), "n.yml"));
  EXPECT_EQ(none.unknown_keys, "");
}

TEST(NetworkConfigTest, ReadsAListPerProperty) {
  ASSERT_OK_AND_ASSIGN(const NetworkConfig network, ParseNetworkConfig(kGood, "n.yml"));
  EXPECT_EQ(network.source, "n.yml");
  ASSERT_THAT(network.dimensions, SizeIs(3));
  EXPECT_EQ(network.npus(), 64);
  EXPECT_EQ(network.dimensions[0].shape, BlockShape::kRing);
  EXPECT_EQ(network.dimensions[1].shape, BlockShape::kFullyConnected);
  EXPECT_EQ(network.dimensions[2].shape, BlockShape::kSwitch);
  EXPECT_EQ(network.dimensions[0].npus, 4);
  // 50 * 2^30 / 1e9.
  EXPECT_DOUBLE_EQ(network.dimensions[0].bytes_per_ns, 53.6870912);
  EXPECT_DOUBLE_EQ(network.dimensions[1].latency_ns, 33.3);
}

TEST(NetworkConfigTest, BandwidthUnitMayBeDecimal) {
  ASSERT_OK_AND_ASSIGN(const NetworkConfig decimal,
                       ParseNetworkConfig(std::string(kGood) + "bandwidth_unit: GB\n", "n.yml"));
  EXPECT_DOUBLE_EQ(decimal.dimensions[0].bytes_per_ns, 50);
  ASSERT_OK_AND_ASSIGN(const NetworkConfig binary,
                       ParseNetworkConfig(std::string(kGood) + "bandwidth_unit: GiB\n", "n.yml"));
  EXPECT_DOUBLE_EQ(binary.dimensions[0].bytes_per_ns, 53.6870912);
}

TEST(NetworkConfigTest, KnowsMeshesAndTori) {
  ASSERT_OK_AND_ASSIGN(
      const NetworkConfig network,
      ParseNetworkConfig(Replaced("Ring, FullyConnected", "Torus, Mesh"), "n.yml"));
  EXPECT_EQ(network.dimensions[0].shape, BlockShape::kRing);
  EXPECT_EQ(network.dimensions[1].shape, BlockShape::kMesh);
}

TEST(NetworkConfigTest, NamesTheKeyAtFault) {
  const struct {
    std::string yaml;
    std::string message;
  } cases[] = {
      {Replaced("[ 4, 2, 8 ]", "4"), "n.yml: npus_count: expected a list"},
      {Replaced("[ 50.0, 25, 12.5 ]", "50.0"), "n.yml: bandwidth: expected a list"},
      {Replaced("[ 50.0, 25, 12.5 ]", "[ 50.0, 0, 12.5 ]"), "n.yml: bandwidth: must be positive"},
      {Replaced("[ 50.0, 25, 12.5 ]", "[ 50.0, -1, 12.5 ]"), "n.yml: bandwidth: must be positive"},
      {Replaced("[ 50.0, 25, 12.5 ]", "[ 50.0, .nan, 12.5 ]"), "n.yml: bandwidth: "},
      {Replaced("[ 50.0, 25, 12.5 ]", "[ 50.0, 25 ]"), "n.yml: bandwidth: has 2 entries"},
      {Replaced("[ 50.0, 25, 12.5 ]", "[ 50.0, [ 1 ], 2 ]"), "n.yml: bandwidth: has an entry"},
      {Replaced("[ 500, 33.3, 0 ]", "[ 500, -1, 0 ]"), "n.yml: latency: must be from 0"},
      {Replaced("[ 500, 33.3, 0 ]", "[ 500, fast, 0 ]"), "n.yml: latency: \"fast\" is no number"},
      {Replaced("[ 4, 2, 8 ]", "[ 4, 1, 8 ]"), "n.yml: npus_count: 1 in a dimension"},
      {Replaced("[ 4, 2, 8 ]", "[ 4, 2.5, 8 ]"), "n.yml: npus_count: \"2.5\" is no number"},
      {Replaced("[ 4, 2, 8 ]", "[ 4000, 4000, 4000 ]"), "n.yml: npus_count: more than 1048576"},
      {Replaced("FullyConnected", "KingMesh"), "n.yml: topology: unknown shape \"KingMesh\""},
      {Replaced("topology", "topologies"), "n.yml: topology: missing"},
      {std::string(kGood) + "bandwidth_unit: Gb\n", "n.yml: bandwidth_unit: expected GB"},
      {std::string(kGood) + "latency: [ 1, 1, 1 ]\n", "n.yml: latency occurs twice"},
      {std::string(kGood) + "something_else: 8\n", "n.yml: something_else occurs twice"},
      {"just text", "n.yml: no network"},
      {"", "n.yml: no network"},
      {"topology: [ Ring\nnpus", "n.yml:"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ParseNetworkConfig(test.yaml, "n.yml"),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.message)))
        << test.yaml;
  }
}

TEST(NetworkConfigTest, HostileTextIsAnError) {
  EXPECT_THAT(ParseNetworkConfig(std::string(2000, '['), "n.yml"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseNetworkConfig(std::string(2 << 20, 'x'), "n.yml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too long")));
  EXPECT_THAT(ParseNetworkConfig(std::string("\0\xff\x1b[2J: [", 9), "n.yml"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(NetworkConfigTest, DamagedTextIsAnErrorOrANetwork) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const absl::StatusOr<NetworkConfig> network =
        ParseNetworkConfig(Damage(kGood, random), "n.yml");
    if (!network.ok()) continue;
    EXPECT_OK(CheckNetworkConfig(*network));
  }
}

}  // namespace
}  // namespace meridian
