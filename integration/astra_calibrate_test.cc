// astra_calibrate and astra_validate as users run them: the bundled sweep, what it writes, runs it
// had not seen, wrong input.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSweep[] = "--traces=examples/sweep_cpu4";

template <typename Report>
Report Parse(const std::string& json) {
  Report report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &report).ok()) << json;
  return report;
}

class AstraCalibrateTest : public ::testing::Test {
 protected:
  AstraCalibrateTest() { setenv("HOME", directory_.PathOf("home").c_str(), 1); }

  CommandResult Calibrate(const std::vector<std::string>& arguments) {
    return RunCommandLine("tools/astra_calibrate", arguments);
  }

  // Writes network, system, corrections and report of the bundled sweep.
  CalibrationReport CalibrateSweep(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {kSweep,
                                          "--json",
                                          "--output_network=" + network_,
                                          "--output_system=" + system_,
                                          "--output_corrections=" + corrections_,
                                          "--report=" + report_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = Calibrate(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return Parse<CalibrationReport>(result.standard_output);
  }

  CommandResult Validate(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--network=" + network_, "--system=" + system_,
                                          "--corrections=" + corrections_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommandLine("tools/astra_validate", arguments);
  }

  void ExpectRefused(const CommandResult& result, const std::string& command,
                     const std::string& reason) {
    EXPECT_EQ(result.exit_code, 2) << result.standard_error;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith(command + ": "), HasSubstr(reason)));
  }

  const TemporaryDirectory directory_;
  const std::string network_ = directory_.PathOf("n.yml");
  const std::string system_ = directory_.PathOf("s.json");
  const std::string corrections_ = directory_.PathOf("c.json");
  const std::string report_ = directory_.PathOf("r.json");
};

TEST_F(AstraCalibrateTest, TheBundledSweepIsPredictedBySizesLeftOut) {
  const CalibrationReport report = CalibrateSweep();
  EXPECT_LE(report.holdout().mape_large(), 0.12);
  EXPECT_LE(report.holdout().mape_small(), 0.13);
  EXPECT_LE(report.holdout().mape(), 0.5 * report.uncalibrated().mape());
  EXPECT_EQ(report.fit().n(), 75);
  EXPECT_EQ(report.holdout().n(), 65);
  EXPECT_EQ(report.parameters_size(), 3);
  EXPECT_EQ(Parse<CalibrationReport>(directory_.Read("r.json")).cells_size(), 75);
}

// The report's predictions are what the written files give to other commands.
TEST_F(AstraCalibrateTest, WhatIsWrittenGivesWhatIsReported) {
  const CalibrationReport report = CalibrateSweep({"--sizes=1024,16384,262144,4194304,16777216"});
  std::string edges;
  for (int i = 0; i < report.cells_size(); ++i) {
    const CalibratedCell& cell = report.cells(i);
    const std::string kind = cell.kind() == "all-reduce"       ? "AR"
                             : cell.kind() == "all-gather"     ? "AG"
                             : cell.kind() == "reduce-scatter" ? "RS"
                             : cell.kind() == "all-to-all"     ? "A2A"
                                                               : "P2P";
    absl::StrAppend(
        &edges, R"({"edge_id":")", i, R"(","op_kind":")", kind, R"(","size_bytes":)", cell.bytes(),
        kind == "P2P" ? R"(,"src_rank":0,"dst_rank":1})" : R"(,"participants":[0,1,2,3]})", "\n");
  }
  const CommandResult result =
      RunCommandLine("tools/astra_predict",
                     {"--edges=" + directory_.Write("edges.jsonl", edges), "--network=" + network_,
                      "--system=" + system_, "--corrections=" + corrections_, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const PredictionReport predicted = Parse<PredictionReport>(result.standard_output);
  ASSERT_EQ(predicted.edges_size(), report.cells_size());
  for (const EdgePrediction& edge : predicted.edges()) {
    const CalibratedCell& cell = report.cells(std::stoi(edge.id()));
    EXPECT_NEAR(edge.seconds() * 1e9, cell.predicted_ns(), 1.01);
  }
}

TEST_F(AstraCalibrateTest, PeopleGetTables) {
  const CommandResult result = Calibrate({kSweep, "--sizes=1024,65536,4194304"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("latency_ns[0]"), HasSubstr("held out (sizes not fitted)"),
                    HasSubstr("uncalibrated"), HasSubstr("noise floor"), HasSubstr("overhead_ns")));
}

TEST_F(AstraCalibrateTest, WrongInputExitsWithTwoAndWritesNothing) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& reason) {
    std::vector<std::string> all = arguments;
    all.push_back("--output_network=" + network_);
    ExpectRefused(Calibrate(all), "astra_calibrate", reason);
  };
  refused({}, "--traces names no file");
  refused({"--traces=nowhere/"}, "nowhere");
  refused({kSweep, "--holdout=random"}, "--holdout=random is none of size, op, group");
  refused({kSweep, "--holdout=op", "--sizes=1024,4096"}, "--sizes and --holdout");
  refused({kSweep, "--sizes=1024"}, "a single size");
  refused({kSweep, "--sizes=1000,2000"}, "of which there are no transfers");
  refused({kSweep, "--sizes=many"}, "is no number of bytes");
  refused({kSweep, "--topology=missing.yml"}, "missing.yml");
  refused({"--traces=examples/jax_tp_cuda4_skewed"}, "the clocks of the nodes disagree");
  refused({"--traces=examples/sweep_cpu4,examples/jax_cuda2"}, "different devices (CPU, GPU)");
  refused({"--traces=examples/sweep_cpu4/rank0.xplane.pb.gz"},
          "no collective whose transfer can be timed");
  EXPECT_THAT(directory_.List(), ::testing::IsEmpty());
}

