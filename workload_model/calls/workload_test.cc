// The chain from measured runs to predictions, on made-up codes whose truth is known and, where the
// published data are there, on these.
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/measurements/model_files.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ReadText(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? std::string(file->bytes()) : "";
}

double Share(double nodes, double size) { return std::exp2(size) / nodes; }

double SumOf(const std::map<Transition, std::vector<double>>& times) {
  double sum = 0;
  for (const auto& [key, of_key] : times) sum = std::accumulate(of_key.begin(), of_key.end(), sum);
  return sum;
}

std::vector<RunMeasurements> MadeUpRuns(double most_machines, double most_size) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<RunMeasurements> runs;
  for (double machines : {4, 9, 16, 25, 36, 49}) {
    for (double size = 16; size <= 23; ++size) {
      if (machines > most_machines || size > most_size) continue;
      RunMeasurements& run = runs.emplace_back();
      run.cell = {machines, size};
      const double u = Share(machines, size);
      for (int i = 0; i < 40; ++i) {
        run.times[{1, 2}].push_back((30 + 5 * std::log2(machines)) * std::exp(noise(random)));
        run.times[{2, 1}].push_back((10 + 2e-3 * u) * std::exp(noise(random)));
        run.messages[1].push_back(8);
        run.messages[2].push_back(std::floor(u / 4));
      }
      run.times[{1, 2}][0] = 10000;
    }
  }
  return runs;
}

TEST(WorkloadTest, PredictsLargerRunsWithinItsInterval) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(MadeUpRuns(36, 22))));
  EXPECT_EQ(model.cells(), 35);
  EXPECT_LT(model.errors().in_sample(), 0.05);
  EXPECT_TRUE(model.errors().has_extrapolation());
  int inside = 0, all = 0;
  for (const RunMeasurements& run : MadeUpRuns(49, 23)) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, run.cell));
    EXPECT_NEAR(evaluation.total_us() / SumOf(run.times), 1, 0.1);
    EXPECT_EQ(evaluation.extrapolated(), run.cell.machines > 36 || run.cell.size > 22);
    inside +=
        SumOf(run.times) >= evaluation.low_us() && SumOf(run.times) <= evaluation.high_us() ? 1 : 0;
    ++all;
    double sum = 0;
    for (const EvaluatedTransition& t : evaluation.transitions()) sum += t.count() * t.us();
    EXPECT_NEAR(sum / evaluation.total_us(), 1, 1e-9);
  }
  EXPECT_GE(inside, all * 8 / 10);
  ASSERT_THAT(model.messages(), SizeIs(2));
  EXPECT_EQ(model.messages(0).value().type(), kConstant);
  EXPECT_NE(model.messages(1).value().type(), kConstant);
}

TEST(WorkloadTest, WhatIsWrittenIsReadBackTheSame) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(MadeUpRuns(36, 22))));
  ASSERT_OK_AND_ASSIGN(const WorkloadModel read, ParseWorkloadModel(ReportToJson(model), "M.json"));
  for (const WorkloadCell& cell : {WorkloadCell{4, 16}, {100, 26}}) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation a, EvaluateWorkload(model, cell));
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation b, EvaluateWorkload(read, cell));
    EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
  }
  EXPECT_THAT(EvaluateWorkload(model, {4, 16, {3}}).status().message(),
              HasSubstr("no model of 3 threads; there are those of 1 thread"));
}

// Sizes that are no powers of two: messages of s / n bytes, and a cell just below the least.
TEST(WorkloadTest, LinearSizesAreSharedAsTheyAre) {
  std::vector<RunMeasurements> runs;
  for (double nodes : {2, 4, 8, 16}) {
    for (double size : {1000, 2000, 4000, 8000}) {
      RunMeasurements& run = runs.emplace_back();
      run.cell = {nodes, size};
      run.times[{1, 2}] = std::vector<double>(10, 5 + size / nodes);
      run.messages[2] = std::vector<double>(10, 8 * size / nodes);
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs)));
  ASSERT_THAT(model.messages(), SizeIs(1));
  EXPECT_NE(model.messages(0).value().type(), kConstant);
  ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation below, EvaluateWorkload(model, {4, 900}));
  EXPECT_NEAR(below.total_us(), 10 * (5 + 225), 30);
  EXPECT_LT(below.high_us() / below.low_us(), 1.5);
  EXPECT_NEAR(below.messages(0).bytes(), 1800, 20);
}

