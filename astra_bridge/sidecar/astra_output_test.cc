#include "astra_bridge/sidecar/astra_output.h"

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(AstraOutputTest, ReadsFinishTimesHoweverTheTextIsCut) {
  const std::string text = kTwoRanks;
  for (size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    AstraOutput output(2);
    for (size_t i = 0; i < text.size(); i += piece) output.Append(text.substr(i, piece));
    EXPECT_THAT(output.finish_ns(), ElementsAre(40062, 20031));
    EXPECT_EQ(output.finished_ranks(), 2);
    EXPECT_THAT(output.complaints(), IsEmpty());
    EXPECT_OK(output.status());
  }
}

TEST(AstraOutputTest, HalfALineIsNone) {
  const std::string text = FinishLine(0, "123456");
  AstraOutput output(1);
  output.Append(text.substr(0, text.find("456")));
  EXPECT_EQ(output.finished_ranks(), 0);
  AstraOutput cut(1);
  cut.Append(text.substr(0, text.find("456")) + "\n");
  EXPECT_EQ(cut.finished_ranks(), 0);
}

TEST(AstraOutputTest, OtherTextIsNoFinish) {
  AstraOutput output(2);
  output.Append("sys[0] finished, 5 cycles, exposed communication 5 cycles.\n");
  output.Append("[x] sys[-1] finished, 5 cycles, exposed communication 5 cycles.\n");
  output.Append(FinishLine(0, "-5"));
  output.Append(FinishLine(0, "99999999999999999999"));
  output.Append(std::string(1000, '\0') + "\xFF\n\n\n");
  EXPECT_EQ(output.finished_ranks(), 0);
  EXPECT_OK(output.status());
}

TEST(AstraOutputTest, AVeryLongLineIsSkippedNotKept) {
  AstraOutput output(1);
  for (int i = 0; i < 1000; ++i) output.Append(std::string(1000, 'x'));
  output.Append(FinishLine(0, "7"));
  EXPECT_EQ(output.finished_ranks(), 0);
  output.Append(FinishLine(0, "8"));
  EXPECT_THAT(output.finish_ns(), ElementsAre(8));
}

TEST(AstraOutputTest, WhatContradictsItselfIsNotBelieved) {
  AstraOutput twice(2);
  twice.Append(FinishLine(1, "7") + FinishLine(1, "7"));
  EXPECT_OK(twice.status());
  EXPECT_EQ(twice.finished_ranks(), 1);
  twice.Append(FinishLine(1, "8"));
  EXPECT_THAT(twice.status(),
              StatusIs(absl::StatusCode::kAborted, "rank 1 finished twice, at 7 and 8"));
  AstraOutput foreign(2);
  foreign.Append(FinishLine(2, "7"));
  EXPECT_THAT(foreign.status(),
              StatusIs(absl::StatusCode::kAborted, "rank 2 finished, but there are 2 ranks"));
}

TEST(AstraOutputTest, KeepsTheFirstComplaintsForPeople) {
  AstraOutput output(1);
  output.Append("[x] [system] [critical] !!!Hardware Resource sys.id=0 has unreleased nodes!!!\n");
  for (int i = 0; i < 100; ++i)
    output.Append("[Error] (network) \x1B[2J" + std::string(500, 'y') + "\n");
  EXPECT_EQ(output.complaints().size(), 2u);
  EXPECT_THAT(output.complaints()[0], HasSubstr("unreleased nodes"));
  EXPECT_THAT(output.complaints()[1], HasSubstr("[Error] (network) ?[2J"));
  EXPECT_LT(output.complaints()[1].size(), 300u);
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
                     HasSubstr("ranks wait for each other"), HasSubstr("of tensor_size 0"),
                     HasSubstr("unreleased nodes"))));
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
