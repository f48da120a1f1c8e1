#include "astra_bridge/calibration/calibrated_model.h"

#include <cmath>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// All-gathers are twice as slow as the engine has them; one number for all kinds cannot say that.
TEST(CalibratedModelTest, PredictsWhatTheParametersAloneCannot) {
  SyntheticOptions options;
  options.noise = 0.02;
  std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 30000, 4), {4}, options);
  for (TransferCell& cell : cells) {
    if (cell.kind != CollectiveKind::kAllGather) continue;
    for (double& transfer_ns : cell.transfers_ns) transfer_ns *= 2;
    SummariseCell(&cell);
  }
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model, FitModel(AssumedFabric(4), cells));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> engine_ns,
                       EngineTimesNs(model.parameters.fabric, cells));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.parameters.fabric, model.corrections, cells));
  double worst_engine = 0, worst = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    worst_engine = std::max(worst_engine, std::abs(engine_ns[i] / cells[i].median_ns - 1));
    worst = std::max(worst, std::abs(predicted_ns[i] / cells[i].median_ns - 1));
  }
  EXPECT_GT(worst_engine, 0.3);
  EXPECT_LT(worst, 0.1);
}

// A ring all-gather of 1 MiB in four takes 60,133 ns on the assumed fabric: see engine_model_test.
TEST(CalibratedModelTest, CorrectionsAreOfKindAndBytes) {
  TransferCell cell;
  cell.kind = CollectiveKind::kAllGather;
  cell.bytes = 1 << 20;
  cell.ranks = 4;
  cell.participants = {0, 1, 2, 3};
  Corrections corrections;
  auto& segments = corrections.segments[static_cast<size_t>(CollectiveKind::kAllGather)];
  segments.resize(2);
  segments[0].up_to_bytes = (1 << 20) - 1;
  segments[0].overhead_ns = 1e6;
  segments[1].overhead_ns = 1000;
  segments[1].efficiency = 0.5;
  EXPECT_THAT(PredictCellsNs(AssumedFabric(4), corrections, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(1000 + 2 * 60133, 1e-6))));
  EXPECT_THAT(PredictCellsNs(AssumedFabric(4), {}, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(60133, 1e-6))));
}

}  // namespace
}  // namespace meridian
