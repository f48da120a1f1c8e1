#include "chakra_export/pytorch/host_device_link.h"

#include <random>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ThreadMatchTest, ThePairThatSharesMostComesFirst) {
  // b[0] has both; a[1] shares three calls with it and a[0] two, which b[1] has, too.
  const std::vector<CalledNames> a = {{1, 2}, {3, 4, 5}};
  const std::vector<CalledNames> b = {{9, 1, 2, 3, 4, 5}, {1, 7, 2}};
  const std::vector<ThreadMatch> matches = MatchThreads(a, b);
  ASSERT_EQ(matches.size(), 2);
  EXPECT_EQ(matches[0].a, 1);
  EXPECT_EQ(matches[0].b, 0);
  EXPECT_THAT(matches[0].calls, ElementsAre(Pair(0, 3), Pair(1, 4), Pair(2, 5)));
  EXPECT_EQ(matches[1].a, 0);
  EXPECT_EQ(matches[1].b, 1);
  EXPECT_THAT(matches[1].calls, ElementsAre(Pair(0, 0), Pair(1, 2)));
}

TEST(ThreadMatchTest, ThreadsThatShareNothingAreNotMatched) {
  const std::vector<CalledNames> a = {{1, 2}, {}}, b = {{3}, {}};
  EXPECT_THAT(MatchThreads(a, b), IsEmpty());
  EXPECT_THAT(MatchThreads({}, b), IsEmpty());
}

// 100 calls in a row are missing at the end and 100 others in between: more edits than are looked
// for first.
TEST(ThreadMatchTest, ThreadsThatDifferInHundredsOfCallsAreFound) {
  CalledNames a, b;
  for (uint64_t i = 0; i < 1'000; ++i) {
    if (i < 900) a.push_back(i);
    b.push_back(i >= 400 && i < 500 ? 5'000 + i : i);
  }
  const std::vector<CalledNames> threads = {{7, 8, 9}, a};
  const std::vector<ThreadMatch> matches = MatchThreads(threads, absl::MakeConstSpan(&b, 1));
  ASSERT_EQ(matches.size(), 1);
  EXPECT_EQ(matches[0].a, 1);
  EXPECT_EQ(matches[0].calls.size(), 800);
  EXPECT_EQ(matches[0].calls.back(), std::make_pair(size_t{899}, size_t{899}));
}

// A thread of N calls and N others of one call that nobody else made took the square of N.
TEST(ThreadMatchTest, ManyThreadsThatStandInNoOtherTakeAThousandStepsForEachCall) {
  const std::vector<CalledNames> a(1, CalledNames(20'000, 1));
  const std::vector<CalledNames> b(20'000, CalledNames(1, 2));
  int64_t steps = 0;
  EXPECT_THAT(MatchThreads(a, b, &steps), IsEmpty());
  constexpr int64_t kLimit = 25'000'000 + 1'000 * 2 * 20'000;
  EXPECT_GT(steps, kLimit - 100'000);
  EXPECT_LE(steps, kLimit);
}

// 16 threads of 4,000 calls each that have little in common with any of 16 others took 37 s: three
// billion steps.
TEST(ThreadMatchTest, ThreadsThatDifferEverywhereTakeAThousandStepsForEachCall) {
  std::mt19937_64 random(3);
  std::vector<CalledNames> a(16), b(16);
  for (std::vector<CalledNames>* threads : {&a, &b}) {
    for (CalledNames& names : *threads) {
      while (names.size() < 4'000) names.push_back(random() % 50);
    }
  }
  // What is the same as another's is found all the same, although it is looked at last.
  b[15] = a[15];
  b[14] = a[0];
  b[14].erase(b[14].begin() + 7);
  b[14].push_back(60);
  int64_t steps = 0;
  const std::vector<ThreadMatch> matches = MatchThreads(a, b, &steps);
  EXPECT_LE(steps, 25'000'000 + 1'000 * 2 * 16 * 4'000);
  ASSERT_GE(matches.size(), 2);
  EXPECT_EQ(matches[0].a, 15);
  EXPECT_EQ(matches[0].b, 15);
  EXPECT_EQ(matches[1].a, 0);
  EXPECT_EQ(matches[1].b, 14);
  EXPECT_EQ(matches[1].calls.size(), 3'999);
}

}  // namespace
}  // namespace meridian
