#include "xla_profiler/xplane/clock_domain.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(ClockDomainTest, DomainIsDecidedPerLine) {
  EXPECT_EQ(ClockDomainOf("/device:GPU:3", "Stream #7"), ClockDomain::kTracer);
  EXPECT_EQ(ClockDomainOf("/host:CPU", "Host Threads/1234"), ClockDomain::kTracer);
  EXPECT_EQ(ClockDomainOf("/host:CPU", "python3"), ClockDomain::kHost);
  EXPECT_EQ(ClockDomainOf("/device:TPU:0", "XLA Ops"), ClockDomain::kHost);
  EXPECT_EQ(ClockDomainOf("/device:CUSTOM:Megascale Trace", "x"), ClockDomain::kHost);
}

}  // namespace
}  // namespace meridian
