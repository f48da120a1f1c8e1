#include "xla_profiler/base/errors.h"

#include <cerrno>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

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

}  // namespace
}  // namespace meridian
