#include "critical_path/graph/step_times.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

// A stream and a thread of each of so many ranks.
class StepTimesTest : public ::testing::Test {
 protected:
  void AddRanks(int64_t count) {
    for (int64_t rank = 0; rank < count; ++rank) {
      graph_.lanes.push_back({rank, TrackKind::kDevice, "", "7"});
      graph_.lanes.push_back({rank, TrackKind::kHost, "", "1"});
    }
  }
  void Device(int64_t rank, int64_t step, int64_t start_ps, int64_t end_ps) {
    Add(static_cast<LaneId>(2 * rank), step, start_ps, end_ps);
  }
  void Host(int64_t rank, int64_t step, int64_t start_ps, int64_t end_ps) {
    Add(static_cast<LaneId>(2 * rank + 1), step, start_ps, end_ps);
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const StepTime& step : FindStepTimes(graph_).steps) {
      texts.push_back(absl::StrCat(step.step, ": ", step.start_ps, "..", step.end_ps));
    }
    return texts;
  }

  PathGraph graph_;

 private:
  void Add(LaneId lane, int64_t step, int64_t start_ps, int64_t end_ps) {
    GraphEvent event;
    event.lane = lane;
    event.step = step;
    event.start_ps = start_ps;
    event.duration_ps = end_ps - start_ps;
    graph_.events.push_back(event);
  }
};

// The host is ahead: it begins step 2 when the device begins step 1.
TEST_F(StepTimesTest, AStepLastsFromTheEndOfTheStepBefore) {
  AddRanks(1);
  Host(0, 1, 0, 10);
  Host(0, 2, 10, 20);
  Device(0, 1, 10, 110);
  Device(0, 2, 115, 220);
  EXPECT_THAT(Texts(), ElementsAre("1: 0..110", "2: 110..220"));
  EXPECT_THAT(FindStepTimes(graph_).MedianPs(), Optional(110));
  EXPECT_EQ(FindStepTimes(graph_).before_end_ps, std::nullopt);
}

// The host prepares something for 60 ps that no event shows.
TEST_F(StepTimesTest, TheFirstStepBeginsWhereItIsMarked) {
  AddRanks(1);
  Host(0, 5, 60, 70);
  Device(0, 5, 70, 110);
  EXPECT_THAT(Texts(), ElementsAre("5: 60..110"));
  graph_.marks = {{0, 5, 0}};
  EXPECT_THAT(Texts(), ElementsAre("5: 0..110"));
  // A mark of a step that nothing was done in.
  graph_.marks = {{0, 4, -200}};
  EXPECT_THAT(Texts(), ElementsAre("5: 60..110"));
  // Work launched earlier is before the step all the same.
  graph_.marks = {{0, 5, 0}};
  Device(0, kNoStep, -50, 30);
  EXPECT_THAT(Texts(), ElementsAre("5: 30..110"));
}

TEST_F(StepTimesTest, WorkLaunchedEarlierIsBeforeTheFirstStep) {
  AddRanks(1);
  Device(0, kNoStep, -50, 100);
  Host(0, 1, 0, 10);
  Device(0, 1, 100, 200);
  Device(0, kNoStep, 210, 220);
  Device(0, 2, 220, 310);
  EXPECT_THAT(Texts(), ElementsAre("1: 100..200", "2: 200..310"));
  EXPECT_THAT(FindStepTimes(graph_).before_end_ps, Optional(100));
  // Of the first step the hosts' part is cut off.
  EXPECT_THAT(FindStepTimes(graph_).ReplayStartPs(), Optional(200));
  EXPECT_THAT(FindStepTimes(graph_).MeanPs(), Optional(110));
}

TEST_F(StepTimesTest, WorkThatWasOverLongBeforeDoesNotHoldTheFirstStepUp) {
  AddRanks(1);
  Device(0, kNoStep, -50, -20);
  Host(0, 1, 0, 10);
  Device(0, 1, 10, 200);
  EXPECT_THAT(Texts(), ElementsAre("1: 0..200"));
  EXPECT_EQ(FindStepTimes(graph_).before_end_ps, std::nullopt);
}

