#include "xla_profiler/collectives/common_subsequence.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// The length by the textbook's table.
size_t LongestLength(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1
                                         : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  return table[a.size()][b.size()];
}

TEST(CommonSubsequenceTest, AProfileThatBeginsLaterIsShiftedNotMispaired) {
  // The second misses the first two and has one more at its end.
  EXPECT_THAT(*CommonSubsequence<uint64_t>({1, 2, 3, 1, 2, 3}, {3, 1, 2, 3, 4}),
              ElementsAre(Pair(2, 0), Pair(3, 1), Pair(4, 2), Pair(5, 3)));
}

TEST(CommonSubsequenceTest, NothingInCommon) {
  EXPECT_THAT(*CommonSubsequence<uint64_t>({}, {}), IsEmpty());
  EXPECT_THAT(*CommonSubsequence<uint64_t>({1, 2}, {}), IsEmpty());
  EXPECT_THAT(*CommonSubsequence<uint64_t>({}, {1}), IsEmpty());
  EXPECT_THAT(*CommonSubsequence<uint64_t>({1, 1}, {2, 3, 4}), IsEmpty());
}

TEST(CommonSubsequenceTest, IsCommonAscendingAndAsLongAsCanBe) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint64_t> a(random() % 12), b(random() % 12);
    for (uint64_t& x : a) x = random() % 4;
    for (uint64_t& x : b) x = random() % 4;
    const auto pairs = *CommonSubsequence(a, b);
    ASSERT_EQ(pairs.size(), LongestLength(a, b));
    for (size_t i = 0; i < pairs.size(); ++i) {
      ASSERT_EQ(a[pairs[i].first], b[pairs[i].second]);
      if (i > 0) {
        ASSERT_LT(pairs[i - 1].first, pairs[i].first);
        ASSERT_LT(pairs[i - 1].second, pairs[i].second);
      }
    }
  }
}

TEST(CommonSubsequenceTest, SequencesThatDifferTooMuchHaveNone) {
  const std::vector<uint64_t> a(kMaxSubsequenceEdits, 1), b(kMaxSubsequenceEdits, 2);
  EXPECT_EQ(CommonSubsequence(a, b), std::nullopt);
}

}  // namespace
}  // namespace meridian
