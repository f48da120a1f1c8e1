#include "astra_bridge/calibration/transfers.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

constexpr int64_t kBytes = 4096;

// RunBuilder's ops move nothing.
void SetBytes(RunBuilder* run, int64_t bytes) {
  for (ProfileCollectives& profile : run->profiles()) {
    for (CollectiveOp& op : profile.ops) op.operand_bytes = bytes;
  }
}

TEST(TransferSamplesTest, WaitingIsNoTransfer) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 9'000'000});
  run.Add({op, 7, 1, 5'000'000, 9'500'000});
  run.Add({op, 7, 2, 6'000'000, 9'200'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_EQ(taken.ranks, 3);
  EXPECT_THAT(taken.groups, ElementsAre(ElementsAre(0, 1, 2)));
  ASSERT_THAT(taken.samples, SizeIs(1));
  const TransferSample& sample = taken.samples[0];
  EXPECT_EQ(sample.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(sample.bytes, kBytes);
  // Last end 9,500 ns, last start 6,000.
  EXPECT_EQ(sample.start_ns, 6000);
  EXPECT_EQ(sample.transfer_ns, 3500);
  EXPECT_EQ(sample.pairs, 0);
  EXPECT_FALSE(sample.overlapped);
}

TEST(TransferSamplesTest, APermuteIsTheMedianOfItsPairs) {
  RunBuilder run(3);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 2}, {2, 0}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 4'000'000});
  run.Add({op, 7, 1, 2'000'000, 7'000'000});
  run.Add({op, 7, 2, 1'500'000, 3'000'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_THAT(taken.groups, ElementsAre(ElementsAre(0, 1)));
  ASSERT_THAT(taken.samples, SizeIs(1));
  EXPECT_EQ(taken.samples[0].kind, CollectiveKind::kPointToPoint);
  // 0 to 1: 7,000 - 2,000; 1 to 2: 3,000 - 2,000; 2 to 0: 4,000 - 1,500.
  EXPECT_EQ(taken.samples[0].transfer_ns, 2500);
  EXPECT_EQ(taken.samples[0].pairs, 3);
}

TEST(TransferSamplesTest, WhatARankSendsToItselfIsNoPair) {
  RunBuilder run(2);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 0}, {0, 1}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 4'000'000});
  run.Add({op, 7, 1, 2'000'000, 7'000'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  ASSERT_THAT(taken.samples, SizeIs(1));
  EXPECT_EQ(taken.samples[0].pairs, 1);
  EXPECT_EQ(taken.samples[0].transfer_ns, 5000);
}

TEST(TransferSamplesTest, CollectivesThatShareARankAtATimeAreMarked) {
  RunBuilder run(4);
  const uint32_t pairs = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  const uint32_t other = run.AddOp(CollectiveKind::kAllGather, {{1, 2}});
  SetBytes(&run, kBytes);
  run.Add({pairs, 7, 0, 1'000, 9'000});
  run.Add({pairs, 7, 1, 1'000, 9'000});
  run.Add({pairs, 7, 2, 1'000, 5'000});
  run.Add({pairs, 7, 3, 1'000, 5'000});
  // Begins while rank 1 is in {0,1}, and when rank 2 is done with {2,3}.
  run.Add({other, 7, 1, 8'000, 20'000});
  run.Add({other, 7, 2, 5'000, 20'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  ASSERT_THAT(taken.samples, SizeIs(3));
  for (const TransferSample& sample : taken.samples) {
    const bool is_second_pair = taken.groups[sample.group] == std::vector<int32_t>{2, 3};
    EXPECT_EQ(sample.overlapped, !is_second_pair);
  }
}

TEST(TransferSamplesTest, CountsWhatGivesNoSample) {
  RunBuilder run(2);
  const uint32_t reduce = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t broadcast = run.AddOp(CollectiveKind::kCollectiveBroadcast, {{0, 1}});
  const uint32_t alone = run.AddOp(CollectiveKind::kAllReduce, {{0}, {1}});
  SetBytes(&run, kBytes);
  run.Add({reduce, 7, 0, 100, 200});
  run.Add({broadcast, 7, 0, 300, 400});
  run.Add({broadcast, 7, 1, 300, 400});
  run.Add({alone, 7, 0, 500, 600});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_THAT(taken.samples, IsEmpty());
  EXPECT_EQ(taken.incomplete, 1);
  EXPECT_EQ(taken.other_kinds, 1);
  EXPECT_EQ(taken.without_transfer, 1);
}

TransferSample Sample(CollectiveKind kind, int64_t bytes, uint32_t group, double transfer_ns) {
  TransferSample sample;
  sample.kind = kind;
  sample.bytes = bytes;
  sample.group = group;
  sample.transfer_ns = transfer_ns;
  return sample;
}

CalibrationRun RunOf(std::vector<TransferSample> samples) {
  CalibrationRun run;
  run.transfers.ranks = 4;
  run.transfers.groups = {{0, 1, 2, 3}, {0, 1}};
  run.transfers.samples = std::move(samples);
  return run;
}

TEST(TransferCellsTest, OneCellPerKindBytesAndGroup) {
  const std::vector<TransferCell> cells = MakeTransferCells({RunOf({
      Sample(CollectiveKind::kAllGather, 64, 0, 9),
      Sample(CollectiveKind::kAllReduce, 64, 0, 9),
      Sample(CollectiveKind::kAllReduce, 32, 0, 9),
      Sample(CollectiveKind::kAllReduce, 64, 1, 9),
  })});
  ASSERT_THAT(cells, SizeIs(4));
  EXPECT_EQ(cells[0].bytes, 32);
  EXPECT_EQ(GroupText(cells[1]), "{0,1} of 4");
  EXPECT_EQ(GroupText(cells[2]), "{0,1,2,3} of 4");
  EXPECT_EQ(cells[3].kind, CollectiveKind::kAllGather);
}

TEST(TransferCellsTest, PermutesOfOtherNumbersOfPairsAreOtherCells) {
  TransferSample one = Sample(CollectiveKind::kPointToPoint, 64, 1, 9);
  one.pairs = 1;
  TransferSample four = one;
  four.pairs = 4;
  TransferSample ring = four;
  ring.is_both_ways = true;
  const std::vector<TransferCell> cells = MakeTransferCells({RunOf({ring, four, one})});
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_EQ(GroupText(cells[0]), "{0,1} of 4, one way");
  EXPECT_EQ(GroupText(cells[1]), "4 pairs from {0,1} of 4, one way");
  EXPECT_EQ(GroupText(cells[2]), "4 pairs from {0,1} of 4");
}

TEST(TransferCellsTest, EachRunWarmsUpAnew) {
  const auto repeats = [](double first_ns) {
    return RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, first_ns),
                  Sample(CollectiveKind::kAllReduce, 64, 0, 10),
                  Sample(CollectiveKind::kAllReduce, 64, 0, 12)});
  };
  const std::vector<TransferCell> cells = MakeTransferCells({repeats(900), repeats(700)});
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_THAT(cells[0].transfers_ns, ElementsAre(10, 12, 10, 12));
  EXPECT_EQ(cells[0].median_ns, 11);
}

