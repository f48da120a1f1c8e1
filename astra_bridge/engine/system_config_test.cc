#include "astra_bridge/engine/system_config.h"

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Kind = CollectiveAlgorithm::Kind;

constexpr char kGood[] = R"({
  "scheduling-policy": "FIFO", "endpoint-delay": 25, "active-chunks-per-dimension": 2,
  "preferred-dataset-splits": 4, "collective-optimization": "baseline", "local-mem-bw": 1600,
  "peak-perf": 2000.5, "roofline-enabled": 1, "replay-only": 0, "boost-mode": 0,
  "all-reduce-implementation": ["ring", "direct3"],
  "all-gather-implementation": ["oneDirect"], "trace-enabled": 1,
  "reduce-scatter-implementation-custom": ["et/rs"]})";

std::string With(const std::string& member) {
  return absl::StrCat(R"({"preferred-dataset-splits": 4, )", member, "}");
}

TEST(SystemConfigTest, ReadsWhatAstraSimReads) {
  ASSERT_OK_AND_ASSIGN(const SystemConfig system, ParseSystemConfig(kGood, "s.json"));
  EXPECT_EQ(system.source, "s.json");
  EXPECT_EQ(system.endpoint_delay_ns, 25);
  EXPECT_EQ(system.active_chunks_per_dimension, 2);
  EXPECT_EQ(system.preferred_dataset_splits, 4);
  EXPECT_EQ(system.collective_optimization, CollectiveOptimization::kBaseline);
  EXPECT_EQ(system.local_memory_bandwidth, 1600);
  EXPECT_EQ(system.peak_performance, 2000.5);
  EXPECT_TRUE(system.roofline_enabled);
  EXPECT_FALSE(system.replay_only);
  EXPECT_THAT(system.algorithms_of(CollectiveKind::kAllReduce),
              ElementsAre(CollectiveAlgorithm{Kind::kRing, 0, false},
                          CollectiveAlgorithm{Kind::kDirect, 3, false}));
  EXPECT_THAT(system.algorithms_of(CollectiveKind::kAllGather),
              ElementsAre(CollectiveAlgorithm{Kind::kDirect, 0, true}));
  EXPECT_THAT(system.algorithms_of(CollectiveKind::kAllToAll), IsEmpty());
  EXPECT_THAT(system.custom, ElementsAre("", "", "et/rs", ""));
}

TEST(SystemConfigTest, HasAstraSimsDefaults) {
  ASSERT_OK_AND_ASSIGN(const SystemConfig system,
                       ParseSystemConfig(R"({"preferred-dataset-splits": 1})", "s.json"));
  EXPECT_EQ(system.endpoint_delay_ns, 10);
  EXPECT_EQ(system.active_chunks_per_dimension, 1);
  EXPECT_EQ(system.local_memory_bandwidth, 0);
  EXPECT_FALSE(system.roofline_enabled);
}

