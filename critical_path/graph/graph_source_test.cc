#include "critical_path/graph/graph_source.h"

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GraphSourceTest, ListsTheAnnotationsThereAre) {
  std::set<std::string> known;
  EXPECT_THAT(AnnotationNotFound("step", known),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no annotations at all")));
  known = {"forward", "backward"};
  EXPECT_THAT(AnnotationNotFound("step", known),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'step'"), HasSubstr("there are: backward, forward"),
                             Not(HasSubstr("more")))));
  for (int i = 0; i < 100; ++i) known.insert(absl::StrCat("range ", i));
  EXPECT_THAT(AnnotationNotFound("step", known),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("range 17 and 90 more")));
}

TEST(GraphSourceTest, SaysHowManyInstancesThereAre) {
  EXPECT_THAT(ChooseInstances({"step", {7, 9}}, 5),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("5 time(s)"), HasSubstr("no instance 7"))));
  ASSERT_OK_AND_ASSIGN(const NumberRange chosen, ChooseInstances({"step", {3, 9}}, 5));
  EXPECT_EQ(chosen.first, 3);
  EXPECT_EQ(chosen.last, 4);
}

// Rank 0 was recorded from step 3 on, rank 1 from step 5 on.
StepChoice TwoRanks() {
  StepChoice choice;
  for (int64_t number : {3, 4, 5, 6}) choice.Add("train", number);
  for (int64_t number : {5, 6, 7}) choice.Add("train", number);
  choice.Add("eval", 100);
  return choice;
}

TEST(StepChoiceTest, OccurrencesAreNumbersOfAnyRank) {
  const absl::StatusOr<NumberRange> steps = TwoRanks().Choose({"train", {2, 3}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->first, 5);
  EXPECT_EQ(steps->last, 6);
  EXPECT_TRUE(steps->Contains(6));
  EXPECT_FALSE(steps->Contains(7));
}

TEST(StepChoiceTest, AStepIsChosenByItsNumber) {
  const absl::StatusOr<NumberRange> steps = TwoRanks().Choose({"#100", {0, 0}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->first, 100);
}

TEST(StepChoiceTest, OccurrencesBeyondTheLastAreNone) {
  const absl::StatusOr<NumberRange> steps = TwoRanks().Choose({"train", {4, 9}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->last, 7);
  EXPECT_THAT(TwoRanks().Choose({"train", {5, 5}}).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(StepChoiceTest, WhatThereIsIsNamed) {
  const absl::Status status = TwoRanks().Choose({"epoch", {0, 0}}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there are: eval#100, train#3, train#4"));
  EXPECT_THAT(std::string(StepChoice().Choose({"x", {0, 0}}).status().message()),
              HasSubstr("no annotations at all"));
}

}  // namespace
}  // namespace meridian