// The middle of the ranks' ends counts: one that is late at the end of a step makes up for it in
// the next.
TEST_F(StepTimesTest, RanksEndAStepAtDifferentTimes) {
  AddRanks(3);
  for (int64_t rank = 0; rank < 3; ++rank) {
    Device(rank, 1, 0, 100 + 40 * rank);
    Device(rank, 2, 200, 300 - 10 * rank);
  }
  EXPECT_THAT(Texts(), ElementsAre("1: 0..140", "2: 140..290"));
}

// Rank 1 begins to be recorded at 900: rank 0 waits for it in the first step.
TEST_F(StepTimesTest, TheFirstStepBeginsWhenAllRanksHaveBegun) {
  AddRanks(2);
  Device(0, 1, 0, 1000);
  Device(1, 1, 900, 1000);
  for (int64_t step : {2, 3}) {
    for (int64_t rank : {0, 1}) Device(rank, step, 100 * step + 800, 100 * step + 900);
  }
  EXPECT_THAT(Texts(), ElementsAre("1: 450..1000", "2: 1000..1100", "3: 1100..1200"));
  FindLateBeginning(&graph_);
  EXPECT_THAT(Texts(), ElementsAre("1: 900..1000", "2: 1000..1100", "3: 1100..1200"));
  EXPECT_THAT(FindStepTimes(graph_).before_end_ps, Optional(900));
}

TEST_F(StepTimesTest, HostsTellWhereDevicesHaveNoSteps) {
  AddRanks(1);
  Host(0, 7, 0, 30);
  Host(0, 8, 30, 70);
  Device(0, kNoStep, 5, 90);
  EXPECT_THAT(Texts(), ElementsAre("7: 0..30", "8: 30..70"));
}

TEST_F(StepTimesTest, AGraphWithoutStepsHasNone) {
  AddRanks(1);
  Device(0, kNoStep, 0, 10);
  EXPECT_THAT(Texts(), IsEmpty());
  EXPECT_EQ(FindStepTimes(graph_).MedianPs(), std::nullopt);
  EXPECT_EQ(FindStepTimes(graph_).Find(5), std::nullopt);
}

// The path is one edge from 0 to 300, of which 100 are before the steps.
TEST_F(StepTimesTest, APathIsCutWhereStepsEnd) {
  AddRanks(1);
  Device(0, kNoStep, 0, 100);
  Host(0, 1, 0, 10);
  Device(0, 1, 100, 180);
  Device(0, 2, 180, 250);
  graph_.instants = {{0, kNoEvent, true}, {300, kNoEvent, false}};
  graph_.edges = {{0, 1, 300, 2, EdgeType::kOperator, BoundBy::kGpuCompute}};
  const CriticalPath path = {{0}, 300};
  std::vector<std::string> pieces;
  VisitPieces(graph_, path, FindStepTimes(graph_), [&](const PathPiece& piece) {
    pieces.push_back(absl::StrCat(piece.time_ps, " ", BoundByName(piece.bound_by), " ",
                                  piece.step.has_value() ? absl::StrCat(*piece.step) : "-"));
  });
  EXPECT_THAT(pieces, ElementsAre("100 before_step -", "80 gpu_compute_bound 0",
                                  "70 gpu_compute_bound 1", "50 gpu_compute_bound -"));
  const PathBreakdown breakdown = BreakDown(graph_, path);
  EXPECT_EQ(breakdown.Of(BoundBy::kBeforeStep), 100);
  EXPECT_EQ(breakdown.Of(BoundBy::kGpuCompute), 200);
  ASSERT_EQ(breakdown.shares.size(), 2);
  EXPECT_EQ(breakdown.shares[0].event, kNoEvent);
  EXPECT_EQ(breakdown.shares[1].time_ps, 200);
}

}  // namespace
}  // namespace meridian
