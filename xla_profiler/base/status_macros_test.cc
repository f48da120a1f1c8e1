#include "xla_profiler/base/errors.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::Pointee;

absl::Status ReturnEarly(const absl::Status& status, bool* went_on) {
  RETURN_IF_ERROR(status);
  *went_on = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> PassOn(absl::StatusOr<std::unique_ptr<int>> value) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> result, std::move(value));
  return result;
}

TEST(ReturnIfErrorTest, ReturnsTheError) {
  bool went_on = false;
  EXPECT_THAT(ReturnEarly(absl::NotFoundError("gone"), &went_on),
              StatusIs(absl::StatusCode::kNotFound, "gone"));
  EXPECT_FALSE(went_on);
}

TEST(ReturnIfErrorTest, GoesOnWhenOk) {
  bool went_on = false;
  EXPECT_OK(ReturnEarly(absl::OkStatus(), &went_on));
  EXPECT_TRUE(went_on);
}

TEST(AssignOrReturnTest, ReturnsTheError) {
  EXPECT_THAT(PassOn(absl::NotFoundError("gone")), StatusIs(absl::StatusCode::kNotFound, "gone"));
}

TEST(AssignOrReturnTest, MovesTheValueOut) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<int> value, PassOn(std::make_unique<int>(7)));
  EXPECT_THAT(value, Pointee(7));
}

}  // namespace
}  // namespace meridian
