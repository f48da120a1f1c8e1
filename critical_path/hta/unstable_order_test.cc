#include "critical_path/hta/unstable_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> Keys(const std::vector<int64_t>& keys, const std::vector<uint32_t>& order) {
  std::vector<int64_t> sorted;
  for (uint32_t i : order) sorted.push_back(keys[i]);
  return sorted;
}

TEST(UnstableOrderTest, SixteenEqualKeysStayInOrder) {
  EXPECT_THAT(UnstableOrder({}), IsEmpty());
  std::vector<uint32_t> expected(16);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(UnstableOrder(std::vector<int64_t>(16)), expected);
}

TEST(UnstableOrderTest, SeventeenEqualKeysAreParted) {
  // By hand: entries 8 (the pivot) and 15 change places, then 1 and 14, 2 and 13, ..., 6 and 9,
  // and 7 with what is at 8 now, which is 15; at last 8 and 15 change back, with 7 in between.
  EXPECT_THAT(UnstableOrder(std::vector<int64_t>(17)),
              ElementsAre(0, 14, 13, 12, 11, 10, 9, 15, 8, 6, 5, 4, 3, 2, 1, 7, 16));
}

TEST(UnstableOrderTest, SortsAnything) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> keys(random() % 2000);
    const int distinct = 1 + static_cast<int>(random() % 50);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % distinct) - 20;
    const std::vector<uint32_t> order = UnstableOrder(keys);
    std::vector<bool> seen(keys.size());
    for (uint32_t i : order) seen[i] = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
    const std::vector<int64_t> sorted = Keys(keys, order);
    EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  }
}

TEST(UnstableOrderTest, SortsWhatQuicksortIsBadAt) {
  // Keys that rise and fall: the middle is the greatest, so that parts are small and the heap has
  // to help.
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 10000; ++i) keys.push_back(i);
  for (int64_t i = 10000; i > 0; --i) keys.push_back(i);
  const std::vector<int64_t> sorted = Keys(keys, UnstableOrder(keys));
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

}  // namespace
}  // namespace meridian
