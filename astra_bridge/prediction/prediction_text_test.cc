#include "astra_bridge/prediction/prediction_run.h"

#include "astra_bridge/prediction/prediction_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

PredictionReport Isolated() {
  PredictionReport report;
  report.set_engine("embedded, congestion-aware");
  report.set_mode("isolated");
  report.set_iteration_ns(140'062);
  report.set_inflation(1);
  for (const int64_t bytes : {1 << 20, 2 << 20}) {
    EdgePrediction* edge = report.add_edges();
    edge->set_kind("p2p");
    edge->set_bytes(bytes);
    edge->set_isolated_seconds(30e-6);
    edge->set_seconds(30e-6);
  }
  report.mutable_workload()->set_isolated_iteration_ns(140'062);
  return report;
}

PredictionReport Together() {
  PredictionReport report = Isolated();
  report.set_mode("snapshot");
  report.set_iteration_ns(150'070);
  report.set_inflation(1.25);
  report.set_cache_hits(1'200);
  report.mutable_edges(1)->set_seconds(40.08e-6);
  return report;
}

TEST(IterationTextTest, OfEdgesAlone) {
  EXPECT_EQ(FormatPrediction(Isolated()),
            "communication  edges    MiB  alone ms  predicted ms  x alone\n"
            "-------------  -----  -----  --------  ------------  -------\n"
            "p2p                2  3.000     0.060         0.060    1.000\n"
            "\n"
            "engine     embedded, congestion-aware\n"
            "mode       isolated\n"
            "edges      2\n"
            "inflation  1.0000\n"
            "cache hits 0\n"
            "iteration  0.140 ms, 1.000 x isolated (0.140 ms)\n");
}

TEST(IterationTextTest, OfListsWithAndWithoutIntervals) {
  PredictionReport report = Isolated();
  report.clear_workload();
  EXPECT_THAT(FormatPrediction(report), testing::StartsWith("edge      us  alone us\n"));
  for (EdgePrediction& edge : *report.mutable_edges()) {
    edge.set_low_seconds(20e-6);
    edge.set_high_seconds(45e-6);
  }
  EXPECT_THAT(FormatPrediction(report),
              testing::HasSubstr("  30.000  20.000 to 45.000    30.000\n"));
}

TEST(IterationTextTest, OfWhatRunsAtOnce) {
  EXPECT_EQ(FormatPrediction(Together()),
            "communication  edges    MiB  alone ms  predicted ms  x alone\n"
            "-------------  -----  -----  --------  ------------  -------\n"
            "p2p                2  3.000     0.060         0.070    1.168\n"
            "\n"
            "engine     embedded, congestion-aware\n"
            "mode       snapshot\n"
            "edges      2\n"
            "inflation  1.2500\n"
            "cache hits 1,200\n"
            "iteration  0.150 ms, 1.071 x isolated (0.140 ms)\n");
}

}  // namespace
}  // namespace meridian
