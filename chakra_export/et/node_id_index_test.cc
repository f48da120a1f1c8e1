#include "chakra_export/et/node_id_index.h"

#include <limits>
#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeIdIndex IndexOf(const std::vector<uint64_t>& ids) {
  NodeIdIndex index;
  for (const uint64_t id : ids) index.Add(id);
  return index;
}

TEST(NodeIdIndexTest, FindsIdsThatCountUp) {
  NodeIdIndex index = IndexOf({7, 8, 9});
  EXPECT_EQ(index.Find(8), 1);
  EXPECT_EQ(index.Find(6), std::nullopt);
  EXPECT_EQ(index.Find(10), std::nullopt);
  EXPECT_THAT(index.repeated(), IsEmpty());
}

TEST(NodeIdIndexTest, FindsIdsWithGapsAndOutOfOrder) {
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  NodeIdIndex gaps = IndexOf({0, 5, kLast});
  EXPECT_EQ(gaps.Find(5), 1);
  EXPECT_EQ(gaps.Find(kLast), 2);
  EXPECT_EQ(gaps.Find(1), std::nullopt);
  NodeIdIndex unordered = IndexOf({5, 0, kLast, 3});
  EXPECT_EQ(unordered.Find(0), 1);
  EXPECT_EQ(unordered.Find(3), 3);
  unordered.Add(4);
  EXPECT_EQ(unordered.Find(4), 4);
}

TEST(NodeIdIndexTest, NamesRepeatedIds) {
  NodeIdIndex index = IndexOf({1, 2, 1, 3, 2, 1});
  EXPECT_THAT(index.repeated(), ElementsAre(2, 4, 5));
  EXPECT_EQ(index.Find(1), 0);
  EXPECT_EQ(index.Find(2), 1);
}

TEST(NodeIdIndexTest, AgreesWithAMap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    NodeIdIndex index;
    std::map<uint64_t, size_t> first;
    const bool ordered = round % 2 == 0;
    uint64_t id = 0;
    for (size_t i = 0; i < 20; ++i) {
      id = ordered ? id + 1 + random() % 3 : random() % 30;
      index.Add(id);
      first.emplace(id, i);
    }
    for (uint64_t wanted = 0; wanted < 64; ++wanted) {
      const auto it = first.find(wanted);
      EXPECT_EQ(index.Find(wanted),
                it == first.end() ? std::nullopt : std::optional<size_t>(it->second));
    }
  }
}

}  // namespace
}  // namespace meridian
