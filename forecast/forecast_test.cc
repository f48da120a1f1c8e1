#include "forecast/forecast.h"

#include <cstddef>
#include <utility>

#include "astra_bridge/engine/testing/builders.h"
#include "astra_bridge/testing/fabrics.h"
#include "forecast/testing/made_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// One byte per ns and no latency: a ring of 4 reduces 1,000,000 bytes in 2 * 3/4 * 1e6 ns = 1.5 ms.
ForecastModel Model() {
  ForecastModel model;
  model.fabric = FabricOf({Dimension(BlockShape::kFullyConnected, 4, 1 / 1.073741824, 0)});
  UseAlgorithm("ring", &model.fabric);
  model.large_error = model.small_error = 0.1;
  model.source = "a test";
  return model;
}

// A recording with its model, and what answers from it.
struct Recording {
  explicit Recording(const MadeJob& made, ForecastModel with = Model())
      : model(std::move(with)),
        graph(MakeJobGraph(made)),
        job(*JobOnNetwork::Create(graph)),
        forecaster(*Forecaster::Create(job, model)) {}

  double Ms(const ForecastQuestion& question) const {
    return forecaster.Ask(question)->step_ns() / 1e6;
  }

  const ForecastModel model;
  const PathGraph graph;
  const JobOnNetwork job;
  const Forecaster forecaster;
};

TEST(ForecastTest, MeasuredTimesWhatTheModelSaysOfTheChange) {
  // Steps of 1 + 3 ms; the transfers took twice what the model says, and keep doing so.
  const Recording recording{MadeJob()};
  EXPECT_NEAR(recording.Ms({}), 4, 1e-3);
  ForecastQuestion question;
  question.bandwidth = Change{true, 2};
  EXPECT_NEAR(recording.Ms(question), 1 + 1.5, 1e-2);
  question.compute = 0.5;
  EXPECT_NEAR(recording.Ms(question), 0.5 + 1.5, 1e-2);
  // From 4 to 8 members a ring moves 2 * 7/8 in place of 2 * 3/4.
  ForecastQuestion ranks;
  ranks.ranks = 8;
  EXPECT_NEAR(recording.Ms(ranks), 1 + 3 * 7.0 / 6, 2e-2);
}

TEST(ForecastTest, TheBreakdownAddsUpToTheStep) {
  const Recording recording{MadeJob()};
  const ForecastReport report = *recording.forecaster.Ask({});
  ASSERT_EQ(report.breakdown_size(), 2);
  EXPECT_EQ(report.breakdown(0).what(), "all-reduce");
  EXPECT_NEAR(report.breakdown(0).ns(), 3e6, 1e3);
  EXPECT_EQ(report.breakdown(1).what(), "compute");
  EXPECT_NEAR(report.breakdown(1).ns(), 1e6, 1e3);
}

TEST(ForecastTest, TheIntervalGrowsWithTheChange) {
  const Recording recording{MadeJob()};
  const auto width = [&](double multiple) {
    ForecastQuestion question;
    question.bandwidth = Change{true, multiple};
    const ForecastReport report = *recording.forecaster.Ask(question);
    EXPECT_LT(report.low_ns(), report.step_ns());
    return report.high_ns() / report.low_ns();
  };
  EXPECT_LT(width(1), width(1.5));
  EXPECT_LT(width(1.5), width(3));
}

TEST(ForecastTest, RanksThatTheJobCannotHaveAreRefused) {
  const Recording recording{MadeJob()};
  ForecastQuestion question;
  question.ranks = 6;
  EXPECT_THAT(recording.forecaster.Ask(question).status().message(),
              HasSubstr("cannot have 6: its outermost groups grow, to 8, 12, 16"));
}

TEST(ForecastTest, AJobWithoutStepsIsRefused) {
  PathGraph graph = MakeJobGraph(MadeJob());
  for (GraphEvent& event : graph.events) event.step = kNoStep;
  const JobOnNetwork job = *JobOnNetwork::Create(graph);
  EXPECT_THAT(Forecaster::Create(job, Model()).status().message(), HasSubstr("no steps"));
}

TEST(ForecastTest, AJobWithoutTransfersIsRefused) {
  PathGraph graph = MakeJobGraph(MadeJob());
  graph.meetings.clear();
  EXPECT_THAT(JobOnNetwork::Create(graph).status().message(), HasSubstr("no transfer"));
}

TEST(ForecastTest, TransfersFarFromTheCalibrationAreTold) {
  const Recording recording{MadeJob()};
  EXPECT_THAT(recording.forecaster.Ask({})->notes(),
              Contains(HasSubstr("took 2.0 times as long as the calibrated network says")));
  MadeJob as_calibrated;
  as_calibrated.transfer_us = 1500;
  const Recording other(as_calibrated);
  EXPECT_THAT(other.forecaster.Ask({})->notes(), Each(Not(HasSubstr("calibrated"))));
}

