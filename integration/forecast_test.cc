// forecast as users run it: on recordings whose answers were measured, and with wrong questions.
#include <string>
#include <vector>

#include "forecast/forecast_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The median between ends of the same kernels of neighbouring steps of ddp4_2g.
constexpr double kMeasuredAtTwiceTheRateNs = 145.26e6;

CommandResult Ask(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/forecast", arguments);
}

template <typename Report>
Report Parse(const CommandResult& result) {
  Report report;
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
  return report;
}

TEST(ForecastCommandTest, TwiceTheBandwidthGivesWhatWasMeasuredThere) {
  const ForecastReport report = Parse<ForecastReport>(
      Ask({"--run_dir=examples/networks/ddp4_1g", "--bandwidth=2x", "--json"}));
  EXPECT_NEAR(report.step_ns() / kMeasuredAtTwiceTheRateNs, 1, 0.05);
  EXPECT_LE(report.low_ns(), kMeasuredAtTwiceTheRateNs);
  EXPECT_GE(report.high_ns(), kMeasuredAtTwiceTheRateNs);
  double sum_ns = 0;
  for (const ForecastPart& part : report.breakdown()) sum_ns += part.ns();
  EXPECT_NEAR(sum_ns / report.step_ns(), 1, 1e-9);
}

TEST(ForecastCommandTest, WithoutAChangeTheStepIsTheRecordedOne) {
  for (const std::string run : {"networks/ddp4_1g", "networks/experts4_1g", "jax_tp_cuda4"}) {
    const ForecastReport report =
        Parse<ForecastReport>(Ask({"--run_dir=examples/" + run, "--allow_violations", "--json"}));
    EXPECT_NEAR(report.step_ns() / report.measured_step_ns(), 1, 0.01) << run;
  }
}

TEST(ForecastCommandTest, ListsGiveACurve) {
  const TemporaryDirectory directory;
  const std::string csv = directory.PathOf("curve.csv");
  const ForecastCurve curve =
      Parse<ForecastCurve>(Ask({"--run_dir=examples/networks/experts4_1g", "--bandwidth=1x,2x,4x",
                                "--compute=1x,0.5x", "--ranks=4,8", "--csv=" + csv, "--json"}));
  ASSERT_EQ(curve.forecasts_size(), 12);
  EXPECT_GT(curve.forecasts(0).step_ns(), curve.forecasts(2).step_ns());
  EXPECT_GT(curve.forecasts(2).step_ns(), curve.forecasts(4).step_ns());
  EXPECT_GE(curve.forecasts(6).step_ns(), curve.forecasts(0).step_ns());
  EXPECT_THAT(directory.Read("curve.csv"), HasSubstr("\"4 ranks, bandwidth 2x\",4,"));
}

TEST(ForecastCommandTest, SeveralRunsAreOneJobOnSeveralNumbersOfRanks) {
  const std::string run = "examples/networks/experts4_1g";
  const CommandResult twice =
      Ask({"--run_dir=" + run + ",examples/networks/experts4_slow3", "--ranks=8"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.standard_error, HasSubstr("two of the runs have 4 ranks"));
  const CommandResult missing = Ask({"--run_dir=" + run + ",nowhere", "--ranks=8"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.standard_error, HasSubstr("nowhere"));
}

TEST(ForecastCommandTest, AnotherNetworkIsSharedByItsRanks) {
  const TemporaryDirectory directory;
  const std::string tree =
      directory.Write("tree.yml",
                      "topology: [ Links ]\nnpus_count: [ 4 ]\nlinks: { shape: "
                      "leaf_spine, leaf: 2, oversubscription: 2, bandwidth: 1x }\n");
  const ForecastReport report = Parse<ForecastReport>(
      Ask({"--run_dir=examples/networks/experts4_1g", "--network=" + tree, "--json"}));
  EXPECT_GT(report.step_ns(), 1.02 * report.measured_step_ns());
}

TEST(ForecastCommandTest, WrongQuestionsAreRefused) {
  const std::string run = "--run_dir=examples/networks/experts4_1g";
  const auto expect_refused = [&](const std::vector<std::string>& flags, const std::string& words) {
    std::vector<std::string> arguments = {run};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const CommandResult result = Ask(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.standard_output;
    EXPECT_THAT(result.standard_error, HasSubstr(words));
  };
  expect_refused({"--ranks=6"}, "cannot have 6: its outermost groups grow, to 8, 12, 16");
  expect_refused({"--ranks=-4"}, "--ranks=-4 is no number of ranks");
  expect_refused({"--bandwidth=-1x"}, "--bandwidth: \"-1x\" is no number above 0");
  expect_refused({"--bandwidth=2"}, "expected e.g. 2x, 100Gbit/s");
  expect_refused({"--latency=0ns"}, "--latency: \"0ns\" is no number above 0");
  expect_refused({"--compute=1Gbit/s"}, "--compute=1Gbit/s: expected a multiple");
  expect_refused({"--fix_rank=9"}, "9");
  expect_refused({"--layout=8"}, "--layout: expected OUTERxINNER");
  expect_refused({"--layout=2x8"}, "the inner part of the job's mesh has 1 ranks");
  expect_refused({"--layout=1000000x1000000"}, "is no number of ranks");
  expect_refused({"--ranks=4194304"}, "messages");
  expect_refused({"--bandwidth=2x,"}, "--bandwidth: one of the list has no value");
  expect_refused({"--bandwidth=0x10x"}, "expected e.g. 2x");
  expect_refused({"--network=a.yml,b.yml"}, "--network: one network at a time");
  expect_refused({"--calibration=a", "--sweep=b"}, "give either --calibration or --sweep");
  expect_refused({"--compute=1e300x"}, "expected a multiple from 0.001x to 1000x");
  const TemporaryDirectory directory;
  const std::string small = directory.Write(
      "small.yml",
      "topology: [ Links ]\nnpus_count: [ 2 ]\nlinks: { shape: star, bandwidth: 1x }\n");
  expect_refused({"--network=" + small}, "the network has 2 NPUs, the job 4 ranks");
}

}  // namespace
}  // namespace meridian
