#include "astra_bridge/calibration/nccl_tests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] =
    "0: # nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5\n"
    "0: #\n"
    "0: #  Rank  0 Group  0 Pid  7 on  hostA device  0 [0x01] GPU\n"
    "0: #  Rank  1 Group  0 Pid  8 on  hostA device  1 [0x02] GPU\n"
    "0: #  Rank  2 Group  0 Pid  7 on  hostB device  0 [0x01] GPU\n"
    "0: #  Rank  3 Group  0 Pid  8 on  hostB device  1 [0x02] GPU\n"
    "0: #       size         count      type   redop    root     time   algbw   busbw #wrong\n";
constexpr char kRows[] =
    "0:   1024   256  float  sum  -1   19.5  0.00  0.00  0   19.23  0.00  0.00  0\n"
    "0:   2048   512  float  sum  -1   21.0  0.00  0.00  3   19.23  0.00  0.00  0\n"
    "0:   4096  1024  float  sum  -1   30.0  0.00  0.00  N/A 19.23  0.00  0.00  N/A\n"
    "0: # Out of bounds values : 0 OK\n";

std::string Message(const std::string& text, const std::string& path) {
  return std::string(ParseNcclTestsTable(text, path).status().message());
}

TEST(NcclTestsTest, RowsAreTransfersOfAllRanks) {
  const std::string text = absl::StrCat(kHead, kRows);
  EXPECT_TRUE(IsNcclTestsTable(text));
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run,
                       ParseNcclTestsTable(text, "logs/all_reduce_perf_n4.txt"));
  EXPECT_EQ(run.transfers.ranks, 4);
  EXPECT_EQ(run.ranks_per_node, 2);
  EXPECT_TRUE(run.across_nodes);
  ASSERT_EQ(run.transfers.samples.size(), 2u);
  EXPECT_EQ(run.transfers.samples[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(run.transfers.samples[0].bytes, 1024);
  EXPECT_EQ(run.transfers.samples[0].transfer_ns, 19500);
  EXPECT_EQ(run.transfers.samples[1].bytes, 4096);
  EXPECT_EQ(run.transfers.groups[0], (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_THAT(run.notes, ::testing::ElementsAre(HasSubstr("1 rows with wrong values")));
}

TEST(NcclTestsTest, ProgramsAreToldByTheirLineThenByTheFile) {
  const std::string named =
      absl::StrCat("# Collective test starting: all_gather_perf\n", kHead, kRows);
  ASSERT_OK_AND_ASSIGN(const CalibrationRun gather, ParseNcclTestsTable(named, "reduce_perf.txt"));
  EXPECT_EQ(gather.transfers.samples[0].kind, CollectiveKind::kAllGather);
  // The column is what a rank gets from all four.
  EXPECT_EQ(gather.transfers.samples[0].bytes, 256);
  ASSERT_OK_AND_ASSIGN(const CalibrationRun pairs,
                       ParseNcclTestsTable(absl::StrCat(kHead, kRows), "sendrecv_perf.log"));
  EXPECT_EQ(pairs.transfers.samples[0].pairs, 4);
  // The slowest pair crosses the nodes.
  EXPECT_EQ(pairs.transfers.groups[0], (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(pairs.transfers.samples[0].is_both_ways);
  ASSERT_OK_AND_ASSIGN(const CalibrationRun other,
                       ParseNcclTestsTable(absl::StrCat(kHead, kRows), "broadcast_perf.log"));
  EXPECT_EQ(other.transfers.other_kinds, 2);
  EXPECT_THAT(Message(absl::StrCat(kHead, kRows), "out.txt"), HasSubstr("name the file after it"));
}

TEST(NcclTestsTest, WhatIsCutOffIsRefusedWithItsLine) {
  const std::string cut = absl::StrCat(kHead, "0:   1024   256  float  sum  -1   19");
  EXPECT_THAT(Message(cut, "all_reduce_perf"),
              HasSubstr("all_reduce_perf, line 8: the row has 6 columns, not 13"));
  EXPECT_THAT(Message(kHead, "all_reduce_perf"), HasSubstr("is cut off"));
  EXPECT_THAT(Message(absl::StrCat(kHead, "# Out of bounds values : 0 OK\n"), "all_reduce_perf"),
              HasSubstr("no row"));
  EXPECT_THAT(Message(absl::StrCat(kHead, kRows, kHead, kRows), "all_reduce_perf"),
              HasSubstr("line 12: a second table begins here"));
  EXPECT_THAT(Message("# Rank 0 Group 1 on h\n", "x"), HasSubstr("split into several groups"));
  EXPECT_THAT(Message(absl::StrCat("# Rank 7 Group 0 on h\n", kHead, kRows), "all_reduce_perf"),
              HasSubstr("some are missing"));
  EXPECT_THAT(Message("# size count type redop root cputime algbw\n", "x"),
              HasSubstr("of the processor"));
  EXPECT_THAT(Message(kRows, "all_reduce_perf"), HasSubstr("does not list its ranks"));
  EXPECT_THAT(Message("# Rank 9999999999 on h\n", "x"), HasSubstr("does not list its ranks"));
  EXPECT_THAT(Message("# Rank 8888888 on h\n", "x"), HasSubstr("this is no rank"));
  EXPECT_THAT(Message("# Rank 0\n", "x"), HasSubstr("no host"));
  const std::string wrong = absl::StrCat(kHead, "8 2 float sum -1 nan 0 0 0 1 0 0 0\n");
  EXPECT_THAT(Message(wrong, "all_reduce_perf"), HasSubstr("is no time"));
}

}  // namespace
}  // namespace meridian
