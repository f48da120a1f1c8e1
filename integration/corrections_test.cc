// The same workload with the same corrections, simulated as a whole (astra_simulate) and predicted
// with transfers that share the network (astra_predict). Where none meet, both give the same times,
// to the nanosecond that one of them rounds; where they do, nearly.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::ALL_GATHER;
using ::ChakraProtoMsg::ALL_REDUCE;
using ::ChakraProtoMsg::Node;

constexpr int64_t kMiB = 1 << 20;

constexpr char kRing[] =
    "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
constexpr char kMesh[] =
    "topology: [ Mesh, Mesh ]\nnpus_count: [ 2, 2 ]\nbandwidth: [ 50, 50 ]\n"
    "latency: [ 500, 500 ]\n";

// Reductions cost nothing.
constexpr char kSystem[] = R"({
  "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
  "local-mem-bw": 1000000000000000,
  "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
  "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"]})";

constexpr char kCorrections[] = R"({
  "all-reduce": [{"bytes": 1048576, "ratio": 2}],
  "p2p": [{"bytes": 1048576, "ratio": 2}]})";

// Returns the node on a stream of its own, so that it may overlap with others.
Node OnStream(Node node) {
  ChakraProtoMsg::AttributeProto* stream = node.add_attr();
  stream->set_name("stream");
  stream->set_int64_val(static_cast<int64_t>(node.id()));
  return node;
}

struct Reports {
  SimulationReport simulated;
  PredictionReport predicted;
};

class CorrectionsTest : public ::testing::Test {
 protected:
  CorrectionsTest() {
    // Nothing of the machine's own is found or changed.
    setenv("HOME", directory_.PathOf("home").c_str(), 1);
    unsetenv("XDG_CACHE_HOME");
    directory_.Write("system.json", kSystem);
    directory_.Write("corrections.json", kCorrections);
    directory_.Write("w.comm_groups.json",
                     R"({"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]})");
  }

  // Ranks that are not given compute for 1 us.
  Reports RunBoth(const std::string& network, std::vector<std::vector<Node>> ranks,
                  double off_ns = 1) {
    directory_.Write("network.yml", network);
    ranks.resize(4, {CompNode(1, 1)});
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      directory_.Write(absl::StrCat("w.", rank, ".et"), EncodeEt(ranks[rank]));
    }
    const std::string prefix = directory_.PathOf("w");
    Reports reports;
    RunTool("tools/astra_simulate", {"--workload=" + prefix, "--comm_streams=2", "--node_times"},
            &reports.simulated);
    RunTool("tools/astra_predict", {"--et=" + prefix, "--mode=snapshot"}, &reports.predicted);
    EXPECT_NEAR(reports.simulated.makespan_ns(), reports.predicted.iteration_ns(), off_ns);
    return reports;
  }

  void RunTool(const std::string& command, std::vector<std::string> arguments,
               google::protobuf::Message* report) {
    for (const std::string& argument :
         {absl::StrCat("--network=", directory_.PathOf("network.yml")),
          absl::StrCat("--system=", directory_.PathOf("system.json")),
          absl::StrCat("--comm_groups=", directory_.PathOf("w.comm_groups.json")),
          absl::StrCat("--corrections=", directory_.PathOf("corrections.json")),
          std::string("--json")}) {
      arguments.push_back(argument);
    }
    const CommandResult result = RunCommandLine(command, arguments);
    ASSERT_EQ(result.exit_code, 0) << result.standard_error;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, report).ok());
  }

  const TemporaryDirectory directory_;
};

// Six messages of 256 KiB, 500 + 4882.8 cut off each, and 10 before, between and after them:
// 32,362. Then twice that.
TEST_F(CorrectionsTest, ACollectiveAlone) {
  const std::vector<Node> rank = {CompNode(1, 3), CollectiveNode(2, ALL_REDUCE, kMiB, {1}),
                                  CompNode(3, 2, {2})};
  const Reports reports = RunBoth(kRing, {rank, rank, rank, rank});
  EXPECT_EQ(reports.simulated.makespan_ns(), 3000 + 64724 + 2000);
}

// Two by two along one dimension, then along the other. Each all-reduce is two messages of 512 KiB,
// 500 + 9765.6 cut off each, and three times 10: 20,560. Twice that is 41,120; both one after the
// other.
TEST_F(CorrectionsTest, GroupsSideBySideOnLinksOfTheirOwn) {
  std::vector<std::vector<Node>> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back({CollectiveNode(1, ALL_REDUCE, kMiB, {}, rank < 2 ? "1" : "2"),
                     CollectiveNode(2, ALL_REDUCE, kMiB, {1}, rank % 2 == 0 ? "3" : "4")});
  }
  const Reports reports = RunBoth(kMesh, ranks);
  EXPECT_EQ(reports.simulated.makespan_ns(), 2 * 41120);
}

