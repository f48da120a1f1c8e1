#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/measurements/call_traces.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Callsites = std::map<int64_t, Callsite>;

TEST(CallTracesTest, ReadsBothForms) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<TracedCall> first,
      ParseCallTrace("printed by the program\n"
                     "TRACE 0 -> 1 1672852472724046.0 MPI_Allreduce coll 0xc4000009 8 to 0 1 \n"
                     "TRACE 34 -> 35 614.0 MPI_Alltoallv coll 0xc4000009 12 to 0>4<4 1>8<0 \n"
                     "TRACE 13 -> 14 19.0 MPI_Sendrecv p2p 8 to 1:2\n"
                     "TRACE 61 -> 62 7.0 MPI_Comm_free \n",
                     "a.trace"));
  ASSERT_THAT(first, SizeIs(4));
  EXPECT_THAT(first[1].members, ElementsAre(0, 1));
  EXPECT_EQ(first[1].bytes, 12);
  EXPECT_EQ(first[2].peer, 2);
  EXPECT_EQ(first[3].operation, "MPI_Comm_free");
  EXPECT_FALSE(first[3].bytes.has_value());
  ASSERT_OK_AND_ASSIGN(
      const std::vector<TracedCall> second,
      ParseCallTrace("callsite,op,dur_us,sendSize_B,dest_group,dest_global,region\n"
                     "1,MPI_Isend,12.000000,4,1,1,main.exchange\n"
                     "2,MPI_Test,5.000000,0,-1,-1,main.exchange\n",
                     "b.csv"));
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_EQ(second[0].bytes, 4);
  EXPECT_EQ(second[1].source, 1);
  EXPECT_EQ(second[1].us, 5);
  EXPECT_FALSE(second[1].bytes.has_value());
}

TEST(CallTracesTest, MistakesAreNamedWithTheirLine) {
  const std::string good = "TRACE 1 -> 2 5.0 MPI_Barrier coll 0x44 0 to 0 1 \n";
  for (const std::string bad :
       {"TRACE 1 -> 2", "TRACE 1 -> x 5.0 MPI_Barrier", "TRACE 1 -> 2 nan MPI_Barrier",
        "TRACE 1 -> 2 5.0 MPI_Send p2p -8 to 1:2", "TRACE 1 -> 2 5.0 MPI_Send p2p 8 to 1",
        "TRACE 1 -> 2 5.0 MPI_Barrier coll 0x44 0 to 0 y", "TRACE 1 -> 2 5.0 Barrier"}) {
    EXPECT_THAT(ParseCallTrace(absl::StrCat(good, bad, "\n"), "a.trace").status().message(),
                HasSubstr("a.trace:2: '"))
        << bad;
  }
  EXPECT_FALSE(ParseCallTrace("nothing\n", "a.trace").ok());
}

constexpr char kTable[] =
    "@--- Callsites: 1 ---\n"
    " ID TmpID HashID Lev File/Address  Line Parent_Funct MPI_Call\n"
    "  1   4 137   0 SpParMat.cpp   795 combblas::SpParMat<long, bool>::getncol() const Allreduce\n"
    "  1   4 137   1 0x5555 main \n";

TEST(CallTracesTest, CallsitesAreFoundInTables) {
  ASSERT_OK_AND_ASSIGN(const Callsites sites, ParseCallsites(kTable, "a.mpiP"));
  // By the number that traces have.
  ASSERT_THAT(sites, SizeIs(1));
  EXPECT_EQ(sites.at(4).operation, "Allreduce");
  EXPECT_FALSE(sites.at(4).us.has_value());
  ASSERT_OK_AND_ASSIGN(
      const Callsites stock,
      ParseCallsites("---\n@--- Callsites: 4 ---\n---\n"
                     " ID Lev File/Address             Line Parent_Funct       MPI_Call\n"
                     "  1   0 mpistubs.c               1172 hypre_MPI_Allreduce Allreduce\n"
                     "  1   1 timing.c                  338 hypre_PrintTiming\n"
                     "@--- Aggregate Time ---\n Allreduce 1 2 3\n",
                     "b.mpiP"));
  ASSERT_THAT(stock, SizeIs(1));
  EXPECT_EQ(stock.at(1).operation, "Allreduce");
  EXPECT_THAT(ParseCallsites("hello", "c").status().message(), HasSubstr("no table"));
}

TEST(CallTracesTest, TracesAndTablesMustBelongTogether) {
  ASSERT_OK_AND_ASSIGN(const Callsites sites, ParseCallsites(kTable, "a.mpiP"));
  ASSERT_OK_AND_ASSIGN(std::vector<TracedCall> calls,
                       ParseCallTrace("TRACE 3 -> 4 5.0 MPI_Allreduce coll 0x4 8 to 0 1\n", "a"));
  EXPECT_OK(AddCallTimes(sites, "a", &calls));
  EXPECT_FALSE(calls[0].call_us.has_value());
  calls[0].operation = "MPI_Bcast";
  EXPECT_THAT(AddCallTimes(sites, "a", &calls).message(), HasSubstr("is MPI_Bcast in the trace"));
  calls[0].destination = 5;
  EXPECT_THAT(AddCallTimes(sites, "a", &calls).message(),
              HasSubstr("a: callsite 5 of the trace is not in the table"));
}

TEST(CallTracesTest, WhatTheProgramPrintedFirstIsPassedOver) {
  constexpr char kText[] = "starting\n\nTRACE 1 -> 2 5.0 MPI_Barrier\n";
  EXPECT_TRUE(IsCallTrace(kText));
  ASSERT_OK_AND_ASSIGN(const std::vector<TracedCall> calls, ParseCallTrace(kText, "a"));
  EXPECT_THAT(calls, SizeIs(1));
}

TEST(CallTracesTest, TimesOfCallsAreFoundInReports) {
  const std::string head =
      absl::StrCat(kTable, "@--- Callsite Time statistics (all, milliseconds): 2 ---\n---\n",
                   "Name Site Rank Count Max Mean Min App% MPI%\n");
  ASSERT_OK_AND_ASSIGN(
      const Callsites sites,
      ParseCallsites(absl::StrCat(head, "Allreduce 1 0 9 0.2 0.1 0.05 1 2\n",
                                  "Allreduce 1 * 9 0.2 0.125 0 1 2\n@--- Other ---\nx\n"),
                     "a"));
  EXPECT_EQ(sites.at(4).us, 125);
  ASSERT_OK_AND_ASSIGN(std::vector<TracedCall> calls,
                       ParseCallTrace("TRACE 3 -> 4 500.0 MPI_Allreduce coll 0x4 8 to 0\n", "a"));
  EXPECT_OK(AddCallTimes(sites, "a", &calls));
  EXPECT_EQ(calls[0].call_us, 125);
  EXPECT_THAT(ParseCallsites(absl::StrCat(head, "Bcast 7 * x\n"), "a").status().message(),
              HasSubstr("a:8: this is no row of the statistics"));
}

TEST(CallTracesTest, TablesThatAreCutShortAreRefused) {
  EXPECT_THAT(ParseCallsites("@--- Callsites:\n", "a").status().message(),
              HasSubstr("a:1: the number of callsites is no number"));
  EXPECT_THAT(
      ParseCallsites("@--- Callsites: 1 ---\n ID Lev File/Address Line Parent_Funct MPI_Call\n"
                     " 1 0 Allreduce\n",
                     "a")
          .status()
          .message(),
      HasSubstr("a:3: this is no row"));
}

}  // namespace
}  // namespace meridian
