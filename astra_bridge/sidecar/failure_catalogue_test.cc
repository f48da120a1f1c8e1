#include "astra_bridge/sidecar/failure_catalogue.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using End = ChildProcessResult::End;
using ::testing::AllOf;
using ::testing::HasSubstr;

ChildProcessResult Exited(int code) {
  ChildProcessResult end;
  end.exit_code = code;
  return end;
}

ChildProcessResult Ended(End how, int signal = 0) {
  ChildProcessResult end;
  end.end = how;
  end.signal = signal;
  return end;
}

// The output of a run in which ranks 0 to finished-1 have finished.
AstraOutput Output(int ranks, int finished, const std::string& more = "") {
  AstraOutput output(ranks);
  for (int rank = 0; rank < finished; ++rank) {
    output.Append(absl::StrCat("[x] [workload] [info] sys[", rank,
                               "] finished, 7 cycles, exposed communication 7 cycles.\n"));
  }
  output.Append(more);
  return output;
}

absl::Status Check(const ChildProcessResult& end, const AstraOutput& output) {
  return CheckAstraRun(end, output, absl::Seconds(90));
}

TEST(FailureCatalogueTest, AllRanksFinishedIsGoodHoweverItEnded) {
  EXPECT_OK(Check(Exited(0), Output(2, 2)));
  EXPECT_EQ(EndAfterFinish(Exited(0)), "");
  EXPECT_OK(Check(Ended(End::kSignaled, SIGABRT), Output(2, 2)));
  EXPECT_EQ(EndAfterFinish(Ended(End::kSignaled, SIGABRT)),
            "crashed (signal 6) after all ranks had finished");
  EXPECT_OK(Check(Exited(139), Output(2, 2)));
  EXPECT_EQ(EndAfterFinish(Exited(139)), "crashed (signal 11) after all ranks had finished");
  EXPECT_OK(Check(Ended(End::kTimedOut), Output(2, 2)));
  EXPECT_EQ(EndAfterFinish(Ended(End::kTimedOut)), "did not end after all ranks had finished");
}

TEST(FailureCatalogueTest, ExitZeroWithRanksMissingIsAFailure) {
  EXPECT_THAT(
      Check(Exited(0),
            Output(4, 1, "[critical] !!!Hardware Resource sys.id=1 has unreleased nodes!!!\n")),
      StatusIs(absl::StatusCode::kAborted,
               AllOf(HasSubstr("1 of 4 ranks finished, not 1, 2, 3"),
                     HasSubstr("ranks wait for each other"), HasSubstr("unreleased nodes"))));
}

TEST(FailureCatalogueTest, ManyMissingRanksAreShortened) {
  EXPECT_THAT(Check(Exited(0), Output(100, 0)),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("0 of 100 ranks finished, not 0, 1, 2, 3, 4, 5, 6, 7, ...")));
}

TEST(FailureCatalogueTest, ARefusedConfigurationIsTheUsers) {
  EXPECT_THAT(Check(Exited(255), Output(2, 0, "[Error] (network/analytical) bad topology\n")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bad topology")));
}

TEST(FailureCatalogueTest, EachEndHasItsLikelyCause) {
  EXPECT_THAT(Check(Exited(1), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("an algorithm it does not know")));
  EXPECT_THAT(Check(Ended(End::kSignaled, SIGABRT), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("crashed (signal 6)"), HasSubstr("impossible peer"))));
  EXPECT_THAT(Check(Exited(134), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("crashed (signal 6)")));
  EXPECT_THAT(Check(Ended(End::kSignaled, SIGFPE), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("preferred-dataset-splits")));
  EXPECT_THAT(Check(Ended(End::kSignaled, SIGSEGV), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("doubleBinaryTree")));
  EXPECT_THAT(Check(Ended(End::kSignaled, SIGKILL), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("lack of memory")));
  EXPECT_THAT(Check(Exited(17), Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("exited with 17")));
}

TEST(FailureCatalogueTest, TimeAndOutputHaveLimits) {
  EXPECT_THAT(Check(Ended(End::kTimedOut), Output(2, 1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("after 1m30s"), HasSubstr("1 of 2 ranks finished, not 1"))));
  EXPECT_THAT(Check(Ended(End::kWroteTooMuch), Output(2, 1)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("wrote without end")));
}

TEST(FailureCatalogueTest, OutputOfAnotherRunIsNotBelieved) {
  EXPECT_THAT(Check(Exited(0), Output(2, 3)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("makes no sense")));
}

TEST(FailureCatalogueTest, TheErrorStreamSpeaksWhenTheOutputDoesNot) {
  ChildProcessResult end = Exited(2);
  end.error_tail = "first\nerror while loading shared libraries: libyaml\n";
  EXPECT_THAT(Check(end, Output(2, 0)),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("it said: error while loading shared libraries: libyaml")));
}

}  // namespace
}  // namespace meridian
