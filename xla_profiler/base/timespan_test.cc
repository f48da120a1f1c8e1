#include "xla_profiler/base/timespan.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(TimespanTest, EndPointsBelongToTheSpan) {
  const Timespan span(10, 5);
  EXPECT_TRUE(span.Includes(10));
  EXPECT_TRUE(span.Includes(15));
  EXPECT_FALSE(span.Includes(16));
  EXPECT_TRUE(span.Includes(Timespan(15, 0)));
  EXPECT_FALSE(span.Includes(Timespan(14, 2)));
}

TEST(TimespanTest, ParentSortsBeforeItsFirstChild) {
  EXPECT_LT(Timespan(0, 10), Timespan(0, 3));
  EXPECT_LT(Timespan(0, 3), Timespan(1, 100));
  EXPECT_FALSE(Timespan(2, 2) < Timespan(2, 2));
}

TEST(TimespanTest, FromEndPointsKeepsBothEnds) {
  const Timespan span = Timespan::FromEndPoints(-7, 3);
  EXPECT_EQ(span.begin_ps(), -7);
  EXPECT_EQ(span.end_ps(), 3);
  EXPECT_EQ(Timespan::FromEndPoints(3, 3), Timespan(3, 0));
}

TEST(TimespanTest, HugeSpansAreCutRatherThanOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Timespan(10, kMax).end_ps(), kMax);
  EXPECT_EQ(Timespan::FromEndPoints(std::numeric_limits<int64_t>::min(), kMax).duration_ps(), kMax);
}

}  // namespace
}  // namespace meridian
