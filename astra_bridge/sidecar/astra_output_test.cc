#include "astra_bridge/sidecar/astra_simulator.h"

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the congestion-aware binary prints it, in the order in which ranks finish.
constexpr char kTwoRanks[] =
    "[2026-11-15 05:00:00.001] [system] [info] Success in opening workload file\n"
    "[2026-11-15 05:00:00.123] [workload] [info] sys[1] finished, 20031 cycles, exposed "
    "communication 20031 cycles.\n"
    "[2026-11-15 05:00:00.124] [workload] [info] sys[0] finished, 40062 cycles, exposed "
    "communication 19 cycles.\n"
    "[2026-11-15 05:00:00.124] [statistics] [info] sys[0], Wall time: 40062\n"
    "[2026-11-15 05:00:00.125] [system] [warning] Exiting\n";

std::string FinishLine(int rank, const std::string& cycles) {
  return absl::StrCat("[x] [workload] [info] sys[", rank, "] finished, ", cycles,
                      " cycles, exposed communication 1 cycles.\n");
}

using End = ChildProcessResult::End;

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

absl::StatusOr<std::vector<int64_t>> Times(const ChildProcessResult& end, const std::string& output,
                                           int64_t ranks, absl::string_view errors = "") {
  return AstraFinishTimes({end, output, errors}, ranks, absl::Seconds(90));
}

// The output of a run in which ranks 0 to finished-1 have finished.
std::string Finished(int finished) {
  std::string output;
  for (int rank = 0; rank < finished; ++rank) output += FinishLine(rank, "7");
  return output;
}

TEST(AstraOutputTest, ReadsFinishTimes) {
  EXPECT_THAT(Times(Exited(0), kTwoRanks, 2), IsOkAndHolds(ElementsAre(40062, 20031)));
}

TEST(AstraOutputTest, HalfALineIsNone) {
  const std::string text = FinishLine(0, "123456");
  for (const char* end : {"", "\n"}) {
    EXPECT_THAT(Times(Exited(0), text.substr(0, text.find("456")) + end, 1),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("0 of 1 ranks finished")));
  }
}

TEST(AstraOutputTest, OtherTextIsNoFinish) {
  for (const std::string& text :
       {std::string("sys[0] finished, 5 cycles, exposed communication 5 cycles.\n"),
        std::string("[x] sys[-1] finished, 5 cycles, exposed communication 5 cycles.\n"),
        FinishLine(0, "-5"), FinishLine(0, "99999999999999999999"),
        std::string(1000, '\0') + "\xFF\n\n\n"}) {
    EXPECT_THAT(Times(Exited(0), text, 2),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("0 of 2 ranks finished")));
  }
}

TEST(AstraOutputTest, WhatContradictsItselfIsNotBelieved) {
  EXPECT_OK(Times(Exited(0), FinishLine(0, "7") + FinishLine(0, "7"), 1));
  EXPECT_THAT(Times(Exited(0), FinishLine(0, "7") + FinishLine(0, "8"), 1),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("makes no sense")));
  EXPECT_THAT(Times(Exited(0), Finished(3), 2),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("makes no sense")));
}

TEST(AstraOutputTest, KeepsTheFirstComplaintsForPeople) {
  std::string text =
      "[x] [system] [critical] !!!Hardware Resource sys.id=0 has unreleased nodes!!!\n";
  for (int i = 0; i < 100; ++i) text += "[Error] (network) \x1B[2J" + std::string(500, 'y') + "\n";
  const absl::Status status = Times(Exited(0), text, 1).status();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("unreleased nodes"), HasSubstr("[Error] (network) ?[2J")));
  EXPECT_LT(status.message().size(), 600u);
}

std::string NodeLine(const char* what, int rank, int64_t tick, uint64_t id) {
  return absl::StrCat("[x] [workload] [debug] ", what, ",sys->id=", rank, ", tick=", tick,
                      ", node->id=", id, ", node->name=a,b, node->type=7\n");
}

TEST(AstraNodeTimesTest, PairsIssueAndCallback) {
  const std::string begin = "[x] [system] [info] something else\n" + NodeLine("issue", 1, 0, 5) +
                            NodeLine("issue", 0, 3, 18446744073709551615u);
  const std::string end =
      NodeLine("callback", 0, 9, 18446744073709551615u) + NodeLine("callback", 1, 7, 5);
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeTime> nodes, ParseAstraNodeTimes({begin, end}, 2));
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].rank, 0);
  EXPECT_EQ(nodes[0].id, 18446744073709551615u);
  EXPECT_EQ(nodes[0].issue_ns, 3);
  EXPECT_EQ(nodes[0].finish_ns, 9);
  EXPECT_EQ(nodes[1].rank, 1);
  EXPECT_EQ(nodes[1].finish_ns, 7);
}

TEST(AstraNodeTimesTest, MissingLinesAreFoundOut) {
  const std::string issue = NodeLine("issue", 0, 0, 5);
  EXPECT_THAT(ParseAstraNodeTimes({issue}, 1),
              StatusIs(absl::StatusCode::kDataLoss, "node 5 of rank 0 did not finish"));
  EXPECT_THAT(ParseAstraNodeTimes({NodeLine("callback", 0, 0, 5)}, 1),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseAstraNodeTimes({issue, issue}, 1), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseAstraNodeTimes({NodeLine("issue", 1, 0, 5) + NodeLine("callback", 1, 0, 5)}, 1),
              StatusIs(absl::StatusCode::kDataLoss, "there is no rank 1"));
}

TEST(FailureCatalogueTest, AllRanksFinishedIsGoodHoweverItEnded) {
  EXPECT_OK(Times(Exited(0), Finished(2), 2));
  EXPECT_OK(Times(Ended(End::kSignaled, SIGABRT), Finished(2), 2));
  EXPECT_OK(Times(Exited(139), Finished(2), 2));
  EXPECT_OK(Times(Ended(End::kTimedOut), Finished(2), 2));
}

TEST(FailureCatalogueTest, ExitZeroWithRanksMissingIsAFailure) {
  EXPECT_THAT(
      Times(Exited(0), Finished(1), 4),
      StatusIs(absl::StatusCode::kAborted, HasSubstr("exited with 0: 1 of 4 ranks finished")));
}

TEST(FailureCatalogueTest, ARefusedConfigurationIsTheUsers) {
  EXPECT_THAT(Times(Exited(255), "[Error] (network/analytical) bad topology\n", 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bad topology")));
}

TEST(FailureCatalogueTest, ACrashHasItsSignal) {
  EXPECT_THAT(Times(Ended(End::kSignaled, SIGABRT), "", 2),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("crashed (signal 6)")));
  EXPECT_THAT(Times(Exited(17), "", 2),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("exited with 17")));
}

TEST(FailureCatalogueTest, TimeAndOutputHaveLimits) {
  EXPECT_THAT(Times(Ended(End::kTimedOut), Finished(1), 2),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("after 1m30s"), HasSubstr("1 of 2 ranks finished"))));
  EXPECT_THAT(Times(Ended(End::kWroteTooMuch), Finished(1), 2),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("wrote without end")));
}

TEST(FailureCatalogueTest, TheErrorStreamSpeaksWhenTheOutputDoesNot) {
  EXPECT_THAT(Times(Exited(2), "", 2, "first\nerror while loading shared libraries: libyaml\n"),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("it said: error while loading shared libraries: libyaml")));
}

}  // namespace
}  // namespace meridian
