#include "report/bounded_steps.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RunReport WithSteps(int64_t count) {
  RunReport report;
  report.mutable_run()->set_steps(count);
  for (int64_t step = 0; step < count; ++step) {
    report.add_steps()->set_step(10 + step);
    report.add_path()->set_step(10 + step);
    report.add_blame()->set_step(10 + step);
    report.mutable_combine()->add_step_waits()->set_step(10 + step);
    report.mutable_simulation()->add_steps()->set_step(10 + step);
    report.mutable_comparison()->add_before_steps_ns(static_cast<double>(step));
  }
  // What is outside of the steps.
  report.add_path();
  return report;
}

TEST(BoundedStepsTest, FewStepsStay) {
  RunReport report = WithSteps(1000);
  BoundSteps(&report);
  EXPECT_THAT(report.steps(), SizeIs(1000));
  EXPECT_FALSE(report.run().has_reported_steps());
  EXPECT_THAT(report.notes(), IsEmpty());
}

TEST(BoundedStepsTest, OfManySomeStayWithWhatFindingsPointAt) {
  RunReport report = WithSteps(20'000);
  report.add_findings()->set_step(10 + 7);
  BoundSteps(&report);
  EXPECT_EQ(report.run().steps(), 20'000);
  EXPECT_EQ(report.run().reported_steps(), 1001);
  ASSERT_THAT(report.steps(), SizeIs(1001));
  EXPECT_EQ(report.steps(0).step(), 10);
  EXPECT_EQ(report.steps(1).step(), 10 + 7);
  EXPECT_EQ(report.steps(2).step(), 10 + 19'999 / 999);
  EXPECT_EQ(report.steps(1000).step(), 10 + 19'999);
  EXPECT_THAT(report.path(), SizeIs(1002));
  EXPECT_THAT(report.blame(), SizeIs(1001));
  EXPECT_THAT(report.combine().step_waits(), SizeIs(1001));
  EXPECT_THAT(report.simulation().steps(), SizeIs(1001));
  EXPECT_THAT(report.comparison().before_steps_ns(), SizeIs(1000));
  EXPECT_THAT(report.notes(),
              ElementsAre("of 20,000 steps this report shows 1,001, evenly spaced "
                          "and those that findings point at; findings rest on all"));
  BoundSteps(&report);
  EXPECT_THAT(report.steps(), SizeIs(1001));
  EXPECT_THAT(report.notes(), SizeIs(1));
}

}  // namespace
}  // namespace meridian