TEST(TransferCellsTest, RunsOfOtherSizesHaveCellsOfTheirOwn) {
  CalibrationRun larger = RunOf({Sample(CollectiveKind::kAllReduce, 64, 1, 9)});
  larger.transfers.ranks = 8;
  EXPECT_THAT(MakeTransferCells({RunOf({Sample(CollectiveKind::kAllReduce, 64, 1, 9)}), larger}),
              SizeIs(2));
}

TEST(TransferCellsTest, WhatRanOnceIsKept) {
  const std::vector<TransferCell> cells =
      MakeTransferCells({RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, 900)})});
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_EQ(cells[0].median_ns, 900);
}

TEST(TransferCellsTest, TransfersThatMetOthersAreLeftOutUnlessAskedFor) {
  CalibrationRun run = RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, 900)});
  run.transfers.samples[0].overlapped = true;
  EXPECT_THAT(MakeTransferCells({run}), SizeIs(0));
  CellOptions options;
  options.keep_overlapped = true;
  EXPECT_THAT(MakeTransferCells({run}, options), SizeIs(1));
}

TEST(TransferCellsTest, TheNoiseFloorIsTheMeanOverCells) {
  TransferCell steady, noisy;
  steady.transfers_ns = {10, 10, 10, 10};
  noisy.transfers_ns = {10, 12, 10, 12};
  EXPECT_THAT(NoiseFloor({steady, noisy}), Optional(DoubleEq(0.1)));
  TransferCell once;
  once.transfers_ns = {10};
  EXPECT_THAT(NoiseFloor({once, steady, noisy, once}), Optional(DoubleEq(0.1)));
  EXPECT_EQ(NoiseFloor({once}), std::nullopt);
}

