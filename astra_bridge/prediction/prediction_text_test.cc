#include "astra_bridge/prediction/prediction_text.h"

#include "astra_bridge/prediction/prediction_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PredictionReport Isolated() {
  PredictionReport report;
  report.set_engine("embedded, congestion-aware");
  report.set_engine_version("1");
  report.set_mode("isolated");
  report.set_iteration_ns(140'062);
  report.set_inflation(1);
  report.add_edges();
  report.add_edges();
  WorkloadPrediction* workload = report.mutable_workload();
  workload->set_ranks(2);
  workload->set_nodes(1'009);
  workload->set_distinct_edges(2);
  workload->set_isolated_iteration_ns(140'062);
  workload->set_critical_communication_ns(40'062);
  workload->set_partition("none");
  KindPrediction* kind = workload->add_kinds();
  kind->set_kind("p2p");
  kind->set_edges(4);
  kind->set_bytes(3 << 20);
  kind->set_isolated_seconds(60e-6);
  kind->set_seconds(60e-6);
  return report;
}

PredictionReport Snapshots() {
  PredictionReport report = Isolated();
  report.set_mode("snapshot");
  report.set_batch_rule("simulated together");
  report.set_iteration_ns(150'070);
  report.set_snapshots(4);
  report.set_inflation(1.25);
  report.set_cache_hits(1'200);
  report.set_cache_misses(3);
  WorkloadPrediction* workload = report.mutable_workload();
  workload->mutable_kinds(0)->set_seconds(70.08e-6);
  workload->set_contended_snapshots(2);
  workload->set_distinct_snapshots(2);
  workload->set_extractions(1);
  workload->set_changed_share(0.025);
  workload->set_inflation_over_sum(0.9835);
  workload->set_max_inflation(1.4875);
  return report;
}

TEST(IterationTextTest, OfEdgesAlone) {
  EXPECT_EQ(FormatIteration(Isolated()),
            "communication  edges    MiB  alone ms  predicted ms  x alone\n"
            "-------------  -----  -----  --------  ------------  -------\n"
            "p2p                4  3.000     0.060         0.060    1.000\n"
            "\n"
            "engine         embedded, congestion-aware, version 1\n"
            "mode           isolated\n"
            "workload       2 ranks, 1,009 nodes, 2 edges\n"
            "cache          not used\n"
            "fallbacks      0\n"
            "critical path  28.6 % communication\n"
            "iteration      0.140 ms\n");
}

TEST(IterationTextTest, OfWhatRunsAtOnce) {
  EXPECT_EQ(FormatIteration(Snapshots()),
            "communication  edges    MiB  alone ms  predicted ms  x alone\n"
            "-------------  -----  -----  --------  ------------  -------\n"
            "p2p                4  3.000     0.060         0.070    1.168\n"
            "\n"
            "engine         embedded, congestion-aware, version 1\n"
            "mode           snapshot (simulated together)\n"
            "workload       2 ranks, 1,009 nodes, 2 edges\n"
            "snapshots      4, 2 of several edges, 2 different; collected once, 2.5 % of the "
            "edges changed neighbours\n"
            "inflation      1.250 x longest, 0.984 x sum, at most 1.488 x longest\n"
            "cache          1,200 hits, 3 misses\n"
            "fallbacks      0\n"
            "critical path  26.7 % communication\n"
            "iteration      0.150 ms, 1.071 x isolated (0.140 ms)\n");
}

TEST(IterationTextTest, PartitionsAndCoalescingOnlyWhenAskedFor) {
  PredictionReport report = Snapshots();
  EXPECT_THAT(FormatIteration(report), Not(HasSubstr("partition")));
  EXPECT_THAT(FormatIteration(report), Not(HasSubstr("coalesced")));
  report.mutable_workload()->set_partition("link_domain");
  report.mutable_workload()->set_coalesce_below_bytes(1 << 20);
  report.mutable_workload()->set_coalesced_edges(2);
  EXPECT_THAT(FormatIteration(report),
              HasSubstr("partition      by link_domain\n"
                        "coalesced      2 edges of less than 1,048,576 bytes take part in no "
                        "snapshot\n"));
}

TEST(IterationTextTest, FallbacksAreMarked) {
  PredictionReport report = Snapshots();
  report.set_fallbacks(1);
  report.add_fallback_details()->set_reason("it crashed\x1b[2J");
  const std::string text = FormatIteration(report);
  EXPECT_THAT(text, HasSubstr("fallbacks      1, the first: it crashed?[2J\n"));
}

}  // namespace
}  // namespace meridian
