// The engine in a program of others, as docs/network_timing.md shows it, by the public target alone.
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// What the page shows begins here.
#include "astra_bridge/prediction/prediction_run.h"

absl::StatusOr<double> SecondsOfTwo(const std::string& network, meridian::CommEdge edge) {
  meridian::TimingConfig config;
  config.topologies[""].network = network;
  auto setup = meridian::SetUpTiming(meridian::FileSystem::Posix(), config);
  if (!setup.ok()) return setup.status();
  absl::StatusOr<double> alone = setup->timing(edge);
  if (!alone.ok()) return alone.status();
  meridian::CommEdgeList edges;
  edges.edges = {edge, edge};
  auto together = meridian::PredictEdges(*setup, edges, meridian::TimingMode::kSnapshot,
                                         [](uint64_t /*edges_timed*/) {});
  if (!together.ok()) return together.status();
  return together->edges(1).seconds() - *alone;
}
// It ends here.

namespace {

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

// The second of two messages of 1 MiB on a link of 50 GB/s waits 19531 ns for the first.
TEST(NetworkTimingTest, AProgramOfOthersTimesEdges) {
  const std::string network = ::testing::TempDir() + "/full.yml";
  std::ofstream(network) << "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\n"
                            "bandwidth: [ 50 ]\nlatency: [ 500 ]\n";
  meridian::CommEdge edge;
  edge.kind = meridian::CollectiveKind::kPointToPoint;
  edge.bytes = 1 << 20;
  edge.participants = {0, 1};
  const absl::StatusOr<double> waited = SecondsOfTwo(network, edge);
  ASSERT_TRUE(waited.ok()) << waited.status();
  EXPECT_NEAR(*waited, 19531e-9, 1e-12);
  edge.participants = {0, 9};
  EXPECT_THAT(SecondsOfTwo(network, edge).status().ToString(), ::testing::HasSubstr("device 9"));
}

TEST(NetworkTimingTest, ThePageShowsThisProgram) {
  EXPECT_EQ(Between(ReadText("docs/network_timing.md"), "```cpp\n", "```"),
            Between(ReadText("integration/network_timing_test.cc"), "begins here.\n",
                    "// It ends here."));
}

}  // namespace