// Ranks compute less when there are more, and put less into all-gathers.
TEST(RunsForecasterTest, TakesLawsFromSeveralRuns) {
  MadeJob few, more;
  few.kind = more.kind = CollectiveKind::kAllGather;
  few.ranks = 2;
  few.compute_us = 4000;
  few.bytes = 2'000'000;
  few.transfer_us = 2000;
  more.ranks = 4;
  more.compute_us = 2000;
  more.bytes = 1'000'000;
  more.transfer_us = 3000;
  const Recording two(few), four(more);
  const RunsForecaster runs = *RunsForecaster::Create({&four.job, &two.job}, four.model);
  ForecastQuestion question;
  question.ranks = 8;
  // 1 ms of computation, and 7 shards of 0.5 ms each.
  const ForecastReport report = *runs.Ask(question);
  EXPECT_NEAR(report.step_ns() / 1e6, 1 + 3.5, 2e-2);
  EXPECT_THAT(report.rests_on(), Contains(AllOf(HasSubstr("recordings of 2, 4 ranks"),
                                                HasSubstr("computation of a rank with ranks^-1.00"),
                                                HasSubstr("all-gather that span all ranks with "
                                                          "ranks^-1.00"))));
  EXPECT_THAT(report.rests_on(), Contains(HasSubstr("from 2 ranks, 4 would have been forecast to "
                                                    "take 5.0 ms; measured were 5.0 ms")));
  EXPECT_THAT(report.assumptions(), Contains(HasSubstr("computation takes 0.5 of its time, as")));
  // What the user says counts.
  question.compute = 1;
  EXPECT_NEAR(runs.Ask(question)->step_ns() / 1e6, 2 + 3.5, 2e-2);
  // As many ranks as were recorded are answered from that recording.
  question = {};
  question.ranks = 2;
  EXPECT_NEAR(runs.Ask(question)->step_ns() / 1e6, 6, 1e-2);
}

// From 2 to 4 ranks a ring takes 1.5 times as long, from 4 to 8 once and a sixth more. What was
// measured on 4 took twice as long as that, and so it goes on.
TEST(RunsForecasterTest, WhatWasOffBeforeGoesOn) {
  MadeJob few, more;
  few.ranks = 2;
  few.compute_us = more.compute_us = 1;
  few.transfer_us = 1000;
  more.transfer_us = 3000;
  const Recording two(few), four(more);
  const RunsForecaster runs = *RunsForecaster::Create({&two.job, &four.job}, four.model);
  ForecastQuestion question;
  question.ranks = 8;
  EXPECT_NEAR(runs.Ask(question)->step_ns() / 1e6, 3 * 7.0 / 6 * 2, 5e-2);
}

TEST(RunsForecasterTest, OneRunAssumesItsLaws) {
  const Recording recording{MadeJob()};
  const RunsForecaster runs = *RunsForecaster::Create({&recording.job}, recording.model);
  ForecastQuestion question;
  question.ranks = 8;
  EXPECT_THAT(runs.Ask(question)->assumptions(),
              Contains("computation takes as long as it did, on every rank"));
}

TEST(RunsForecasterTest, RunsOfAsManyRanksAreRefused) {
  const Recording recording{MadeJob()};
  EXPECT_THAT(
      RunsForecaster::Create({&recording.job, &recording.job}, recording.model).status().message(),
      HasSubstr("two of the runs have 4 ranks"));
}

TEST(RunsForecasterTest, WhatNoLawDescribesIsTold) {
  MadeJob few, more;
  few.ranks = 2;
  PathGraph graph = MakeJobGraph(few);
  // Every second collective of the smaller job is of another kind.
  for (size_t i = 0; i < graph.meetings.size(); i += 2) {
    graph.meetings[i].transfer->kind = CollectiveKind::kAllGather;
  }
  const JobOnNetwork job = *JobOnNetwork::Create(graph);
  const Recording four(more);
  const RunsForecaster runs = *RunsForecaster::Create({&job, &four.job}, four.model);
  ForecastQuestion question;
  question.ranks = 8;
  EXPECT_THAT(
      runs.Ask(question)->notes(),
      Contains(HasSubstr("in 0.5 all-reduce that span all ranks a step on 2 ranks, in 1.0 on "
                         "4")));
}

TEST(ChangeTest, ValuesAndMultiples) {
  EXPECT_EQ(ParseBandwidth("2x")->value, 2);
  EXPECT_TRUE(ParseBandwidth("2x")->is_multiple);
  EXPECT_EQ(ParseBandwidth("100Gbit/s")->value, 12.5);
  EXPECT_EQ(ParseBandwidth("12.5GB/s")->value, 12.5);
  EXPECT_EQ(ParseLatency("10us")->value, 10'000);
  for (const char* wrong : {"", "2", "-1x", "0x", "nanx", "infx", "0x10x", "x", "1e300x", "5us"}) {
    EXPECT_FALSE(ParseBandwidth(wrong).ok()) << wrong;
  }
}

TEST(ForecastTextTest, WhatIsNotUnderstoodComesFirst) {
  ForecastReport report;
  report.set_question("bandwidth 2x");
  report.set_measured_step_ns(100e6);
  report.set_unchanged_step_ns(110e6);
  report.set_step_ns(50e6);
  report.set_low_ns(40e6);
  report.set_high_ns(60e6);
  EXPECT_EQ(ForecastText(report).find("Not to be relied on: without any change the step comes out "
                                      "+10 % off."),
            0);
  EXPECT_THAT(ForecastText(report), AllOf(HasSubstr("step now   100.0 ms"),
                                          HasSubstr("50.0 ms, 90 % interval 40.0 ms to 60.0 ms"),
                                          HasSubstr("2.00 times as fast")));
  // Where microseconds are meant, they are told.
  report.set_measured_step_ns(110'000);
  EXPECT_THAT(ForecastText(report), HasSubstr("step now   110.0 us"));
}

TEST(ForecastTextTest, CsvHasARowPerAnswer) {
  ForecastCurve curve;
  ForecastReport& report = *curve.add_forecasts();
  report.set_question("bandwidth 2x, 8 ranks");
  report.set_ranks(8);
  report.set_measured_step_ns(4);
  report.set_step_ns(3);
  report.set_low_ns(2);
  report.set_high_ns(5);
  EXPECT_EQ(ForecastCsv(curve),
            "question,ranks,measured_step_ns,step_ns,low_ns,high_ns\n"
            "\"bandwidth 2x, 8 ranks\",8,4,3,2,5\n");
}

}  // namespace
}  // namespace meridian
