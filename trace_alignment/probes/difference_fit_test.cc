#include "trace_alignment/probes/probe_solver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

using Link = DifferenceLink;

// What is left of the equations of each node but the first, over what the links pull at it.
double WorstImbalance(const std::vector<Link>& links, const std::vector<double>& differences,
                      const std::vector<double>& values) {
  std::vector<double> sums(values.size()), pulls(values.size());
  for (size_t i = 0; i < links.size(); ++i) {
    const auto& [src, dst, weight] = links[i];
    const double pull = weight * (differences[i] - (values[dst] - values[src]));
    sums[dst] += pull;
    sums[src] -= pull;
    for (const int node : {src, dst}) pulls[node] += weight * (1 + std::abs(values[node]));
  }
  double worst = 0;
  for (size_t i = 1; i < sums.size(); ++i) worst = std::max(worst, std::abs(sums[i] / pulls[i]));
  return worst;
}

TEST(DifferenceFitTest, SharesWhatALoopIsMissingByWeight) {
  // 30 are missing around the loop and go as 1/weight: 12, 12 and 6.
  const std::vector<Link> links = {{0, 1, 1}, {1, 2, 1}, {0, 2, 2}};
  EXPECT_THAT(FitDifferences(links, 3, {100, 100, 230}),
              ElementsAre(0, DoubleNear(112, 1e-9), DoubleNear(224, 1e-9)));
  EXPECT_THAT(FitDifferences(links, 3, {0, 0, 0}), ElementsAre(0, 0, 0));
}

TEST(DifferenceFitTest, SolvesLargeTreesAndRings) {
  // Every node but the first has a parent: all the same one, one for two, any earlier one, or the
  // one before.
  std::mt19937_64 random(5);
  const std::vector<std::function<int(int)>> parents = {
      [](int) { return 0; }, [](int node) { return node / 2; },
      [&](int node) { return static_cast<int>(random() % node); },
      [](int node) { return node - 1; }};
  for (const int nodes : {100, 10'000}) {
    std::vector<Link> links;
    std::vector<double> differences;
    for (size_t kind = 0; kind < parents.size(); ++kind) {
      links.clear();
      differences.clear();
      for (int i = 1; i < nodes; ++i) {
        links.push_back({i, parents[kind](i), 1.0 + i % 5});
        differences.push_back(i % 13);
      }
      const std::vector<double> values = FitDifferences(links, nodes, differences);
      EXPECT_LE(WorstImbalance(links, differences, values), 1e-12) << kind;
    }
    // The last tree and a link back make a ring.
    links.push_back({0, nodes - 1, 1});
    differences.push_back(7);
    const std::vector<double> values = FitDifferences(links, nodes, differences);
    EXPECT_LE(WorstImbalance(links, differences, values), 1e-12);
  }
}

// Every node with four others; weights as far apart as bounds of 100 ns and 100 ms make them.
TEST(DifferenceFitTest, SolvesWhateverTheWeights) {
  std::mt19937_64 random(5);
  for (const double largest_exponent : {0.0, 3.0, 12.0}) {
    for (const int nodes : {500, 4'000}) {
      std::vector<Link> links;
      std::vector<double> differences;
      std::uniform_real_distribution<double> exponent(0, largest_exponent);
      for (int i = 1; i < nodes; ++i) {
        for (int k = 0; k < 4; ++k) {
          const int other = static_cast<int>(random() % i);
          links.push_back({other, i, std::pow(10.0, exponent(random))});
          differences.push_back(static_cast<double>(random() % 1000));
        }
      }
      const std::vector<double> values = FitDifferences(links, nodes, differences);
      EXPECT_LE(WorstImbalance(links, differences, values), 1e-9);
    }
  }
}

}  // namespace
}  // namespace meridian
