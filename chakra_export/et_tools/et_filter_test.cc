#include "chakra_export/et_tools/et_rewrite.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

EtFilterOptions Keeping(std::set<uint64_t> ids) {
  EtFilterOptions options;
  options.keep = [ids](const Node& node) { return ids.count(node.id()) > 0; };
  return options;
}

// Filters rank 0 and returns its nodes.
absl::StatusOr<std::vector<Node>> Filter(const std::vector<Node>& nodes,
                                         const EtFilterOptions& options,
                                         ChakraRewriteReport* counts = nullptr) {
  const TemporaryDirectory directory;
  ASSIGN_OR_RETURN(const ChakraRewriteReport counted,
                   FilterEtFiles(FileSystem::Posix(), WriteWorkload(directory, "a", {nodes}),
                                 options, directory.PathOf("b")));
  if (counts != nullptr) *counts = counted;
  return ReadNodes(directory.PathOf("b.0.et"));
}

TEST(EtFilterTest, DependenciesReachOverWhatIsRemoved) {
  // 1 -> 2 -> 3 -> 4, and 5 -> 3.
  ChakraRewriteReport counts;
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> nodes,
                       Filter({CompNode(1, 1), CompNode(2, 1, {1}), CompNode(3, 1, {2, 5}),
                               CompNode(4, 1, {3}), CompNode(5, 1)},
                              Keeping({1, 4, 5}), &counts));
  ASSERT_EQ(nodes.size(), 3);
  EXPECT_EQ(nodes[1].id(), 4);
  EXPECT_THAT(nodes[1].data_deps(), ElementsAre(1, 5));
  EXPECT_EQ(counts.nodes(), 3);
  EXPECT_EQ(counts.removed_nodes(), 2);
  EXPECT_EQ(counts.removed_dependencies(), 0);
}

TEST(EtFilterTest, KindsOfDependenciesStay) {
  Node node = CompNode(3, 1, {1, 2});
  node.add_ctrl_deps(2);
  SetStringAttribute(kDependencyKindsAttribute, "s,l", node.mutable_attr());
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> nodes,
                       Filter({CompNode(1, 1), CompNode(2, 1, {1}), node}, Keeping({1, 3})));
  EXPECT_THAT(nodes[1].data_deps(), ElementsAre(1));
  EXPECT_THAT(nodes[1].ctrl_deps(), ElementsAre(1));
  EXPECT_EQ(FindAttribute(nodes[1].attr(), "dep_kinds")->string_val(), "sl");

  ASSERT_OK_AND_ASSIGN(const std::vector<Node> alone,
                       Filter({CompNode(1, 1), CompNode(2, 1, {1}), node}, Keeping({3})));
  EXPECT_EQ(FindAttribute(alone[0].attr(), "dep_kinds"), nullptr);
}

TEST(EtFilterTest, DanglingDependenciesGo) {
  ChakraRewriteReport counts;
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Node> nodes,
      Filter({CompNode(1, 1, {9}), CompNode(2, 1, {1, 8})}, Keeping({2}), &counts));
  EXPECT_THAT(nodes[0].data_deps(), ElementsAre());
  EXPECT_EQ(counts.removed_dependencies(), 2);
}

TEST(EtFilterTest, KeepingAllChangesNothing) {
  const TemporaryDirectory directory;
  EtFilterOptions options;
  options.keep = [](const Node&) { return true; };
  ASSERT_OK(FilterEtFiles(FileSystem::Posix(), WriteWorkload(directory, "a", TrainingStep()),
                          options, directory.PathOf("b")));
  EXPECT_EQ(directory.Read("b.1.et"), directory.Read("a.1.et"));
}