// A halo that grows with the size alone, and counts of an all-to-all that grow with the ranks.
TEST(WorkloadTest, BytesThatAProgramComputesAreFoundExactly) {
  std::vector<RunMeasurements> runs;
  for (double nodes : {2, 3, 4}) {
    for (double size : {6, 8, 10}) {
      RunMeasurements& run = runs.emplace_back();
      run.cell = {nodes, size};
      run.times[{1, 2}] = std::vector<double>(10, 100);
      run.messages[1] = {std::exp2(size) / 8};
      run.messages[2] = {2 * nodes * (nodes + 1)};
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs), "auto", 2));
  ASSERT_THAT(model.messages(), SizeIs(2));
  EXPECT_NEAR(EvaluateModel(model.messages(0).value(), {8, 12}), 512, 0.01);
  EXPECT_NEAR(EvaluateModel(model.messages(1).value(), {8, 12}), 144, 0.01);
}

TEST(WorkloadTest, OtherFilesAreRefused) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel good, FitWorkload(Aggregate(MadeUpRuns(36, 22))));
  const auto refused = [&](const std::function<void(WorkloadModel*)>& damage) {
    WorkloadModel model = good;
    damage(&model);
    return !ParseWorkloadModel(ReportToJson(model), "M.json").ok();
  };
  EXPECT_FALSE(refused([](WorkloadModel*) {}));
  EXPECT_TRUE(refused([](WorkloadModel* m) { *m->add_models() = m->models(0); }));
  EXPECT_TRUE(refused([](WorkloadModel* m) { m->mutable_models(0)->clear_threads(); }));
  EXPECT_TRUE(refused([](WorkloadModel* m) { m->mutable_kinds(0)->clear_most_nodes(); }));
  EXPECT_TRUE(refused([](WorkloadModel* m) { m->mutable_kinds(0)->clear_log_deviation(); }));
  EXPECT_TRUE(
      refused([](WorkloadModel* m) { m->mutable_models(1)->mutable_value()->set_type("TRACE"); }));
  // Computation may be missing, not a part of it.
  EXPECT_TRUE(refused(
      [](WorkloadModel* m) { m->mutable_models(0)->mutable_compute()->add_coefficients(1); }));
  EXPECT_TRUE(refused([](WorkloadModel* m) { m->mutable_models(0)->clear_value(); }));
  EXPECT_TRUE(refused([](WorkloadModel* m) { m->mutable_models(0)->clear_first(); }));
  for (const char* json : {"", "{}", "[", "{\"format\": \"x\"}", "{\"cells\": {}}",
                           R"({"format": "meridian workload model 1", "models": [{"source": "1",
                               "destination": "2", "value": {"type": "LINEAR"}}]})",
                           R"({"format": "meridian workload model 1", "log_deviation": -1})"}) {
    EXPECT_THAT(ParseWorkloadModel(json, "M.json").status().message(), HasSubstr("M.json: "))
        << json;
  }
  EXPECT_THAT(FitWorkload(Measurements()).status().message(), HasSubstr("nothing to fit"));
}

TEST(WorkloadTest, WhatExplodesIsRefused) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(MadeUpRuns(36, 22))));
  EXPECT_OK(EvaluateWorkload(model, {1e6, 40}));
  EXPECT_THAT(EvaluateWorkload(model, {64, 1000}).status().message(),
              HasSubstr("lie too far from what is known"));
}

TEST(WorkloadTest, WhatIsNoNumberIsRefused) {
  CallModel call;
  call.set_source(7);
  call.mutable_value()->set_type(std::string(kExponential));
  for (double coefficient : {1e300, -1e308, 1.0, 1.0}) {
    call.mutable_value()->add_coefficients(coefficient);
  }
  EXPECT_THAT(FiniteValue(call, call.value(), {1e8, 2.4e9}).status().message(),
              HasSubstr("of callsite 7 is no finite number"));
}

TEST(WorkloadTest, PredictionsAreComparedWithMeasurements) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(MadeUpRuns(36, 22))));
  std::vector<RunMeasurements> later = MadeUpRuns(49, 23);
  later.resize(2);
  later[1].times[{7, 8}] = {1e6};
  ASSERT_OK_AND_ASSIGN(const WorkloadComparison comparison,
                       CompareWorkload(model, Aggregate(later)));
  ASSERT_THAT(comparison.cells(), SizeIs(2));
  EXPECT_DOUBLE_EQ(comparison.cells(0).measured_us(), SumOf(later[0].times));
  EXPECT_NEAR(comparison.cells(0).error(), 0, 0.1);
  // Most of the second is of a transition that the model does not know.
  EXPECT_LT(comparison.cells(1).error(), -0.9);
  EXPECT_EQ(comparison.inside(), 1);
  ASSERT_THAT(comparison.transitions(), SizeIs(3));
  EXPECT_EQ(comparison.transitions(0).source(), 7);
  EXPECT_EQ(comparison.transitions(0).measured_us(), 1e6);
  EXPECT_EQ(comparison.transitions(0).predicted_us(), 0);
  EXPECT_FALSE(CompareWorkload(model, Measurements()).ok());
}