CollectiveRun Match(RunBuilder builder) {
  for (ProfileCollectives& profile : builder.profiles()) {
    for (CollectiveOp& op : profile.ops) op.operand_bytes = 4096;
    for (LocalDevice& device : profile.devices) device.name = "/device:GPU:0";
  }
  CollectiveRun run;
  ResolvedRun resolved = builder.Resolve();
  run.table = *BuildCollectiveTable(resolved.profiles, resolved.ranks, resolved.runs);
  run.profiles = std::move(resolved.profiles);
  run.ranks = std::move(resolved.ranks);
  run.runs = std::move(resolved.runs);
  return run;
}

TEST(CalibrationRunTest, FilesOfAFolderAreARun) {
  const std::string cpu0 = "examples/jax_cpu4/rank0.xplane.pb.gz";
  const std::string cpu1 = "examples/jax_cpu4/rank1.xplane.pb.gz";
  const std::string gpu0 = "examples/jax_cuda2/rank0.xplane.pb";
  const std::string gpu1 = "examples/jax_cuda2/rank1.xplane.pb";
  std::vector<size_t> files;
  CalibrationRunOptions options;
  options.progress = [&](size_t file) { files.push_back(file); };
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadCalibrationRuns(FileSystem::Posix(), {gpu0, cpu0, gpu1, cpu1}, options));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].folder, "examples/jax_cuda2");
  EXPECT_THAT(runs[0].traces, ElementsAre(gpu0, gpu1));
  EXPECT_THAT(runs[0].device_kinds, ElementsAre("GPU"));
  EXPECT_THAT(runs[0].transfers.samples, SizeIs(56));
  EXPECT_THAT(runs[0].steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(runs[1].folder, "examples/jax_cpu4");
  EXPECT_THAT(runs[1].device_kinds, ElementsAre("CPU"));
  EXPECT_THAT(files, ElementsAre(0, 1, 2, 3));
}

// Each host of a run names its folder after the time at which it began.
TEST(CalibrationRunTest, SessionsOfDifferentHostsAreARun) {
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK_AND_ASSIGN(
        const InputFile file,
        InputFile::Open(FileSystem::Posix(),
                        absl::StrCat("examples/jax_cuda2/rank", rank, ".xplane.pb")));
    traces.push_back(directory.Write(
        absl::StrCat("plugins/profile/2026_11_16_0", rank, "/host", rank, ".xplane.pb"),
        file.bytes()));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadCalibrationRuns(FileSystem::Posix(), traces));
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_THAT(runs[0].transfers.samples, SizeIs(56));
}

// By profile.
CollectiveRun RunWithSteps(const std::vector<std::vector<int64_t>>& steps) {
  CollectiveRun run;
  for (const std::vector<int64_t>& of_profile : steps) {
    ProfileCollectives& profile = run.profiles.emplace_back();
    profile.events.emplace_back();
    for (int64_t step : of_profile) profile.events.emplace_back().step = step;
  }
  return run;
}

