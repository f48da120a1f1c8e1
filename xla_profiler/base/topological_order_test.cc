#include "xla_profiler/base/topological_order.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// By node: where the edges that leave it lead.
using Successors = std::vector<std::vector<uint32_t>>;

std::vector<uint32_t> Order(const Successors& successors, std::vector<uint32_t> nodes,
                            std::vector<uint32_t>* waiting, bool in_chains = false) {
  waiting->assign(successors.size(), 0);
  for (const std::vector<uint32_t>& heads : successors) {
    for (const uint32_t head : heads) ++(*waiting)[head];
  }
  const auto visit_heads = [&](uint32_t node, const auto& visit) {
    for (const uint32_t head : successors[node]) visit(head);
  };
  return in_chains ? TopologicalChains(std::move(nodes), waiting, visit_heads)
                   : TopologicalOrder(std::move(nodes), waiting, visit_heads);
}

TEST(TopologicalOrderTest, GenerationsFollowTheOrderOfTheFirst) {
  //   3 -> 1 -> 0
  //   2 -> 4
  std::vector<uint32_t> waiting;
  EXPECT_THAT(Order({{}, {0}, {4}, {1}, {}}, {0, 1, 2, 3, 4}, &waiting),
              ElementsAre(2, 3, 4, 1, 0));
  EXPECT_THAT(Order({{}, {0}, {4}, {1}, {}}, {4, 3, 2, 1, 0}, &waiting),
              ElementsAre(3, 2, 1, 4, 0));
  EXPECT_THAT(waiting, ElementsAre(0, 0, 0, 0, 0));
}

TEST(TopologicalOrderTest, ChainsStandTogether) {
  //   3 -> 1 -> 0
  //   2 -> 4 -> 0
  std::vector<uint32_t> waiting;
  EXPECT_THAT(Order({{}, {0}, {4}, {1}, {0}}, {0, 1, 2, 3, 4}, &waiting, /*in_chains=*/true),
              ElementsAre(2, 4, 3, 1, 0));
}

TEST(TopologicalOrderTest, NodesOnACycleOrBehindOneHaveNoPlace) {
  //   0 -> 1 -> 2 -> 1, 2 -> 3
  for (const bool in_chains : {false, true}) {
    std::vector<uint32_t> waiting;
    EXPECT_THAT(Order({{1}, {2}, {1, 3}, {}}, {0, 1, 2, 3}, &waiting, in_chains), ElementsAre(0));
    EXPECT_THAT(waiting, ElementsAre(0, 1, 1, 1));
  }
}

}  // namespace
}  // namespace meridian
