#include "astra_bridge/engine/simulation_result.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TransferLogTest, KnowsWhenEachPartWasOver) {
  TransferLog log;
  EXPECT_THAT(log.transfers(), IsEmpty());
  const size_t collective = log.Begin(100, 2);
  const size_t message = log.Begin(120, 1);
  log.EndPart(collective, 1, {7, 30, 170});
  log.EndPart(message, 0, {5, 31, 160});
  log.EndPart(collective, 0, {6, 32, 150});

  ASSERT_THAT(log.transfers(), SizeIs(2));
  const Transfer& first = log.transfers()[0];
  EXPECT_EQ(first.begin_ns, 100);
  EXPECT_EQ(first.end_ns, 170);
  ASSERT_THAT(log.parts(first), SizeIs(2));
  EXPECT_EQ(log.parts(first)[0].rank, 6);
  EXPECT_EQ(log.parts(first)[0].end_ns, 150);
  EXPECT_EQ(log.parts(first)[1].rank, 7);
  EXPECT_EQ(log.parts(first)[1].end_ns, 170);
  const Transfer& second = log.transfers()[1];
  EXPECT_EQ(second.begin_ns, 120);
  EXPECT_EQ(second.end_ns, 160);
  ASSERT_THAT(log.parts(second), SizeIs(1));
  EXPECT_EQ(log.parts(second)[0].node, 31);
}

TEST(TransferLogTest, CountsCollectivesThatAreNoTransfers) {
  TransferLog log;
  EXPECT_EQ(log.untied_collectives(), 0);
  log.CountUntied();
  log.CountUntied();
  EXPECT_EQ(log.untied_collectives(), 2);
  EXPECT_THAT(log.transfers(), IsEmpty());
}

}  // namespace
}  // namespace meridian