TEST(CalibrationRunTest, StepsAtTheEndsMayBeCutOff) {
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5, 6}, {6, 5, 4, 3}})), ElementsAre(4, 5));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5}})), ElementsAre(4));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4}, {3, 4}})), ElementsAre(3, 4));
}

TEST(CalibrationRunTest, StepsThatAProfileLacksAreNotWhole) {
  // Rank 1 began at the end of 5, rank 0 ended at the start of 8.
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5, 6, 7, 8}, {5, 6, 7, 8, 9}})), ElementsAre(6, 7));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5}, {5, 6, 7}})), ElementsAre(5));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 5}, {4, 6}})), IsEmpty());
  // What nothing is left of stays so.
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 5}, {4, 6}, {4, 5, 6}})), IsEmpty());
}

TEST(CalibrationRunTest, ProfilesWithoutStepsDoNotCount) {
  EXPECT_THAT(WholeSteps(RunWithSteps({{}, {3, 4, 5}, {}})), ElementsAre(4));
  EXPECT_THAT(WholeSteps(RunWithSteps({{}, {}})), IsEmpty());
}

TEST(CalibrationRunTest, TellsFabricsWithinAndAcrossNodes) {
  RunBuilder builder(/*nodes=*/2, /*devices_per_node=*/2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  for (int64_t rank = 0; rank < 4; ++rank) builder.Add({op, 7, rank, 1000, 2000});
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run,
                       MakeCalibrationRun("f", Match(std::move(builder))));
  EXPECT_TRUE(run.within_nodes);
  EXPECT_FALSE(run.across_nodes);
  EXPECT_THAT(run.device_kinds, ElementsAre("GPU"));
  EXPECT_THAT(run.transfers.samples, SizeIs(2));
  EXPECT_EQ(run.ranks_per_node, 2);
  EXPECT_EQ(RanksPerNode({0, 0, 1, 1, 2, 2}), 2);
  EXPECT_EQ(RanksPerNode({0, 1, 2}), 1);
  EXPECT_EQ(RanksPerNode({0, 0, 1}), 0);
  EXPECT_EQ(RanksPerNode({0, 1, 0, 1}), 0);
}

TEST(CalibrationRunTest, ClocksThatDisagreeAreRefusedUnlessTheUserInsists) {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  builder.Add({op, 7, 0, 1'000'000, 2'000'000});
  builder.Add({op, 7, 1, 2'500'000, 3'500'000});
  const CollectiveRun matched = Match(std::move(builder));
  const absl::Status refused = MakeCalibrationRun("sweep", matched).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("node0 and node1"), HasSubstr("1 of 1"), HasSubstr("combine"),
                    HasSubstr("rank 0 ended 0.500 us before rank 1 started")));
  CalibrationRunOptions options;
  options.allow_violations = true;
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run, MakeCalibrationRun("sweep", matched, options));
  EXPECT_TRUE(run.across_nodes);
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("sweep: 1 collectives end before"))));
}

TEST(MovingRanksTest, AreThoseThatSendOrReceive) {
  TransferCell cell;
  cell.ranks = 8;
  cell.participants = {0, 1};
  EXPECT_EQ(MovingRanksOf(cell), 2);
  cell.participants = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(MovingRanksOf(cell), 8);
  cell.kind = CollectiveKind::kPointToPoint;
  cell.participants = {0, 1};
  cell.pairs = 1;
  EXPECT_EQ(MovingRanksOf(cell), 2);
  // Four pairs one way are all ranks; both ways they are a ring of four.
  cell.pairs = 4;
  EXPECT_EQ(MovingRanksOf(cell), 8);
  cell.is_both_ways = true;
  EXPECT_EQ(MovingRanksOf(cell), 4);
}

}  // namespace
}  // namespace meridian
