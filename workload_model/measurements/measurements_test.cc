#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/measurements/rank_classes.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(MeasurementsTest, NamesTellTheCell) {
  ASSERT_OK_AND_ASSIGN(const RunName published,
                       ReadRunName("x_9/bfs_exectrace_16-32-2-20-3.txt", ""));
  EXPECT_EQ(published.cell.machines, 16);
  EXPECT_EQ(published.cell.kind.threads, 2);
  EXPECT_EQ(published.cell.kind.ranks_per_machine, 2);
  EXPECT_EQ(published.cell.size, 20);
  EXPECT_EQ(published.rank, 3);
  EXPECT_EQ(published.run, "x_9/bfs_exectrace_16-32-2-20-*.txt");
  ASSERT_OK_AND_ASSIGN(const RunName own,
                       ReadRunName("runs/n8_s1.5.trace", R"(n(?P<nodes>\d+)_s(?P<size>[\d.]+)\.)"));
  EXPECT_EQ(own.cell.size, 1.5);
  EXPECT_EQ(own.cell.kind.threads, 1);
  EXPECT_EQ(own.rank, 0);
  // As A-mpiP names its files.
  ASSERT_OK_AND_ASSIGN(const RunName numbered,
                       ReadRunName("n4_s2/n9_s20.trace_7", "n(?P<nodes>\\d+)_s(?P<size>\\d+)"));
  EXPECT_EQ(numbered.cell.machines, 9);
  EXPECT_EQ(numbered.rank, 7);
  EXPECT_EQ(numbered.run, "n4_s2/n9_s20.trace_*");
  EXPECT_THAT(ReadRunName("a.trace", "").status().message(), HasSubstr("--name_pattern"));
  EXPECT_THAT(ReadRunName("a.trace", "(").status().message(), HasSubstr("--name_pattern: "));
  EXPECT_THAT(ReadRunName("a.trace", "a").status().message(), HasSubstr("groups called nodes"));
  EXPECT_FALSE(ReadRunName("n0_s1", "n(?P<nodes>\\d+)_s(?P<size>\\d+)").ok());
}

// Three runs of one cell: the wild one moves nothing.
TEST(MeasurementsTest, RunsOfACellAreTakenTogether) {
  std::vector<RunMeasurements> runs(3);
  runs[0].times[{1, 2}] = {100, 10, 10};
  runs[1].times[{1, 2}] = {120, 12, 12};
  runs[2].times[{1, 2}] = {9000, 900, 900, 900};
  const Measurements together = Aggregate(runs);
  ASSERT_THAT(together.cells, SizeIs(1));
  const CellValue& value = together.times.at({1, 2}).begin()->second;
  EXPECT_EQ(value.count, 3);
  EXPECT_EQ(value.first, 120);
  EXPECT_EQ(value.steady, 12);
  EXPECT_EQ(value.Sum(), 120 + 2 * 12);
}

// Two ranks that do different things: the cell's total is what a rank takes, not what both do.
TEST(MeasurementsTest, WhatSomeRanksDoNotDoCountsForTheOthers) {
  std::vector<RunMeasurements> runs(2);
  runs[0].times[{1, 2}] = {200};
  runs[1].times[{1, 3}] = {200};
  const Measurements together = Aggregate(runs);
  EXPECT_EQ(together.times.at({1, 2}).begin()->second.count, 0.5);
  EXPECT_EQ(together.times.at({1, 2}).begin()->second.Sum(), 100);
}

TEST(MeasurementsTest, ModelsAreNoMeasurements) {
  EXPECT_THAT(ParseMeasurements("1 2 1 EXPONENTIAL 1 2 3 4\n", "m", RunName()).status().message(),
              HasSubstr("not measured values"));
  EXPECT_THAT(ParseMeasurements("1 2 4 TRACE 1\n", "m", RunName()).status().message(),
              HasSubstr("values of 4 threads"));
  EXPECT_THAT(ParseMeasurements("1 2 1 TRACE -1\n", "m", RunName()).status().message(),
              HasSubstr("negative value"));
  EXPECT_THAT(ParseMeasurements("hello\n", "m", RunName()).status().message(),
              HasSubstr("m: is neither"));
  EXPECT_THAT(ParseMeasurements("1 2 1 TRACE 1e300\n", "m", RunName()).status().message(),
              HasSubstr("more than any time"));
  ASSERT_OK_AND_ASSIGN(const RunMeasurements stepped,
                       ParseMeasurements("TRACE 1 -> 2 -5.0 MPI_Barrier\n", "m", RunName()));
  EXPECT_THAT(Aggregate({stepped}).notes, ElementsAre(HasSubstr("some times are negative")));
  // From callsite 0 is a time since 1970.
  ASSERT_OK_AND_ASSIGN(
      const RunMeasurements run,
      ParseMeasurements("0 1 1 TRACE 1672852472724046\n1 2 1 TRACE 5\n", "m", RunName()));
  EXPECT_THAT(run.times, SizeIs(1));
}

TEST(RankClassesTest, RanksThatCallOtherwiseAreAClass) {
  std::vector<RunMeasurements> runs;
  for (int64_t rank = 0; rank < 4; ++rank) {
    RunName name;
    name.cell.machines = 4;
    name.rank = rank;
    std::vector<TracedCall> calls(2);
    calls[0].destination = 1;
    calls[1].source = 1;
    calls[1].destination = rank == 0 ? 3 : 2;
    runs.push_back(*MeasureCalls(calls, "a", name));
  }
  std::vector<std::string> notes;
  EXPECT_EQ(ClassifyRanks(&runs, &notes), "first");
  EXPECT_EQ(runs[0].cell.kind.rank_class, "first");
  EXPECT_EQ(runs[3].cell.kind.rank_class, "others");
  EXPECT_THAT(notes, SizeIs(0));
  // Ranks 0 and 1 alike, 2 and 3 not.
  runs[1].calls[1].destination = 3;
  EXPECT_EQ(ClassifyRanks(&runs, &notes), std::nullopt);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("ranks of one run make different calls")));
  EXPECT_EQ(RankClassOf("diagonal", 4, 9), "diagonal");
  EXPECT_EQ(RankClassOf("diagonal", 4, 8), std::nullopt);
  EXPECT_EQ(RankClassOf("ends", 7, 8), "last");
}

}  // namespace
}  // namespace meridian
