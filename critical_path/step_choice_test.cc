#include "critical_path/step_choice.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// Rank 0 was recorded from step 3 on, rank 1 from step 5 on.
StepChoice TwoRanks() {
  StepChoice choice;
  for (int64_t number : {3, 4, 5, 6}) choice.Add("train", number);
  for (int64_t number : {5, 6, 7}) choice.Add("train", number);
  choice.Add("eval", 100);
  return choice;
}

TEST(StepChoiceTest, OccurrencesAreNumbersOfAnyRank) {
  const absl::StatusOr<StepNumbers> steps = TwoRanks().Choose({"train", {2, 3}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->first, 5);
  EXPECT_EQ(steps->last, 6);
  EXPECT_TRUE(steps->Contains(6));
  EXPECT_FALSE(steps->Contains(7));
}

TEST(StepChoiceTest, AStepIsChosenByItsNumber) {
  const absl::StatusOr<StepNumbers> steps = TwoRanks().Choose({"#100", {0, 0}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->first, 100);
}

TEST(StepChoiceTest, OccurrencesBeyondTheLastAreNone) {
  const absl::StatusOr<StepNumbers> steps = TwoRanks().Choose({"train", {4, 9}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->last, 7);
  EXPECT_THAT(TwoRanks().Choose({"train", {5, 5}}).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(StepChoiceTest, WhatThereIsIsNamed) {
  const absl::Status status = TwoRanks().Choose({"epoch", {0, 0}}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there are: train#3, train#4"));
  EXPECT_THAT(std::string(StepChoice().Choose({"x", {0, 0}}).status().message()),
              HasSubstr("no annotations at all"));
}

}  // namespace
}  // namespace meridian
