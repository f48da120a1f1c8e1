#include "critical_path/window_choice.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WindowChoiceTest, ParsesNumbersAndRanges) {
  ASSERT_OK_AND_ASSIGN(const InstanceRange single, ParseInstanceRange("3"));
  EXPECT_EQ(single.first, 3);
  EXPECT_EQ(single.last, 3);
  ASSERT_OK_AND_ASSIGN(const InstanceRange range, ParseInstanceRange("1..4"));
  EXPECT_EQ(range.first, 1);
  EXPECT_EQ(range.last, 4);
}

TEST(WindowChoiceTest, RefusesOtherTexts) {
  for (const char* text :
       {"", "-1", "x", "1..", "..2", "2..1", "1...3", "1.5", "1..2..3", "99999999999999999999"}) {
    EXPECT_THAT(ParseInstanceRange(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("e.g. 3 or 1..4")))
        << text;
  }
}

TEST(WindowChoiceTest, ListsTheAnnotationsThereAre) {
  KnownAnnotations known;
  EXPECT_THAT(known.NotFound("step"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no annotations at all")));
  known.Add("forward");
  known.Add("backward");
  known.Add("forward");
  EXPECT_THAT(known.NotFound("step"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'step'"), HasSubstr("there are: forward, backward"),
                             Not(HasSubstr("more")))));
  for (int i = 0; i < 100; ++i) known.Add(absl::StrCat("range ", i));
  EXPECT_THAT(known.NotFound("step"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("range 9 and 90 more")));
}

TEST(WindowChoiceTest, SaysHowManyInstancesThereAre) {
  EXPECT_THAT(NoSuchInstance({"step", {7, 9}}, 5),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("5 time(s)"), HasSubstr("no instance 7"))));
}

}  // namespace
}  // namespace meridian
