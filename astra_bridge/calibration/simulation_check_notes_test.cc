#include "astra_bridge/calibration/simulation_check_notes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace meridian