// Two messages of 1 MiB over one link. Engine: 500 + 19531 = 20,031 for the first, and the second
// waits the 19,531 that the link is busy. Alone either lasts twice as long, 40,062, and so does
// what the other waits for it: the second lasts 40062 + 2 x 19531 = 79,124. Predicted, the first
// moves more bytes, so that it lasts 500 + 39,562, and the second waits for all but the latency.
TEST_F(CorrectionsTest, OneMessageBehindAnother) {
  const Reports reports =
      RunBoth(kRing,
              {{OnStream(SendNode(1, 0, 1, kMiB, 1)), OnStream(SendNode(2, 0, 1, kMiB, 2))},
               {OnStream(RecvNode(1, 0, 1, kMiB, 1)), OnStream(RecvNode(2, 0, 1, kMiB, 2))}},
              /*off_ns=*/501);
  EXPECT_EQ(reports.simulated.makespan_ns(), 79124);
  EXPECT_EQ(reports.simulated.nodes(0).finish_ns(), 40062);
  EXPECT_EQ(reports.simulated.nodes(1).finish_ns(), 79124);
  ASSERT_EQ(reports.predicted.edges_size(), 2);
  EXPECT_NEAR(reports.predicted.edges(0).seconds(), 40062e-9, 1e-9);
  EXPECT_NEAR(reports.predicted.edges(1).seconds(), 79624e-9, 1e-9);
  EXPECT_NEAR(reports.predicted.edges(1).isolated_seconds(), 40062e-9, 1e-12);
}

// Two all-reduces of all ranks at once: neither gets a link to itself, and together they take twice
// the time.
TEST_F(CorrectionsTest, CollectivesThatShareLinks) {
  const std::vector<Node> rank = {OnStream(CollectiveNode(1, ALL_REDUCE, 16 * kMiB)),
                                  OnStream(CollectiveNode(2, ALL_REDUCE, 16 * kMiB))};
  const Reports reports = RunBoth(kRing, {rank, rank, rank, rank}, /*off_ns=*/10'000);
  ASSERT_EQ(reports.predicted.edges_size(), 2);
  const double alone_ns = reports.predicted.edges(0).isolated_seconds() * 1e9;
  const double together_ns = static_cast<double>(reports.simulated.makespan_ns());
  EXPECT_GT(together_ns, 1.9 * alone_ns);
  EXPECT_LE(together_ns, 2 * alone_ns);
}

// All-gathers have no corrections here. One beside an all-reduce on other links, then one alone.
TEST_F(CorrectionsTest, AKindWithoutCorrectionsKeepsTheEnginesTime) {
  const std::vector<Node> first = {CollectiveNode(1, ALL_REDUCE, kMiB, {}, "1"),
                                   CollectiveNode(2, ALL_GATHER, kMiB, {1}, "1")};
  const std::vector<Node> second = {CollectiveNode(1, ALL_GATHER, kMiB, {}, "2")};
  // A message of 1 MiB: 10 + 500 + 19531, and 10 at the end.
  const Reports reports = RunBoth(kMesh, {first, first, second, second});
  EXPECT_EQ(reports.simulated.makespan_ns(), 41120 + 20051);
  EXPECT_EQ(reports.simulated.npus(2).finish_ns(), 20051);
}

// A pipeline of two stages, the ranks of each side by side, on links of their own.
TEST_F(CorrectionsTest, MessagesBetweenCollectives) {
  std::vector<std::vector<Node>> ranks(4);
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = {CompNode(1, 5), CollectiveNode(2, ALL_REDUCE, kMiB, {1}, "1"),
                   SendNode(3, rank, rank + 2, 2 * kMiB, 0, {2})};
    ranks[rank + 2] = {RecvNode(1, rank, rank + 2, 2 * kMiB, 0), CompNode(2, 7, {1}),
                       CollectiveNode(3, ALL_REDUCE, kMiB, {2}, "2")};
  }
  // 500 + 39062 for the message, then twice that.
  const Reports reports = RunBoth(kMesh, ranks);
  EXPECT_EQ(reports.simulated.makespan_ns(), 5000 + 41120 + 79124 + 7000 + 41120);
}

}  // namespace
}  // namespace meridian