TEST_F(AstraCalibrateTest, TheTopologyIsNotOverwritten) {
  const std::string topology =
      "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
  const std::string path = directory_.Write("t.yml", topology);
  for (const char* output : {"--output_network=", "--report="}) {
    ExpectRefused(Calibrate({kSweep, "--topology=" + path, output + path}), "astra_calibrate",
                  "t.yml");
    EXPECT_EQ(directory_.Read("t.yml"), topology);
  }
}

TEST_F(AstraCalibrateTest, AnotherRunIsCheckedByCollectiveAndStep) {
  CalibrateSweep();
  const CommandResult result =
      Validate({"--traces=examples/jax_cpu4", "--calibration=" + report_, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const SimulationCheckReport report = Parse<SimulationCheckReport>(result.standard_output);
  EXPECT_EQ(report.collectives_total(), 48);
  EXPECT_EQ(report.collectives_size(), 48);
  EXPECT_GT(report.summary().n(), 4);
  EXPECT_GE(report.steps_size(), 1);
  for (const CheckedStep& step : report.steps()) EXPECT_GT(step.measured_ns(), 0);
}

// One folder takes the place of four flags. What was measured on its network is compared with no
// other.
TEST_F(AstraCalibrateTest, ACalibrationIsOneFolder) {
  const std::string folder = directory_.PathOf("machine");
  ASSERT_EQ(Calibrate({kSweep, "--calibration=" + folder}).exit_code, 0);
  const std::string calibration = "--calibration=" + folder;
  const CommandResult checked =
      RunCommandLine("tools/astra_validate", {"--traces=examples/jax_cpu4", calibration, "--json"});
  ASSERT_EQ(checked.exit_code, 0) << checked.standard_error;
  const SimulationCheckReport check = Parse<SimulationCheckReport>(checked.standard_output);
  EXPECT_EQ(check.cells_inside().n(), check.cells_size());
  for (const CheckedCell& cell : check.cells()) {
    EXPECT_LT(cell.simulated_low_ns(), cell.simulated_ns());
    EXPECT_GT(cell.simulated_high_ns(), cell.simulated_ns());
  }

  const std::string workload = directory_.PathOf("w");
  ASSERT_EQ(
      RunCommandLine("tools/chakra_export", {"--traces=examples/jax_cpu4", "--output=" + workload})
          .exit_code,
      0);
  const CommandResult simulated =
      RunCommandLine("tools/astra_simulate", {"--workload=" + workload, calibration, "--json"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  const SimulatedTimes times = Parse<SimulationReport>(simulated.standard_output).times();
  EXPECT_GT(times.measured_ns(), 0);
  EXPECT_GT(times.simulated().exposed_communication_ns(), 0);
  EXPECT_LE(times.low_ns(), times.simulated().makespan_ns());
  EXPECT_GE(times.high_ns(), times.simulated().makespan_ns());

  directory_.Write("fast.yml",
                   "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 100.0 ]\n"
                   "latency: [ 100.0 ]\n");
  directory_.Write("star.yml",
                   "topology: [ Links ]\nnpus_count: [ 4 ]\n"
                   "links: { shape: star, bandwidth: 1x }\n");
  for (const char* command : {"astra_simulate", "astra_predict"}) {
    const std::string which =
        absl::StrCat(command == std::string("astra_simulate") ? "--workload=" : "--et=", workload);
    const CommandResult own = RunCommandLine(absl::StrCat("tools/", command), {which, calibration});
    ASSERT_EQ(own.exit_code, 0) << own.standard_error;
    EXPECT_THAT(own.standard_output, HasSubstr("\nmeasured "));
    for (const char* network : {"fast.yml", "star.yml"}) {
      const CommandResult other =
          RunCommandLine(absl::StrCat("tools/", command),
                         {which, calibration, "--network=" + directory_.PathOf(network)});
      ASSERT_EQ(other.exit_code, 0) << other.standard_error;
      EXPECT_THAT(other.standard_output, Not(HasSubstr("\nmeasured ")));
      EXPECT_THAT(other.standard_output + other.standard_error,
                  AllOf(HasSubstr("measured times are left out"), HasSubstr("forecast")));
    }
    ExpectRefused(RunCommandLine(absl::StrCat("tools/", command),
                                 {which, "--calibration=" + directory_.PathOf("")}),
                  command, "network.yml: there is no such file; --calibration expects");
  }
}

// Of its own transfers a calibration is off by what it could not fit.
TEST_F(AstraCalibrateTest, TheSweepItselfIsMetAsReported) {
  const CalibrationReport calibrated = CalibrateSweep();
  const CommandResult result = Validate({kSweep, "--nosteps", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const SimulationCheckReport report = Parse<SimulationCheckReport>(result.standard_output);
  EXPECT_EQ(report.summary().n(), 75);
  // The first repeats count here.
  EXPECT_NEAR(report.summary().mape(), calibrated.fit().mape(), 0.03);
  EXPECT_EQ(report.steps_size(), 0);
  EXPECT_THAT(report.notes(),
              ElementsAre(HasSubstr("how far predictions may be off is not known")));
}

TEST_F(AstraCalibrateTest, TheSweepItselfIsNoTest) {
  CalibrateSweep();
  const CommandResult result =
      Validate({kSweep, "--nosteps", "--calibration=" + report_, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(Parse<SimulationCheckReport>(result.standard_output).notes(),
              ElementsAre(HasSubstr("examples/sweep_cpu4 was used for this calibration")));
}

// What a GPU does is no test of a network of CPUs.
TEST_F(AstraCalibrateTest, RunsOnOtherDevicesAreSetApart) {
  CalibrateSweep();
  const CommandResult result =
      Validate({"--traces=examples/jax_cuda2", "--calibration=" + report_, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const SimulationCheckReport report = Parse<SimulationCheckReport>(result.standard_output);
  EXPECT_THAT(report.notes(), Contains(HasSubstr("jax_cuda2 is on GPU, the calibration on CPU")));
}

// What the programs of nccl-tests print is a run.
TEST_F(AstraCalibrateTest, TablesOfNcclTestsAreRuns) {
  std::string traces = "--traces=";
  for (const int ranks : {2, 4, 8}) {
    std::string table = "# nThread 1 nGpus 1 minBytes 1024 maxBytes 16777216\n";
    for (int rank = 0; rank < ranks; ++rank) {
      absl::StrAppend(&table, "#  Rank ", rank, " Group 0 Pid 1 on host", rank, " device 0\n");
    }
    for (int64_t bytes = 1024; bytes <= (16 << 20); bytes *= 4) {
      const double us = 2 * (ranks - 1) * (5 + static_cast<double>(bytes) / ranks / 10000);
      absl::StrAppend(&table, bytes, " 1 float sum -1 ", us, " 0 0 0 ", us, " 0 0 0\n");
    }
    absl::StrAppend(&table, "# Out of bounds values : 0 OK\n");
    absl::StrAppend(&traces, ranks == 2 ? "" : ",",
                    directory_.Write(absl::StrCat("all_reduce_perf_", ranks), table));
  }
  const CommandResult result = Calibrate({traces, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CalibrationReport report = Parse<CalibrationReport>(result.standard_output);
  EXPECT_NEAR(report.parameters(0).value(), 5000, 250);
  EXPECT_NEAR(report.parameters(1).value(), 1e10 / (1 << 30), 0.3);
  const std::string cut = directory_.Write(
      "cut", "# nThread 1 minBytes 8\n#  Rank 0 Pid 1 on a device 0\n 8 2 float sum -1 1");
  ExpectRefused(Calibrate({"--traces=" + cut}), "astra_calibrate",
                "cut, line 3: the row has 6 columns, not 13");
}

TEST_F(AstraCalibrateTest, ValidationRefusesWrongInput) {
  CalibrateSweep({"--sizes=1024,65536,4194304"});
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& reason) {
    ExpectRefused(Validate(arguments), "astra_validate", reason);
  };
  refused({}, "--traces names no file");
  refused({kSweep, "--calibration=" + network_}, "no report of astra_calibrate");
  refused({kSweep, "--calibration=" + directory_.Write("empty.json", "{}")},
          "empty.json: nothing was fitted in this calibration");
  refused({"--traces=examples/jax_tp_cuda4_skewed"}, "the clocks of the nodes disagree");
  ExpectRefused(RunCommandLine("tools/astra_validate", {kSweep}), "astra_validate", "--network");
}

}  // namespace
}  // namespace meridian