TEST(EtFilterTest, RemovedCyclesAndRepeatedIdsAreErrorsAndNothingIsWritten) {
  const TemporaryDirectory directory;
  const EtFiles cycle =
      WriteWorkload(directory, "a", {{CompNode(1, 1)}, {CompNode(1, 1, {2}), CompNode(2, 1, {1})}});
  EXPECT_THAT(FilterEtFiles(FileSystem::Posix(), cycle, Keeping({}), directory.PathOf("b")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.1.et: offset 8: node 1 waits for itself")));
  const EtFiles twice =
      WriteWorkload(directory, "a", {{CompNode(1, 1)}, {CompNode(1, 1), CompNode(1, 1)}});
  EXPECT_THAT(FilterEtFiles(FileSystem::Posix(), twice, Keeping({}), directory.PathOf("b")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.1.et: offset 35: node id 1 occurs twice")));
  EXPECT_THAT(directory.List(), ElementsAre("a.0.et", "a.1.et"));
}

TEST(EtFilterTest, MatchingNothingIsAnErrorAndNothingIsWritten) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", {{CompNode(1, 1)}, {CompNode(2, 1)}});
  directory.Write("b.5.et", "earlier");
  EXPECT_THAT(FilterEtFiles(FileSystem::Posix(), files, Keeping({7}), directory.PathOf("b")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing matched")));
  EXPECT_THAT(directory.List(), UnorderedElementsAre("a.0.et", "a.1.et", "b.5.et"));
  ASSERT_OK_AND_ASSIGN(
      const ChakraRewriteReport result,
      FilterEtFiles(FileSystem::Posix(), files, Keeping({2}), directory.PathOf("b")));
  EXPECT_THAT(result.empty_ranks(), ElementsAre(0));
  EXPECT_THAT(result.removed(), ElementsAre(directory.PathOf("b.5.et")));
}

TEST(EtFilterTest, GroupsAreWrittenBesideTheTraces) {
  const TemporaryDirectory directory;
  EtFilterOptions options = Keeping({1});
  options.groups = {{"4", {0, 1}}};
  ASSERT_OK_AND_ASSIGN(
      const ChakraRewriteReport result,
      FilterEtFiles(FileSystem::Posix(), WriteWorkload(directory, "a", {{CompNode(1, 1)}}), options,
                    directory.PathOf("b")));
  EXPECT_EQ(result.comm_groups(), directory.PathOf("b.comm_groups.json"));
  EXPECT_EQ(directory.Read("b.comm_groups.json"), "{\n  \"4\": [0, 1]\n}\n");
}

TEST(EtFilterTest, AChainOfRemovedNodesIsNoProblem) {
  constexpr uint64_t kNodes = 50000;
  std::vector<Node> nodes = {CompNode(1, 1)};
  for (uint64_t id = 2; id <= kNodes; ++id) nodes.push_back(CompNode(id, 1, {id - 1}));
  // Last first, so that none is resolved when it is met.
  std::reverse(nodes.begin(), nodes.end());
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> kept, Filter(nodes, Keeping({1, kNodes})));
  ASSERT_EQ(kept.size(), 2);
  EXPECT_THAT(kept[0].data_deps(), ElementsAre(1));
}

// Which kept nodes each kept node waits for, over any number of edges.
std::map<uint64_t, std::set<uint64_t>> OrderOfKept(const std::vector<Node>& nodes,
                                                   const std::set<uint64_t>& kept) {
  std::map<uint64_t, std::set<uint64_t>> before;
  // Dependencies have smaller ids and come first.
  for (const Node& node : nodes) {
    for (const uint64_t dep : node.data_deps()) {
      before[node.id()].insert(dep);
      before[node.id()].insert(before[dep].begin(), before[dep].end());
    }
  }
  std::map<uint64_t, std::set<uint64_t>> order;
  for (const uint64_t id : kept) {
    for (const uint64_t earlier : before[id]) {
      if (kept.count(earlier) > 0) order[id].insert(earlier);
    }
  }
  return order;
}

// 2,000 nodes wait for one that waits for 2,000: without it, four million dependencies.
TEST(EtFilterTest, AFilteredTraceIsNotMuchLargerThanTheTrace) {
  const auto hub = [](uint64_t around) {
    std::vector<Node> nodes;
    std::vector<uint64_t> before;
    for (uint64_t id = 1; id <= around; ++id) {
      nodes.push_back(CompNode(id, 1));
      before.push_back(id);
    }
    nodes.push_back(CompNode(around + 1, 1, before));
    for (uint64_t id = around + 2; id < 2 * around + 2; ++id) {
      nodes.push_back(CompNode(id, 1, {around + 1}));
    }
    return nodes;
  };
  const auto without = [](uint64_t removed) {
    EtFilterOptions options;
    options.keep = [removed](const Node& node) { return node.id() != removed; };
    return options;
  };
  EXPECT_THAT(Filter(hub(2'000), without(2'001)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("over 1064000 dependencies"), HasSubstr("a.0.et"))));
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> nodes, Filter(hub(500), without(501)));
  EXPECT_EQ(nodes.back().data_deps_size(), 500);
}

TEST(EtFilterTest, TheOrderOfWhatIsKeptStays) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    std::vector<Node> nodes;
    std::set<uint64_t> kept;
    for (uint64_t id = 1; id <= 12; ++id) {
      EtIds deps;
      for (uint64_t dep = 1; dep < id; ++dep) {
        if (random() % 4 == 0) deps.push_back(dep);
      }
      nodes.push_back(CompNode(id, 1, deps));
      if (random() % 2 == 0) kept.insert(id);
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Node> filtered, Filter(nodes, Keeping(kept)));
    EXPECT_EQ(OrderOfKept(filtered, kept), OrderOfKept(nodes, kept));
  }
}

}  // namespace
}  // namespace meridian
