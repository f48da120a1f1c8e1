#include "astra_bridge/calibration/simulation_check_notes.h"

#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

CalibrationRun RunOf(const std::string& folder, size_t transfers) {
  CalibrationRun run;
  run.folder = folder;
  run.transfers.ranks = 4;
  run.transfers.samples.resize(transfers);
  return run;
}

CalibrationReport ReportOf(const std::string& folder, int64_t transfers) {
  CalibrationReport report;
  CalibratedRun* run = report.add_runs();
  run->set_folder(folder);
  run->set_ranks(4);
  run->set_transfers(transfers);
  return report;
}

TEST(SimulationCheckNotesTest, WhatWasCalibratedWithIsNoTest) {
  const CalibrationReport report = ReportOf("sweep", 3);
  EXPECT_THAT(NotesOnCalibratedRuns(report, {RunOf("other", 3), RunOf("sweep", 3)}),
              ElementsAre(HasSubstr("sweep was used for this calibration")));
  EXPECT_THAT(NotesOnCalibratedRuns(report, {RunOf("./a/../sweep/", 3)}),
              ElementsAre(HasSubstr("its errors are those of the fit")));
}

// A folder may have been written anew.
TEST(SimulationCheckNotesTest, OtherTransfersAreAnotherRun) {
  EXPECT_THAT(NotesOnCalibratedRuns(ReportOf("sweep", 3), {RunOf("sweep", 4)}), IsEmpty());
  CalibrationReport of_two = ReportOf("sweep", 3);
  of_two.mutable_runs(0)->set_ranks(2);
  EXPECT_THAT(NotesOnCalibratedRuns(of_two, {RunOf("sweep", 3)}), IsEmpty());
  EXPECT_THAT(NotesOnCalibratedRuns({}, {RunOf("sweep", 3)}), IsEmpty());
}

TEST(SimulationCheckNotesTest, FoldersMayBeNamedAnything) {
  EXPECT_THAT(NotesOnCalibratedRuns(ReportOf("a\nb", 1), {RunOf("a\nb", 1)}),
              ElementsAre(HasSubstr("a?b was used")));
}

TEST(SimulationCheckNotesTest, CorrectionsOfAnotherCalibrationAreNamed) {
  Corrections corrections;
  corrections.segments[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{1024, 100.25, 0.5},
                                                                           {kNoEnd, 0, 0.75}};
  corrections.segments[static_cast<size_t>(CollectiveKind::kAllGather)] = {{kNoEnd, -7, 1.25}};
  CalibrationReport report;
  const auto add = [&](const std::string& kind, double overhead_ns, double efficiency) {
    CalibratedSegment* segment = report.add_segments();
    segment->set_kind(kind);
    segment->set_overhead_ns(overhead_ns);
    segment->set_efficiency(efficiency);
    return segment;
  };
  add("all-reduce", 100.25, 0.5)->set_up_to_bytes(1024);
  add("all-reduce", 0, 0.75);
  EXPECT_THAT(NotesOnCorrections(report, corrections),
              ElementsAre(HasSubstr("the corrections are not those of this calibration")));
  add("all-gather", -7, 1.25);
  EXPECT_THAT(NotesOnCorrections(report, corrections), IsEmpty());

  Corrections other = corrections;
  other.segments[static_cast<size_t>(CollectiveKind::kAllReduce)][0].up_to_bytes = 2048;
  EXPECT_THAT(NotesOnCorrections(report, other), SizeIs(1));
  other = corrections;
  other.segments[static_cast<size_t>(CollectiveKind::kAllReduce)][0].overhead_ns = 100.26;
  EXPECT_THAT(NotesOnCorrections(report, other), SizeIs(1));
  other = corrections;
  other.segments[static_cast<size_t>(CollectiveKind::kAllReduce)][1].efficiency = 0.76;
  EXPECT_THAT(NotesOnCorrections(report, other), SizeIs(1));
  other = corrections;
  std::swap(other.segments[static_cast<size_t>(CollectiveKind::kAllGather)],
            other.segments[static_cast<size_t>(CollectiveKind::kAllToAll)]);
  EXPECT_THAT(NotesOnCorrections(report, other), SizeIs(1));
  EXPECT_THAT(NotesOnCorrections(report, {}), SizeIs(1));
}

}  // namespace
}  // namespace meridian
