#include "xla_profiler/base/testing/status_matchers.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusMatchersTest, TellOkFromErrors) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(absl::StatusOr<int>(3), IsOk());
  EXPECT_THAT(absl::NotFoundError(""), Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(absl::NotFoundError("")), Not(IsOk()));
}

TEST(StatusMatchersTest, CompareCodeAndMessage) {
  const absl::Status status = absl::NotFoundError("a.pb: gone");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "a.pb: gone"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kInternal, "a.pb: gone")));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kNotFound, "gone")));
}

TEST(StatusMatchersTest, ExplainAFailure) {
  EXPECT_NONFATAL_FAILURE(EXPECT_OK(absl::NotFoundError("gone")), "NOT_FOUND: gone");
  EXPECT_NONFATAL_FAILURE(
      EXPECT_THAT(absl::OkStatus(), StatusIs(absl::StatusCode::kInternal, HasSubstr("x"))),
      "has the code INTERNAL and a message that has substring \"x\"");
}

TEST(StatusMatchersTest, AssignOrEndTheTest) {
  ASSERT_OK_AND_ASSIGN(const int value, absl::StatusOr<int>(3));
  EXPECT_EQ(value, 3);
  EXPECT_FATAL_FAILURE(
      {
        ASSERT_OK_AND_ASSIGN(const int other, absl::StatusOr<int>(absl::NotFoundError("gone")));
        ADD_FAILURE() << "went on with " << other;
      },
      "NOT_FOUND: gone");
}

}  // namespace
}  // namespace meridian
