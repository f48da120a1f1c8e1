#include "astra_bridge/engine/send_matcher.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

TEST(SendMatcherTest, ReceivesAreServedInOrder) {
  SendMatcher matcher;
  const SendKey key = {0, 1, 7, 64};
  EXPECT_FALSE(matcher.Receive(key, 10));
  EXPECT_FALSE(matcher.Receive(key, 11));
  EXPECT_EQ(matcher.Arrive(key), 10u);
  EXPECT_EQ(matcher.Arrive(key), 11u);
  EXPECT_EQ(matcher.Arrive(key), std::nullopt);
  EXPECT_TRUE(matcher.Receive(key, 12));
  EXPECT_FALSE(matcher.Receive(key, 13));
}

TEST(SendMatcherTest, EveryPartOfTheKeyCounts) {
  SendMatcher matcher;
  EXPECT_FALSE(matcher.Receive({0, 1, 7, 64}, 10));
  EXPECT_EQ(matcher.Arrive({2, 1, 7, 64}), std::nullopt);
  EXPECT_EQ(matcher.Arrive({0, 2, 7, 64}), std::nullopt);
  EXPECT_EQ(matcher.Arrive({0, 1, 8, 64}), std::nullopt);
  EXPECT_EQ(matcher.Arrive({0, 1, 7, 65}), std::nullopt);
  EXPECT_EQ(matcher.Arrive({0, 1, 7, 64}), 10u);
}

TEST(SendMatcherTest, TellsWhatWaitsAndWhatCameInstead) {
  SendMatcher matcher;
  EXPECT_THAT(matcher.WaitingReceives(), IsEmpty());
  matcher.Receive({0, 1, 7, 64}, 10);
  ASSERT_THAT(matcher.WaitingReceives(), SizeIs(1));
  EXPECT_EQ(matcher.WaitingReceives()[0].key.source, 0);
  EXPECT_EQ(matcher.WaitingReceives()[0].node, 10u);
  EXPECT_EQ(matcher.WaitingReceives()[0].other_bytes, std::nullopt);
  matcher.Arrive({0, 1, 7, 32});
  EXPECT_THAT(matcher.WaitingReceives()[0].other_bytes, Optional(32));
}

}  // namespace
}  // namespace meridian