// One cell is enough for constants, and says what it cannot know.
TEST(WorkloadTest, FewCellsGiveConstants) {
  std::vector<RunMeasurements> runs = MadeUpRuns(36, 22);
  runs.resize(1);
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs)));
  EXPECT_EQ(model.models(0).value().type(), kConstant);
  EXPECT_THAT(model.notes(), testing::Contains(HasSubstr("nothing can be left out")));
  EXPECT_THAT(FitWorkload(Aggregate(runs), "POLYNOMIAL").status().message(),
              HasSubstr("from callsite 1 to 2: there are too few cells"));
}

TEST(WorkloadTest, PolynomialsHaveTheOrderThatCellsBearAndSayWhy) {
  std::vector<RunMeasurements> runs;
  for (double nodes : {2, 3, 4}) {
    for (double size : {6, 8, 10}) {
      RunMeasurements& run = runs.emplace_back();
      run.cell = {nodes, size};
      run.times[{1, 2}] = std::vector<double>(10, 100 + nodes * size + size * size);
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs), "POLYNOMIAL", 4));
  EXPECT_THAT(model.models(0).value().terms(), SizeIs(6));
  EXPECT_NEAR(EvaluateModel(model.models(0).value(), {5, 12}), 100 + 60 + 144, 1e-3);
  EXPECT_THAT(
      model.notes(),
      testing::Contains("polynomials of order 2, not 3: there are too few cells for a model "
                        "of type POLYNOMIAL: 9 for 10 coefficients"));
}

// What is predicted of 4 ranks that come from `start` to the first of these calls, of which each takes
// 10 us times its callsite, the first ever 1 ms more.
WorkloadEvaluation EvaluationOfCalls(int64_t start, const std::vector<int64_t>& callsites) {
  std::vector<RunMeasurements> runs;
  for (double ranks : {2, 4}) {
    std::vector<TracedCall> calls;
    int64_t source = start;
    for (const int64_t callsite : callsites) {
      TracedCall& call = calls.emplace_back();
      call.source = std::exchange(source, callsite);
      call.destination = callsite;
      call.us = 10.0 * static_cast<double>(callsite);
      call.operation = "MPI_Barrier";
    }
    calls[2].us += 1000;
    RunName name;
    name.cell = {ranks, 0};
    for (name.rank = 0; static_cast<double>(name.rank) < ranks; ++name.rank) {
      runs.push_back(*MeasureCalls(calls, "calls", name));
    }
  }
  const WorkloadEvaluation evaluation = *EvaluateWorkload(*FitRuns(runs), {4, 0});
  EXPECT_LE(evaluation.before_us() + evaluation.iterations() * evaluation.iteration_us(),
            evaluation.total_us() * (1 + 1e-9));
  return evaluation;
}

std::vector<int64_t> Repeated(int times, const std::vector<int64_t>& calls,
                              std::vector<int64_t> before = {}) {
  for (int i = 0; i < times; ++i) before.insert(before.end(), calls.begin(), calls.end());
  return before;
}

TEST(WorkloadTest, IterationsAreThoseOfTheMainLoop) {
  // 7 -> 1 once, then twenty times 1 2 3: 60 us each, and 1 ms.
  const WorkloadEvaluation from_outside = EvaluationOfCalls(7, Repeated(20, {1, 2, 3}));
  EXPECT_NEAR(from_outside.iterations(), 20, 1e-6);
  EXPECT_NEAR(from_outside.iteration_us(), 60, 1e-6);
  EXPECT_NEAR(from_outside.before_us(), 10, 1e-6);
  EXPECT_THAT(
      FormatWorkloadEvaluation(from_outside),
      HasSubstr("20 iterations of 0.060 ms, 0.990 ms more for what is done the first time"));
  // Without a way to the first call; calls of their own before the loop.
  const WorkloadEvaluation with_prologue = EvaluationOfCalls(0, Repeated(20, {1, 2, 3}, {8, 9, 7}));
  EXPECT_NEAR(with_prologue.iterations(), 20, 1e-6);
  EXPECT_NEAR(with_prologue.iteration_us(), 60 - 10.0 / 20, 1e-6);
  EXPECT_NEAR(with_prologue.before_us(), 90 + 1070 + 10, 1e-6);
  EXPECT_THAT(FormatWorkloadEvaluation(with_prologue),
              HasSubstr("20 iterations of 0.059 ms, 1.170 ms before them\n"));
  // A trace that begins as each iteration does.
  EXPECT_NEAR(EvaluationOfCalls(3, Repeated(20, {1, 2, 3})).iterations(), 20, 1e-6);
  // Loops within the loop.
  EXPECT_NEAR(EvaluationOfCalls(0, Repeated(6, {1, 1, 1, 2, 3, 3})).iterations(), 6, 1e-6);
  EXPECT_NEAR(EvaluationOfCalls(0, Repeated(3, {1, 2, 1, 2, 1, 2, 3})).iterations(), 3, 1e-6);
  EXPECT_NEAR(EvaluationOfCalls(0, Repeated(9, {1})).iterations(), 9, 1e-6);
  // Iterations that do not end alike.
  EXPECT_NEAR(EvaluationOfCalls(0, Repeated(4, {1, 3, 2, 1, 2, 3}, {1, 2, 3})).iterations(), 9,
              1e-6);
}

