#include "astra_bridge/calibration/correction_fit.h"

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Cells of the truth by itself, and what the engine says of them.
struct Measured {
  std::vector<TransferCell> cells;
  PointsByKind points;
};

Measured MeasureRing(absl::Span<const int32_t> ranks, const SyntheticOptions& options) {
  const Fabric truth = RingOf(4, 20000, 5);
  Measured measured;
  measured.cells = MakeSyntheticCells(truth, ranks, options);
  measured.points =
      MakeCorrectionPoints(measured.cells, EngineTimesNs(truth, measured.cells).value(),
                           LeastEngineTimesNs(truth, measured.cells).value());
  return measured;
}

TEST(ChoosePenaltyTest, NoiseIsNotFollowed) {
  SyntheticOptions options;
  options.noise = 0.3;
  const Measured measured = MeasureRing({4}, options);
  const PenaltyChoice choice = ChoosePenalty(measured.points);
  EXPECT_GT(choice.error, 0);
  const Corrections corrections = FitCorrections(measured.points, choice.penalty);
  EXPECT_THAT(corrections.segments[static_cast<size_t>(CollectiveKind::kPointToPoint)], IsEmpty());
  for (CollectiveKind kind : options.kinds) {
    EXPECT_THAT(corrections.segments[static_cast<size_t>(kind)], SizeIs(1))
        << CollectiveKindName(kind);
  }
}

TEST(ChoosePenaltyTest, ExactTimesLeaveTheLargest) {
  SyntheticOptions options;
  options.noise = 0;
  const Measured measured = MeasureRing({2, 4}, options);
  const PenaltyChoice choice = ChoosePenalty(measured.points);
  EXPECT_EQ(choice.penalty, 8);
  EXPECT_LT(choice.error, 1e-3);
}

TEST(ChoosePenaltyTest, TwoSizesLeaveNothingOut) {
  SyntheticOptions options;
  options.sizes = {1024, 1 << 20};
  const Measured measured = MeasureRing({4}, options);
  const PenaltyChoice choice = ChoosePenalty(measured.points);
  EXPECT_EQ(choice.penalty, 8);
  EXPECT_EQ(choice.error, 0);
}

// With two sizes only numbers of ranks can be left out. Four ranks take three times as long as
// the engine says, so what is told by the one is wrong for the other by a factor of e or more.
TEST(ChoosePenaltyTest, NumbersOfRanksAreLeftOut) {
  SyntheticOptions options;
  options.sizes = {1024, 1 << 20};
  options.noise = 0;
  Measured measured = MeasureRing({2, 4}, options);
  for (std::vector<CorrectionPoint>& of_kind : measured.points) {
    for (CorrectionPoint& point : of_kind) point.measured_ns *= point.ranks == 4 ? 3 : 1;
  }
  EXPECT_NEAR(ChoosePenalty(measured.points).error, 1, 0.01);
}

}  // namespace
}  // namespace meridian
