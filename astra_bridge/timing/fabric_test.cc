#include "astra_bridge/timing/fabric.h"

#include <string>
#include <vector>

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

constexpr char kNetwork[] =
    "topology: [ FullyConnected, Ring, Switch ]\nnpus_count: [ 4, 2, 2 ]\n"
    "bandwidth: [ 50, 25, 12 ]\nlatency: [ 500, 1000, 2000 ]\n";
constexpr char kSystem[] =
    R"({"preferred-dataset-splits": 4, "endpoint-delay": 20,
        "all-reduce-implementation": ["ring", "ring", "direct"]})";

std::vector<std::string> Algorithms(const Fabric& fabric, CollectiveKind op) {
  std::vector<std::string> names;
  for (const CollectiveAlgorithm& algorithm : fabric.system.algorithms_of(op)) {
    names.push_back(CollectiveAlgorithmName(algorithm));
  }
  return names;
}

class FabricTest : public ::testing::Test {
 protected:
  absl::StatusOr<Fabric> Read(const std::string& network, const std::string& system) {
    FabricFiles files;
    files.network = directory_.Write("network.yml", network);
    if (!system.empty()) files.system = directory_.Write("system.json", system);
    return ReadFabric(FileSystem::Posix(), files);
  }

  const TemporaryDirectory directory_;
};

TEST_F(FabricTest, WithoutASystemEachDimensionHasWhatSuitsIt) {
  ASSERT_OK_AND_ASSIGN(const Fabric fabric, Read(kNetwork, ""));
  EXPECT_EQ(fabric.network.npus(), 16);
  EXPECT_EQ(fabric.system.endpoint_delay_ns, 10);
  EXPECT_EQ(fabric.system.preferred_dataset_splits, 1);
  EXPECT_EQ(fabric.system.local_memory_bandwidth, 0);
  EXPECT_THAT(Algorithms(fabric, CollectiveKind::kAllToAll),
              ElementsAre("direct", "ring", "direct"));
}

TEST_F(FabricTest, TheSystemSaysWhatItSays) {
  ASSERT_OK_AND_ASSIGN(const Fabric fabric, Read(kNetwork, kSystem));
  EXPECT_EQ(fabric.system.endpoint_delay_ns, 20);
  EXPECT_THAT(Algorithms(fabric, CollectiveKind::kAllReduce),
              ElementsAre("ring", "ring", "direct"));
  EXPECT_THAT(Algorithms(fabric, CollectiveKind::kAllGather), ElementsAre());
}

TEST_F(FabricTest, TheHashKnowsTheFiles) {
  ASSERT_OK_AND_ASSIGN(const Fabric fabric, Read(kNetwork, kSystem));
  ASSERT_OK_AND_ASSIGN(const Fabric same, Read(kNetwork, kSystem));
  EXPECT_EQ(fabric.content_hash, same.content_hash);
  ASSERT_OK_AND_ASSIGN(const Fabric bare, Read(kNetwork, ""));
  EXPECT_NE(fabric.content_hash, bare.content_hash);
  ASSERT_OK_AND_ASSIGN(const Fabric other, Read(std::string(kNetwork) + "#", kSystem));
  EXPECT_NE(fabric.content_hash, other.content_hash);
}

TEST_F(FabricTest, ErrorsNameFileAndKey) {
  EXPECT_THAT(Read("topology: Ring\nnpus_count: 4\nbandwidth: 50\nlatency: 500\n", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("network.yml"), HasSubstr("topology"))));
  EXPECT_THAT(Read(kNetwork, R"({"preferred-dataset-splits": 0})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("system.json"), HasSubstr("preferred-dataset-splits"))));
  EXPECT_THAT(Read(kNetwork, R"({"preferred-dataset-splits": 1, "replay-only": 1})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("system.json"), HasSubstr("replay-only"))));
  EXPECT_THAT(Read(kNetwork, R"({"preferred-dataset-splits": 1,
                                 "all-reduce-implementation-custom": ["x"]})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("only astra_simulate runs custom collectives")));
  EXPECT_THAT(ReadFabric(FileSystem::Posix(), {directory_.PathOf("missing.yml"), ""}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing.yml")));
}

Fabric Numbered(uint64_t number) {
  Fabric fabric;
  fabric.content_hash = number;
  return fabric;
}

TEST(FabricSetTest, FindsByKey) {
  const FabricSet set({{"default", Numbered(1)}, {"pod", Numbered(2)}});
  ASSERT_OK_AND_ASSIGN(const Fabric* pod, set.Find("pod"));
  EXPECT_EQ(pod->content_hash, 2u);
  ASSERT_OK_AND_ASSIGN(const Fabric* unnamed, set.Find(""));
  EXPECT_EQ(unnamed->content_hash, 1u);
  EXPECT_THAT(set.Find("nvlink"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "topology_key nvlink names no topology; there are default, pod"));
}

TEST(FabricSetTest, TheOnlyOneNeedsNoKey) {
  const FabricSet set({{"pod", Numbered(2)}});
  EXPECT_OK(set.Find(""));
  EXPECT_THAT(set.Find("nvlink"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FabricSetTest, SeveralNeedADefaultForEdgesWithoutKey) {
  const FabricSet set({{"a", Numbered(1)}, {"b", Numbered(2)}});
  EXPECT_THAT(set.Find(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("no topology is called default")));
}

TEST(FabricSetTest, OneForAllTakesAnyKey) {
  const FabricSet set = FabricSet::ForAllEdges(Numbered(7));
  ASSERT_OK_AND_ASSIGN(const Fabric* fabric, set.Find("nvlink"));
  EXPECT_EQ(fabric->content_hash, 7u);
  EXPECT_OK(set.Find(""));
}

}  // namespace
}  // namespace meridian