// Shares are those of a class's own total; a table without rows is not shown.
TEST(WorkloadTest, ClassesOfRanksAreToldApart) {
  WorkloadEvaluation evaluation;
  for (const char* const name : {"first", "others"}) {
    EvaluatedTransition& t = *evaluation.add_transitions();
    t.set_source(1);
    t.set_destination(2);
    t.set_count(2);
    t.set_us(name[0] == 'f' ? 5 : 4);
    t.set_type("CONSTANT");
    t.set_rank_class(name);
    evaluation.add_messages()->set_type("CONSTANT");
  }
  EXPECT_THAT(FormatWorkloadEvaluation(evaluation),
              HasSubstr("from  to  count     us    share  model     ranks\n"
                        "----  --  -----  -----  -------  --------  ------\n"
                        "   1   2    2.0  5.000  100.0 %  CONSTANT  first\n"
                        "   1   2    2.0  4.000  100.0 %  CONSTANT  others\n"
                        "\n"
                        "messages of 1 callsite are constant\n"));
  // Also in comparisons.
  std::vector<RunMeasurements> runs = MadeUpRuns(36, 22);
  for (RunMeasurements& run : runs) run.cell.kind.rank_class = "others";
  const Measurements measured = Aggregate(runs);
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(measured));
  ASSERT_OK_AND_ASSIGN(const WorkloadComparison comparison, CompareWorkload(model, measured));
  EXPECT_EQ(comparison.cells(0).rank_class(), "others");
  EXPECT_THAT(FormatWorkloadComparison(comparison), HasSubstr("    4    16  others  "));
}

// 51 of the published message models are constant, 11 vary: found again from their values.
TEST(WorkloadTest, FindsThePublishedSplitOfMessages) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(
      const std::vector<CallModel> models,
      ParseModelFile(ReadText(absl::StrCat(*shared, "/golden/ember/models/msg_exp.model")), "m"));
  std::vector<RunMeasurements> runs;
  for (double nodes : {4, 9, 16, 25, 36, 49, 64}) {
    for (double size = 16; size <= 24; ++size) {
      RunMeasurements& run = runs.emplace_back();
      run.cell = {nodes, size};
      for (const CallModel& call : models) {
        ASSERT_OK_AND_ASSIGN(const double bytes, EmberValue(call.value(), 1, run.cell));
        run.messages[call.source()] = {bytes};
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel fitted, FitWorkload(Aggregate(runs)));
  std::vector<int64_t> varying;
  EXPECT_THAT(fitted.messages(), SizeIs(62));
  for (const CallModel& call : fitted.messages()) {
    if (call.value().type() != kConstant) varying.push_back(call.source());
  }
  EXPECT_THAT(varying, ElementsAre(26, 28, 30, 41, 42, 43, 44, 46, 47, 48, 49));
}

// Fitted to 4 to 36 nodes and sizes 16 to 22, the published runs beyond are predicted.
TEST(WorkloadTest, PredictsThePublishedRuns) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const std::string folder = absl::StrCat(*shared, "/golden/ember/trace/");
  std::vector<RunMeasurements> fitted, beyond;
  for (int nodes : {4, 9, 16, 25, 36, 49}) {
    for (int size = 16; size <= 23; ++size) {
      const std::string name =
          absl::StrCat(folder, "bfs_exectrace_", nodes, "-", nodes, "-1-", size, "-0.txt");
      ASSERT_OK_AND_ASSIGN(const RunName cell, ReadRunName(name, ""));
      ASSERT_OK_AND_ASSIGN(RunMeasurements run, ParseMeasurements(ReadText(name), name, cell));
      (nodes <= 36 && size <= 22 ? fitted : beyond).push_back(std::move(run));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(fitted)));
  EXPECT_LE(model.errors().in_sample(), 0.11);
  double error = 0;
  for (const RunMeasurements& run : beyond) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, run.cell));
    error += std::abs(evaluation.total_us() / SumOf(run.times) - 1);
    EXPECT_LE(evaluation.low_us(), SumOf(run.times));
    EXPECT_GE(evaluation.high_us(), SumOf(run.times));
  }
  EXPECT_LE(error / static_cast<double>(beyond.size()), 0.1);
}

}  // namespace
}  // namespace meridian
