#include "xla_profiler/base/errors.h"

#include <cerrno>
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

TEST(ExitCodeTest, IsZeroWhenDone) { EXPECT_EQ(ExitCode(absl::OkStatus()), 0); }

TEST(ExitCodeTest, IsTwoWhenTheUserHasToAct) {
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCode(absl::NotFoundError("")), 2);
  EXPECT_EQ(ExitCode(absl::AlreadyExistsError("")), 2);
  EXPECT_EQ(ExitCode(absl::OutOfRangeError("")), 2);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("")), 2);
  EXPECT_EQ(ExitCode(absl::UnimplementedError("")), 2);
  EXPECT_EQ(ExitCode(absl::DataLossError("")), 2);
}

TEST(ExitCodeTest, IsThreeWhenTheEnvironmentFailed) {
  EXPECT_EQ(ExitCode(absl::ResourceExhaustedError("")), 3);
  EXPECT_EQ(ExitCode(absl::PermissionDeniedError("")), 3);
  EXPECT_EQ(ExitCode(absl::DeadlineExceededError("")), 3);
  EXPECT_EQ(ExitCode(absl::UnavailableError("")), 3);
  EXPECT_EQ(ExitCode(absl::UnknownError("")), 3);
  EXPECT_EQ(ExitCode(absl::InternalError("")), 3);
}

TEST(AnnotateTest, PutsTheContextInFrontAndKeepsTheCode) {
  EXPECT_THAT(Annotate(absl::DataLossError("bad checksum"), "a.pb"),
              StatusIs(absl::StatusCode::kDataLoss, "a.pb: bad checksum"));
}

TEST(AnnotateTest, TakesResults) {
  EXPECT_THAT(Annotate(absl::StatusOr<int>(NotFound("no ", 3)), "a.pb"),
              StatusIs(absl::StatusCode::kNotFound, "a.pb: no 3"));
  EXPECT_EQ(Annotate(absl::StatusOr<int>(4), "a.pb").value(), 4);
}

TEST(ErrorsTest, JoinTheirParts) {
  EXPECT_THAT(InvalidArgument("line ", 3, ": bad"),
              StatusIs(absl::StatusCode::kInvalidArgument, "line 3: bad"));
  EXPECT_THAT(FailedPrecondition("no"), StatusIs(absl::StatusCode::kFailedPrecondition, "no"));
}

TEST(AnnotateTest, LeavesOkAlone) { EXPECT_OK(Annotate(absl::OkStatus(), "a.pb")); }

TEST(ErrnoToStatusTest, SaysWhatTheSystemSays) {
  EXPECT_THAT(ErrnoToStatus(ENOSPC, "out/a.pb"),
              StatusIs(absl::StatusCode::kResourceExhausted, "out/a.pb: No space left on device"));
}

TEST(ErrnoToStatusTest, BlamesTheUserForWrongNames) {
  EXPECT_THAT(ErrnoToStatus(ENOENT, "a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ErrnoToStatus(EEXIST, "a"), StatusIs(absl::StatusCode::kAlreadyExists));
  for (int error : {EISDIR, ELOOP, ENAMETOOLONG, ENOTDIR}) {
    EXPECT_THAT(ErrnoToStatus(error, "a"), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ErrnoToStatusTest, BlamesTheEnvironmentForTheRest) {
  for (int error : {EACCES, EPERM, EROFS, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC, EIO}) {
    EXPECT_EQ(ExitCode(ErrnoToStatus(error, "a")), kExitEnvironment) << error;
  }
}

TEST(CheckTest, StopsTheProgramNamingTheCondition) {
  EXPECT_DEATH(MERIDIAN_CHECK(1 + 1 == 3), "errors_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckTest, EvaluatesTheConditionOnce) {
  int evaluations = 0;
  MERIDIAN_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

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
