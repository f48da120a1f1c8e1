#include "xla_profiler/trace_json/trace_json_problems.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Optional;

TEST(TraceJsonProblemsTest, CountsAndRemembersTheFirstOfEachKind) {
  TraceJsonProblems problems;
  EXPECT_EQ(problems.total(), 0);
  EXPECT_EQ(problems.ToString(), "");
  EXPECT_EQ(problems.first_offset(TraceJsonProblem::kMalformed), std::nullopt);
  problems.Add(TraceJsonProblem::kMissingTime, 99);
  problems.Add(TraceJsonProblem::kMalformed, 17);
  problems.Add(TraceJsonProblem::kMalformed, 20);
  EXPECT_EQ(problems.total(), 3);
  EXPECT_EQ(problems.count(TraceJsonProblem::kMalformed), 2);
  EXPECT_THAT(problems.first_offset(TraceJsonProblem::kMalformed), Optional(17));
  EXPECT_EQ(problems.ToString(), "2 malformed (first at offset 17), 1 without ts (at offset 99)");
}

TEST(TraceJsonProblemsTest, EveryKindHasAText) {
  for (int i = 0; i < kNumTraceJsonProblems; ++i) {
    EXPECT_NE(TraceJsonProblemText(static_cast<TraceJsonProblem>(i)), "");
  }
}

}  // namespace
}  // namespace meridian
