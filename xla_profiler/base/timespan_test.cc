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

TEST(TimespanTest, TouchingSpansOverlapForNoTime) {
  EXPECT_TRUE(Timespan(0, 10).Overlaps(Timespan(10, 5)));
  EXPECT_EQ(Timespan(0, 10).OverlappedDurationPs(Timespan(10, 5)), 0);
  EXPECT_EQ(Timespan(0, 10).OverlappedDurationPs(Timespan(7, 5)), 3);
  EXPECT_EQ(Timespan(0, 10).OverlappedDurationPs(Timespan(11, 5)), 0);
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
  EXPECT_FALSE(span.Instant());
  EXPECT_TRUE(Timespan::FromEndPoints(3, 3).Instant());
}

TEST(TimespanTest, ExpandToIncludeCoversBoth) {
  Timespan span(5, 1);
  span.ExpandToInclude(Timespan(1, 2));
  EXPECT_EQ(span, Timespan(1, 5));
}

TEST(TimespanTest, HugeSpansAreCutRatherThanOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Timespan(10, kMax).end_ps(), kMax);
  EXPECT_EQ(Timespan::FromEndPoints(std::numeric_limits<int64_t>::min(), kMax).duration_ps(), kMax);
}

}  // namespace
}  // namespace meridian