TEST(SystemConfigTest, NamesTheKeyAtFault) {
  const struct {
    std::string json;
    std::string message;
  } cases[] = {
      {"{}", "s.json: preferred-dataset-splits: missing"},
      {R"({"preferred-dataset-splits": 0})", "s.json: preferred-dataset-splits: missing or 0"},
      {R"({"preferred-dataset-splits": -3})", "s.json: preferred-dataset-splits: must be"},
      {R"({"preferred-dataset-splits": 99999999999})", "s.json: preferred-dataset-splits: must"},
      {R"({"preferred-dataset-splits": "x"})", "s.json: preferred-dataset-splits: expected"},
      {With(R"("endpoint-delay": -1)"), "s.json: endpoint-delay: must be from 0"},
      {With(R"("endpoint-delay": 1.5)"), "s.json: endpoint-delay: expected a whole number"},
      {With(R"("endpoint-delay": 1, "endpoint-delay": 2)"), "s.json: endpoint-delay occurs twice"},
      {With(R"("active-chunks-per-dimension": 0)"), "s.json: active-chunks-per-dimension: must"},
      {With(R"("local-mem-bw": -5)"), "s.json: local-mem-bw: must be 0 or"},
      {With(R"("local-mem-bw": NaN)"), "s.json: local-mem-bw: must be 0 or"},
      {With(R"("peak-perf": -5)"), "s.json: peak-perf: must be"},
      {With(R"("scheduling-policy": "RANDOM")"), "s.json: scheduling-policy: expected"},
      {With(R"("collective-optimization": 7)"), "s.json: collective-optimization: expected"},
      {With(R"("roofline-enabled": "yes")"), "s.json: roofline-enabled: expected 0 or 1"},
      {With(R"("model-shared-bus": 1)"), "s.json: model-shared-bus: the shared bus"},
      {With(R"("all-reduce-implementation-custom": "x")"),
       "s.json: all-reduce-implementation-custom: expected a list of one"},
      {With(R"("all-gather-implementation-custom": ["x", "y"])"),
       "s.json: all-gather-implementation-custom: expected a list of one"},
      {With(R"("all-to-all-implementation-custom": [])"),
       "s.json: all-to-all-implementation-custom: expected a list of one"},
      {With(R"("per-node-custom-implementation": "x")"), "s.json: per-node-custom-implementation"},
      {With(R"("all-reduce-implementation": "ring")"),
       "s.json: all-reduce-implementation: expected a list"},
      {With(R"("all-reduce-implementation": ["ringo"])"),
       "s.json: all-reduce-implementation: unknown algorithm \"ringo\""},
      {With(R"("all-reduce-implementation": [7])"), "s.json: all-reduce-implementation: "},
      {With(R"("all-reduce-implementation": ["direct0"])"), "s.json: all-reduce-implementation: "},
      {"[1, 2]", "s.json: no system configuration"},
      {"", "s.json: no system configuration"},
      {R"({"preferred-dataset-splits": 4, )", "s.json:1: "},
      {R"({"preferred-dataset-splits": 4} x)", "s.json: "},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ParseSystemConfig(test.json, "s.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.message)))
        << test.json;
  }
}

TEST(RemoteMemoryTest, TextsRoundTrip) {
  for (
      const char* const text :
      {R"({"memory-type": "NO_MEMORY_EXPANSION"})",
       R"({"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 7, "remote-mem-bw": 3})",
       R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 0, )"
       R"("remote-mem-bw": 3, "num-nodes": 2, "num-npus-per-node": 4})",
       R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 7, "remote-mem-bw": 3})"}) {
    ASSERT_OK_AND_ASSIGN(const RemoteMemory memory, ParseRemoteMemory(text, "m.json"));
    EXPECT_EQ(RemoteMemoryToJson(memory), std::string(text) + "\n");
  }
}

TEST(RemoteMemoryTest, NamesTheKeyAtFault) {
  const struct {
    std::string json;
    std::string message;
  } cases[] = {
      {"[]", "m.json: no memory configuration"},
      {"{}", "m.json: memory-type: expected one of NO_MEMORY_EXPANSION, PER_NPU"},
      {R"({"memory-type": "POOL"})", "m.json: memory-type: expected one of"},
      {R"({"memory-type": "MEMORY_POOL"})", "m.json: remote-mem-bw: expected a whole number"},
      {R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 0})", "m.json: remote-mem-bw: "},
      {R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 2.5})", "m.json: remote-mem-bw: "},
      {R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 2, "remote-mem-latency": -1})",
       "m.json: remote-mem-latency: "},
      {R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 2})", "m.json: num-nodes"},
      {R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 2, "remote-mem-bw": 3})",
       "m.json: remote-mem-bw occurs twice"},
      {R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 1099511627777})",
       "m.json: remote-mem-bw: expected a whole number from 1 to 1099511627776"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ParseRemoteMemory(test.json, "m.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.message)))
        << test.json;
  }
}

TEST(RemoteMemoryTest, NotesKeysThatHaveNoMeaning) {
  ASSERT_OK_AND_ASSIGN(
      const RemoteMemory memory,
      ParseRemoteMemory(
          R"({"memory-type": "MEMORY_POOL", "remote-mem-bw": 2, "remote-mem-latncy": 9})",
          "m.json"));
  EXPECT_EQ(memory.unknown_keys,
            "m.json: remote-mem-latncy: not known and ignored; there are memory-type, "
            "remote-mem-latency, remote-mem-bw, num-nodes, num-npus-per-node");
}

TEST(SystemConfigTest, NamesOfAlgorithmsRoundTrip) {
  for (const char* const name : {"ring", "direct", "direct4", "halvingDoubling", "doubleBinaryTree",
                                 "oneRing", "oneDirect", "oneDirect2", "oneHalvingDoubling"}) {
    ASSERT_OK_AND_ASSIGN(const CollectiveAlgorithm algorithm, ParseCollectiveAlgorithm(name));
    EXPECT_EQ(CollectiveAlgorithmName(algorithm), name);
  }
  for (const char* const name : {"", "one", "Ring", "onering", "oneDoubleBinaryTree", "direct-1"}) {
    EXPECT_THAT(ParseCollectiveAlgorithm(name),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown algorithm")));
  }
}

TEST(SystemConfigTest, DamagedTextIsAnErrorOrASystem) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const absl::StatusOr<SystemConfig> system = ParseSystemConfig(Damage(kGood, random), "s.json");
    if (!system.ok()) continue;
    EXPECT_OK(CheckSystemConfig(*system));
  }
}

}  // namespace
}  // namespace meridian
