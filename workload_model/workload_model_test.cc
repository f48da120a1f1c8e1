// The chain from measured runs to predictions, on made-up codes whose truth is known and, where the
// published data are there, on these.
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/call_traces.h"
#include "workload_model/curve_fit.h"
#include "workload_model/measurements.h"
#include "workload_model/model_files.h"
#include "workload_model/models.h"
#include "workload_model/workload.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Model MakeModel(absl::string_view type, const std::vector<double>& coefficients,
                const std::vector<std::string>& terms = {}) {
  Model model;
  model.set_type(std::string(type));
  for (double value : coefficients) model.add_coefficients(value);
  for (const std::string& term : terms) model.add_terms(term);
  return model;
}

std::string ReadText(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? std::string(file->bytes()) : "";
}

TEST(ModelsTest, FormulasAreAsStated) {
  const WorkloadCell cell = {16, 5};
  EXPECT_EQ(EvaluateModel(MakeModel(kConstant, {7}), cell), 7);
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kExponential, {0.01, 0.02, 0.1, 1}), cell),
                   std::exp(0.8 + 0.32 + 0.5 + 1));
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kBilinear, {1, 2, 3, 4}), cell), 80 + 32 + 15 + 4);
  // 3 + 2 size^2 nodes.
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kPolynomial, {3, 2}, {"0,0", "2,1"}), cell), 803);
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kTrace, {1, 2, 6}), cell), 3);
  // u = 32 / 16 = 2.
  EXPECT_DOUBLE_EQ(
      EvaluateModel(MakeModel(kNormal, {1, 10, 100, 1000}, {"1", "lg n", "u", "u^1.5"}), cell),
      1 + 40 + 200 + 1000 * 2 * std::sqrt(2.0));
  EXPECT_EQ(EvaluateModel(MakeModel(kBilinear, {-1, 0, 0, 0}), cell), 0);
}

// Beyond what was fitted, the tangent: at u = 4 it is 8, with a slope of 3.
TEST(ModelsTest, NothingGrowsFasterThanTheShareBeyondTheFitted) {
  Model model = MakeModel(kNormal, {1}, {"u^1.5"});
  model.set_most_u(4);
  EXPECT_DOUBLE_EQ(EvaluateModel(model, {1, 2}), 8);
  EXPECT_DOUBLE_EQ(EvaluateModel(model, {1, 3}), 8 + 3 * 4);
}

TEST(ModelsTest, ModelsThatCanNotBeMeantAreRefused) {
  EXPECT_OK(CheckModel(MakeModel(kTrace, {1})));
  for (const Model& model :
       {MakeModel("LINEAR", {1}), MakeModel(kConstant, {}), MakeModel(kConstant, {std::nan("")}),
        MakeModel(kExponential, {1, 2, 3}), MakeModel(kTrace, {}),
        MakeModel(kPolynomial, {1}, {"1;2"}), MakeModel(kPolynomial, {1}, {"9,0"}),
        MakeModel(kPolynomial, {1, 2}, {"0,0"}), MakeModel(kNormal, {1}, {"n^7"})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckModel(model))) << model.type();
  }
}

TEST(EmberModelTest, RoundsHalfToEvenAndWraps) {
  const WorkloadCell cell = {2, 1};
  const Model half = MakeModel(kBilinear, {0, 0, 0, 0.0025});
  ASSERT_OK_AND_ASSIGN(const double rounded, EmberModel(half, 1000).Next(cell));
  EXPECT_EQ(rounded, 2);
  // Constants are not rounded, polynomials not negative.
  ASSERT_OK_AND_ASSIGN(const double constant,
                       EmberModel(MakeModel(kConstant, {0.0025}), 1000).Next(cell));
  EXPECT_EQ(constant, 2.5);
  const Model negative = MakeModel(kPolynomial, {-4}, {"0,0"});
  ASSERT_OK_AND_ASSIGN(const double clamped, EmberModel(negative, 1000).Next(cell));
  EXPECT_EQ(clamped, 0);
  EXPECT_TRUE(absl::IsOutOfRange(
      EmberModel(MakeModel(kBilinear, {0, 0, 0, -1}), 1000).Next(cell).status()));
  const Model trace = MakeModel(kTrace, {1, 2});
  EmberModel in_turn(trace, 1);
  std::vector<double> values;
  for (int i = 0; i < 3; ++i) values.push_back(in_turn.Next(cell).value_or(-1));
  EXPECT_THAT(values, ElementsAre(1, 2, 1));
}

// The values that the published motif computes, to the ns.
TEST(EmberModelTest, EqualsThePublishedMotif) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  std::map<std::string, std::map<std::pair<int64_t, int64_t>, Model>> models;
  for (const auto& [name, file] : {std::pair<std::string, std::string>{"EXP", "exec_exp.model"},
                                   {"POLY", "exec_poly.model"}}) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<CallModel> calls,
        ParseModelFile(ReadText(absl::StrCat(*shared, "/golden/ember/models/", file)), file));
    for (const CallModel& call : calls) {
      if (call.threads() == 1) models[name][{call.source(), call.destination()}] = call.value();
    }
    EXPECT_THAT(models[name], SizeIs(73));
  }
  int rows = 0;
  const std::string golden = ReadText(absl::StrCat(*shared, "/golden/ember/golden_exec.csv"));
  for (absl::string_view line : absl::StrSplit(golden, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (fields[0] == "model") continue;
    std::vector<int64_t> numbers;
    for (size_t i = 1; i < fields.size(); ++i) {
      numbers.emplace_back();
      ASSERT_TRUE(absl::SimpleAtoi(fields[i], &numbers.back())) << line;
    }
    const Model& model = models[fields[0]].at({numbers[0], numbers[1]});
    ASSERT_OK_AND_ASSIGN(const double ns, EmberModel(model, 1000)
                                              .Next({static_cast<double>(numbers[3]),
                                                     static_cast<double>(numbers[4])}));
    EXPECT_EQ(ns, static_cast<double>(numbers[5])) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 584);
}

TEST(ModelFilesTest, WhatIsWrittenIsReadBackTheSame) {
  std::vector<CallModel> models(2);
  models[0].set_source(1);
  models[0].set_destination(2);
  models[0].set_threads(1);
  *models[0].mutable_value() = MakeModel(kExponential, {-0.005056415928899995, 1.0 / 3, 1e-17, 2});
  models[1].set_source(33);
  models[1].set_destination(34);
  models[1].set_threads(4);
  *models[1].mutable_value() = MakeModel(kTrace, {59, 143.1, 0.1 + 0.2});
  ASSERT_OK_AND_ASSIGN(const std::string text, FormatTypedModels(models));
  EXPECT_TRUE(IsModelFile(text));
  ASSERT_OK_AND_ASSIGN(const std::vector<CallModel> read, ParseModelFile(text, "m.model"));
  ASSERT_THAT(read, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].SerializeAsString(), models[i].SerializeAsString());
  }
  for (CallModel& call : models) {
    *call.mutable_value() = MakeModel(kPolynomial, {1.0 / 3, -2}, {"0,0", "1,2"});
  }
  ASSERT_OK_AND_ASSIGN(const std::string table, FormatPolynomialTable(models));
  EXPECT_THAT(table, HasSubstr("callsite_source callsite_destination threads_per_rank 0,0 1,2\n"));
  ASSERT_OK_AND_ASSIGN(const std::vector<CallModel> tabled, ParseModelFile(table, "poly"));
  EXPECT_EQ(tabled[1].SerializeAsString(), models[1].SerializeAsString());
  EXPECT_FALSE(FormatTypedModels(models).ok());
}

TEST(ModelFilesTest, MistakesAreNamedWithTheirLine) {
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{"1 2 1 TRACE 1\n3 4 1 TRACE\n",
                                            "m:2: a model of type TRACE has no values"},
        {"1 2 1 TRACE 1\n3 4 1 TRACE 1 x\n", "m:2: 'x' is no number"},
        {"1 2 1 TRACE 1\n3 1 CONSTANT 8\n", "m:2: models of times and of messages"},
        {"1 2 1 TRACE 1\n1 2 1 CONSTANT 8\n", "m:2: there are two models"},
        {"1 2 1 LINEAR 1\n", "m:1: '1 2 1 LINEAR 1' is no model"},
        {"-1 2 1 TRACE 1\n", "m:1: '-1' is no callsite"},
        {"1 2 1 CONSTANT nan\n", "no finite number"},
        {"callsite threads_per_rank 0,0 x\n", "unknown term 'x'"},
        {"callsite threads_per_rank 0,0\n1 1 2 3\n", "not one coefficient for each term"},
        {"\n", "there is no model"}}) {
    EXPECT_THAT(ParseModelFile(text, "m").status().message(), HasSubstr(message)) << text;
  }
}

TEST(CallTracesTest, ReadsBothForms) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<TracedCall> first,
      ParseCallTrace("printed by the program\n"
                     "TRACE 0 -> 1 1672852472724046.0 MPI_Allreduce coll 0xc4000009 8 to 0 1 \n"
                     "TRACE 34 -> 35 614.0 MPI_Alltoallv coll 0xc4000009 12 to 0>4<4 1>8<0 \n"
                     "TRACE 13 -> 14 19.0 MPI_Sendrecv p2p 8 to 1:2\n"
                     "TRACE 61 -> 62 7.0 MPI_Comm_free \n",
                     "a.trace"));
  ASSERT_THAT(first, SizeIs(4));
  EXPECT_THAT(first[1].members, ElementsAre(0, 1));
  EXPECT_EQ(first[1].bytes, 12);
  EXPECT_EQ(first[2].peer, 2);
  EXPECT_EQ(first[3].operation, "MPI_Comm_free");
  EXPECT_FALSE(first[3].bytes.has_value());
  ASSERT_OK_AND_ASSIGN(
      const std::vector<TracedCall> second,
      ParseCallTrace("callsite,op,dur_us,sendSize_B,dest_group,dest_global,region\n"
                     "1,MPI_Isend,12.000000,4,1,1,main.exchange\n"
                     "2,MPI_Test,5.000000,0,-1,-1,main.exchange\n",
                     "b.csv"));
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_EQ(second[0].bytes, 4);
  EXPECT_EQ(second[1].source, 1);
  EXPECT_EQ(second[1].us, 5);
  EXPECT_FALSE(second[1].bytes.has_value());
}

TEST(CallTracesTest, MistakesAreNamedWithTheirLine) {
  const std::string good = "TRACE 1 -> 2 5.0 MPI_Barrier coll 0x44 0 to 0 1 \n";
  for (const std::string bad :
       {"TRACE 1 -> 2", "TRACE 1 -> x 5.0 MPI_Barrier", "TRACE 1 -> 2 nan MPI_Barrier",
        "TRACE 1 -> 2 5.0 MPI_Send p2p -8 to 1:2", "TRACE 1 -> 2 5.0 MPI_Send p2p 8 to 1",
        "TRACE 1 -> 2 5.0 MPI_Barrier coll 0x44 0 to 0 y", "TRACE 1 -> 2 5.0 Barrier"}) {
    EXPECT_THAT(ParseCallTrace(absl::StrCat(good, bad, "\n"), "a.trace").status().message(),
                HasSubstr("a.trace:2: '"))
        << bad;
  }
  EXPECT_FALSE(ParseCallTrace("nothing\n", "a.trace").ok());
}

constexpr char kTable[] =
    "@--- Callsites: 1 ---\n"
    " ID TmpID HashID Lev File/Address  Line Parent_Funct MPI_Call\n"
    "  1   4 137   0 SpParMat.cpp   795 combblas::SpParMat<long, bool>::getncol() const Allreduce\n"
    "  1   4 137   1 0x5555 main \n";

TEST(CallTracesTest, CallsitesAreFoundInTables) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Callsite> sites, ParseCallsites(kTable, "a.mpiP"));
  ASSERT_THAT(sites, SizeIs(1));
  EXPECT_EQ(sites[0].traced_id, 4);
  EXPECT_EQ(sites[0].operation, "Allreduce");
  EXPECT_THAT(sites[0].frames,
              ElementsAre("SpParMat.cpp:795 combblas::SpParMat<long, bool>::getncol() const",
                          "0x5555 main"));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Callsite> stock,
      ParseCallsites("---\n@--- Callsites: 4 ---\n---\n"
                     " ID Lev File/Address             Line Parent_Funct       MPI_Call\n"
                     "  1   0 mpistubs.c               1172 hypre_MPI_Allreduce Allreduce\n"
                     "  1   1 timing.c                  338 hypre_PrintTiming\n"
                     "@--- Aggregate Time ---\n Allreduce 1 2 3\n",
                     "b.mpiP"));
  ASSERT_THAT(stock, SizeIs(1));
  EXPECT_FALSE(stock[0].traced_id.has_value());
  EXPECT_THAT(stock[0].frames, SizeIs(2));
  EXPECT_THAT(ParseCallsites("hello", "c").status().message(), HasSubstr("no table"));
}

TEST(CallTracesTest, TracesAndTablesMustBelongTogether) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Callsite> sites, ParseCallsites(kTable, "a.mpiP"));
  ASSERT_OK_AND_ASSIGN(std::vector<TracedCall> calls,
                       ParseCallTrace("TRACE 3 -> 4 5.0 MPI_Allreduce coll 0x4 8 to 0 1\n", "a"));
  EXPECT_OK(CheckCallsites(calls, sites, "a"));
  calls[0].operation = "MPI_Bcast";
  EXPECT_THAT(CheckCallsites(calls, sites, "a").message(), HasSubstr("is MPI_Bcast in the trace"));
  calls[0].destination = 5;
  EXPECT_THAT(CheckCallsites(calls, sites, "a").message(),
              HasSubstr("a: callsite 5 of the trace is not in the table"));
}

TEST(CallTracesTest, WhatTheProgramPrintedFirstIsPassedOver) {
  constexpr char kText[] = "starting\n\nTRACE 1 -> 2 5.0 MPI_Barrier\n";
  EXPECT_TRUE(IsCallTrace(kText));
  ASSERT_OK_AND_ASSIGN(const std::vector<TracedCall> calls, ParseCallTrace(kText, "a"));
  EXPECT_THAT(calls, SizeIs(1));
}

TEST(CallTracesTest, TimesOfCallsAreFoundInReports) {
  constexpr char kHead[] =
      "@--- Callsite Time statistics (all, milliseconds): 2 ---\n---\n"
      "Name Site Rank Count Max Mean Min App% MPI%\n";
  ASSERT_OK_AND_ASSIGN(
      const auto times,
      ParseCallTimes(
          absl::StrCat(kHead, "Bcast 7 0 9 0.2 0.1 0.05 1 2\nBcast 7 * 9 0.2 0.125 0 1 2\n",
                       "@--- Other ---\nx\n"),
          "a"));
  EXPECT_THAT(times, ElementsAre(testing::Pair(7, 125)));
  ASSERT_OK_AND_ASSIGN(const auto none, ParseCallTimes("hello\n", "a"));
  EXPECT_THAT(none, SizeIs(0));
  EXPECT_THAT(ParseCallTimes(absl::StrCat(kHead, "Bcast 7 * x\n"), "a").status().message(),
              HasSubstr("a:4: this is no row of the statistics"));
}

TEST(CallTracesTest, TablesThatAreCutShortAreRefused) {
  EXPECT_THAT(ParseCallsites("@--- Callsites:\n", "a").status().message(),
              HasSubstr("a:1: the number of callsites is no number"));
  EXPECT_THAT(
      ParseCallsites("@--- Callsites: 1 ---\n ID Lev File/Address Line Parent_Funct MPI_Call\n"
                     " 1 0 Allreduce\n",
                     "a")
          .status()
          .message(),
      HasSubstr("a:3: this is no row"));
}

TEST(MeasurementsTest, NamesTellTheCell) {
  ASSERT_OK_AND_ASSIGN(const RunName published,
                       ReadRunName("x_9/bfs_exectrace_16-32-2-20-3.txt", ""));
  EXPECT_EQ(published.cell.nodes, 16);
  EXPECT_EQ(published.cell.kind.threads, 2);
  EXPECT_EQ(published.cell.kind.ranks_per_node, 2);
  EXPECT_EQ(published.cell.size, 20);
  EXPECT_EQ(published.rank, 3);
  EXPECT_EQ(published.run, "x_9/bfs_exectrace_16-32-2-20-*.txt");
  ASSERT_OK_AND_ASSIGN(const RunName own,
                       ReadRunName("runs/n8_s1.5.trace", R"(n(?P<nodes>\d+)_s(?P<size>[\d.]+)\.)"));
  EXPECT_EQ(own.cell.size, 1.5);
  EXPECT_EQ(own.cell.kind.threads, 1);
  EXPECT_EQ(own.rank, 0);
  // As A-mpiP names its files.
  ASSERT_OK_AND_ASSIGN(const RunName numbered,
                       ReadRunName("n4_s2/n9_s20.trace_7", "n(?P<nodes>\\d+)_s(?P<size>\\d+)"));
  EXPECT_EQ(numbered.cell.nodes, 9);
  EXPECT_EQ(numbered.rank, 7);
  EXPECT_EQ(numbered.run, "n4_s2/n9_s20.trace_*");
  EXPECT_THAT(ReadRunName("a.trace", "").status().message(), HasSubstr("--name_pattern"));
  EXPECT_THAT(ReadRunName("a.trace", "(").status().message(), HasSubstr("--name_pattern: "));
  EXPECT_THAT(ReadRunName("a.trace", "a").status().message(), HasSubstr("groups called nodes"));
  EXPECT_FALSE(ReadRunName("n0_s1", "n(?P<nodes>\\d+)_s(?P<size>\\d+)").ok());
}

TEST(MeasurementsTest, ATableTellsTheCells) {
  ASSERT_OK_AND_ASSIGN(const auto cells,
                       ParseCells("file,nodes,size\na.trace,16,20\nb.trace,4,1.5,2\n\n", "t.csv"));
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_EQ(cells.at("a.trace").nodes, 16);
  EXPECT_EQ(cells.at("a.trace").kind.threads, 1);
  EXPECT_EQ(cells.at("b.trace").size, 1.5);
  EXPECT_EQ(cells.at("b.trace").kind.threads, 2);
  for (const char* bad : {"a,1", "a,0,1", "a,x,1", "a,1,2,0", ",1,2", "a,1,2,3,4", "a,nan,2"}) {
    EXPECT_THAT(ParseCells(absl::StrCat("x,1,2\n", bad), "t.csv").status().message(),
                HasSubstr("t.csv:2: this is no cell"))
        << bad;
  }
  EXPECT_THAT(ParseCells("a,1,2\na,3,4", "t.csv").status().message(), HasSubstr("twice"));
}

// Three runs of one cell: the wild one moves nothing, and how much they differ is kept.
TEST(MeasurementsTest, RunsOfACellAreTakenTogether) {
  std::vector<RunMeasurements> runs(3);
  runs[0].times[{1, 2}] = {100, 10, 10};
  runs[1].times[{1, 2}] = {120, 12, 12};
  runs[2].times[{1, 2}] = {9000, 900, 900, 900};
  const Measurements together = Aggregate(runs);
  ASSERT_THAT(together.cells, SizeIs(1));
  const CellValue& value = together.times.at({1, 2}).begin()->second;
  EXPECT_EQ(value.count, 3);
  EXPECT_EQ(value.first, 120);
  EXPECT_EQ(value.steady, 12);
  EXPECT_NEAR(value.spread, 1.4826 * 2 / 12, 1e-12);
  EXPECT_EQ(value.Sum(), 120 + 2 * 12);
}

// Two ranks that do different things: the cell's total is what a rank takes, not what both do.
TEST(MeasurementsTest, WhatSomeRanksDoNotDoCountsForTheOthers) {
  std::vector<RunMeasurements> runs(2);
  runs[0].times[{1, 2}] = {200};
  runs[1].times[{1, 3}] = {200};
  const Measurements together = Aggregate(runs);
  EXPECT_EQ(together.times.at({1, 2}).begin()->second.count, 0.5);
  EXPECT_EQ(together.times.at({1, 2}).begin()->second.Sum(), 100);
  ASSERT_THAT(together.measured, SizeIs(1));
  EXPECT_EQ(together.measured[0].total_us(), 200);
}

TEST(MeasurementsTest, ATimeThatStandsOutIsNoted) {
  RunMeasurements run;
  run.file = "wild.txt";
  run.times[{33, 34}] = {50, 51, 52, 100000, 49};
  EXPECT_THAT(Aggregate({run}).notes,
              ElementsAre(HasSubstr("wild.txt: from callsite 33 to 34 took 100000 us once")));
}

TEST(MeasurementsTest, ModelsAreNoMeasurements) {
  EXPECT_THAT(ParseMeasurements("1 2 1 EXPONENTIAL 1 2 3 4\n", "m", RunName()).status().message(),
              HasSubstr("not measured values"));
  EXPECT_THAT(ParseMeasurements("1 2 4 TRACE 1\n", "m", RunName()).status().message(),
              HasSubstr("values of 4 threads"));
  EXPECT_THAT(ParseMeasurements("1 2 1 TRACE -1\n", "m", RunName()).status().message(),
              HasSubstr("negative value"));
  EXPECT_THAT(ParseMeasurements("hello\n", "m", RunName()).status().message(),
              HasSubstr("m: is neither"));
  EXPECT_THAT(ParseMeasurements("1 2 1 TRACE 1e300\n", "m", RunName()).status().message(),
              HasSubstr("more than any time"));
  ASSERT_OK_AND_ASSIGN(const RunMeasurements stepped,
                       ParseMeasurements("TRACE 1 -> 2 -5.0 MPI_Barrier\n", "m", RunName()));
  EXPECT_THAT(Aggregate({stepped}).notes, ElementsAre(HasSubstr("some times are negative")));
  // From callsite 0 is a time since 1970.
  ASSERT_OK_AND_ASSIGN(
      const RunMeasurements run,
      ParseMeasurements("0 1 1 TRACE 1672852472724046\n1 2 1 TRACE 5\n", "m", RunName()));
  EXPECT_THAT(run.times, SizeIs(1));
}

std::vector<MeasuredPoint> Points(const std::function<double(double, double)>& value) {
  std::vector<MeasuredPoint> points;
  for (double nodes : {4, 9, 16, 25, 36}) {
    for (double size = 16; size <= 22; ++size) {
      points.push_back({{nodes, size}, value(nodes, size)});
    }
  }
  return points;
}

double Share(double nodes, double size) { return std::exp2(size) / nodes; }

TEST(CurveFitTest, FindsTheTruth) {
  const auto truth = [](double n, double s) { return 20 + 3 * std::log2(n) + 1e-3 * Share(n, s); };
  const ChosenModel chosen = ChooseModel(Points(truth), FitOptions());
  EXPECT_THAT(std::vector<std::string>(chosen.model.terms().begin(), chosen.model.terms().end()),
              ElementsAre("1", "lg n", "u"));
  EXPECT_NEAR(EvaluateModel(chosen.model, {64, 24}) / truth(64, 24), 1, 1e-3);
  EXPECT_LT(chosen.left_out.value_or(1), 1e-3);
}

TEST(CurveFitTest, ConstantsStayConstant) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.1);
  const ChosenModel chosen = ChooseModel(
      Points([&](double, double) { return 50 * std::exp(noise(random)); }), FitOptions());
  EXPECT_EQ(chosen.model.type(), kConstant);
  EXPECT_NEAR(chosen.model.coefficients(0), 50, 2);
}

// One run of ten times the time does not move the others.
TEST(CurveFitTest, AWildPointMovesLittle) {
  const auto truth = [](double n, double s) { return 20 + 1e-3 * Share(n, s); };
  std::vector<MeasuredPoint> points = Points(truth);
  points[17].value *= 10;
  const ChosenModel chosen = ChooseModel(points, FitOptions());
  EXPECT_NEAR(EvaluateModel(chosen.model, {36, 22}) / truth(36, 22), 1, 0.03);
}

TEST(CurveFitTest, NoCoefficientIsNegative) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.3);
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::string> all = {"1", "lg n", "u^0.5", "u", "u^1.5"};
    const Model model =
        FitNormal(Points([&](double n, double s) { return 100 * std::exp(noise(random)) / n + s; }),
                  all, FitOptions());
    for (double coefficient : model.coefficients()) EXPECT_GE(coefficient, 0);
  }
}

// How often a ring goes round.
TEST(CurveFitTest, CountsFollowTheRing) {
  const Model model =
      FitCount(Points([](double n, double) { return 200 * (std::sqrt(n) - 1); }), FitOptions());
  EXPECT_NEAR(EvaluateModel(model, {64, 24}), 1400, 1);
  EXPECT_EQ(FitCount(Points([](double, double) { return 64; }), FitOptions()).type(), kConstant);
}

TEST(CurveFitTest, TypesThatAreAskedForAreFitted) {
  const auto exponential = [](double n, double s) {
    return std::exp(-0.005 * n * s + 0.08 * n + 0.4 * s - 3);
  };
  ASSERT_OK_AND_ASSIGN(const Model e, FitType(Points(exponential), "EXPONENTIAL", 0, {}));
  EXPECT_THAT(std::vector<double>(e.coefficients().begin(), e.coefficients().end()),
              ElementsAre(testing::DoubleNear(-0.005, 1e-9), testing::DoubleNear(0.08, 1e-8),
                          testing::DoubleNear(0.4, 1e-8), testing::DoubleNear(-3, 1e-7)));
  const auto polynomial = [](double n, double s) { return 5 + 2 * n + 0.5 * s * s * n * n; };
  ASSERT_OK_AND_ASSIGN(const Model p, FitType(Points(polynomial), "POLYNOMIAL", 4, {}));
  EXPECT_EQ(p.terms_size(), 15);
  EXPECT_NEAR(EvaluateModel(p, {30, 20}) / polynomial(30, 20), 1, 1e-6);
  ASSERT_OK_AND_ASSIGN(const Model b, FitType(Points([](double n, double s) { return n * s + 7; }),
                                              "BILINEAR", 0, {}));
  EXPECT_NEAR(EvaluateModel(b, {64, 24}), 64 * 24 + 7, 1e-4);
}

TEST(CurveFitTest, WhatCanNotBeToldIsRefused) {
  std::vector<MeasuredPoint> points = Points([](double, double) { return 1; });
  EXPECT_THAT(
      FitType(absl::MakeConstSpan(points).subspan(0, 3), "EXPONENTIAL", 0, {}).status().message(),
      HasSubstr("too few cells"));
  // Seven sizes of one number of nodes.
  EXPECT_THAT(
      FitType(absl::MakeConstSpan(points).subspan(0, 7), "BILINEAR", 0, {}).status().message(),
      HasSubstr("more numbers of nodes"));
  EXPECT_FALSE(FitType(points, "LINEAR", 0, {}).ok());
}

std::vector<RunMeasurements> MadeUpRuns(double most_nodes, double most_size) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<RunMeasurements> runs;
  for (double nodes : {4, 9, 16, 25, 36, 49}) {
    for (double size = 16; size <= 23; ++size) {
      if (nodes > most_nodes || size > most_size) continue;
      RunMeasurements& run = runs.emplace_back();
      run.cell = {nodes, size};
      const double u = Share(nodes, size);
      for (int i = 0; i < 40; ++i) {
        run.times[{1, 2}].push_back((30 + 5 * std::log2(nodes)) * std::exp(noise(random)));
        run.times[{2, 1}].push_back((10 + 2e-3 * u) * std::exp(noise(random)));
        run.messages[1].push_back(8);
        run.messages[2].push_back(std::floor(u / 4));
      }
      run.times[{1, 2}][0] = 10000;
    }
  }
  return runs;
}

double TotalOf(const RunMeasurements& run) {
  double total = 0;
  for (const auto& [transition, values] : run.times) {
    for (double value : values) total += value;
  }
  return total;
}

TEST(WorkloadTest, PredictsLargerRunsWithinItsInterval) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(MadeUpRuns(36, 22)), WorkloadFitOptions()));
  EXPECT_EQ(model.cells(), 35);
  EXPECT_LT(model.errors().in_sample(), 0.05);
  EXPECT_TRUE(model.errors().has_extrapolation());
  int inside = 0, all = 0;
  for (const RunMeasurements& run : MadeUpRuns(49, 23)) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, run.cell));
    EXPECT_NEAR(evaluation.total_us() / TotalOf(run), 1, 0.1);
    EXPECT_EQ(evaluation.extrapolated(), run.cell.nodes > 36 || run.cell.size > 22);
    inside += TotalOf(run) >= evaluation.low_us() && TotalOf(run) <= evaluation.high_us() ? 1 : 0;
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
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(MadeUpRuns(36, 22)), WorkloadFitOptions()));
  ASSERT_OK_AND_ASSIGN(const WorkloadModel read, ParseWorkloadModel(ReportToJson(model), "M.json"));
  for (const WorkloadCell& cell : {WorkloadCell{4, 16}, {100, 26}}) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation a, EvaluateWorkload(model, cell));
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation b, EvaluateWorkload(read, cell));
    EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
  }
  EXPECT_THAT(EvaluateWorkload(model, {4, 16, {3}}).status().message(),
              HasSubstr("no model of 3 threads; there are those of 1 thread"));
}

// Times of 1, 2 and 8 threads, of which 4 are asked for: half the time for twice the threads.
TEST(WorkloadTest, ThreadsBetweenMeasuredOnesArePredicted) {
  std::vector<RunMeasurements> runs;
  for (int64_t threads : {1, 2, 8}) {
    for (RunMeasurements run : MadeUpRuns(threads == 1 ? 36 : 16, 22)) {
      run.cell.kind.threads = threads;
      for (auto& [transition, values] : run.times) {
        for (double& value : values) value /= static_cast<double>(threads);
      }
      runs.push_back(std::move(run));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs), {}));
  ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation one, EvaluateWorkload(model, {16, 20}));
  ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation four, EvaluateWorkload(model, {16, 20, {4}}));
  EXPECT_NEAR(four.total_us() / one.total_us(), 0.25, 0.02);
  EXPECT_THAT(four.notes(), ElementsAre(HasSubstr("4 threads were not measured")));
  EXPECT_GT(four.high_us() / four.low_us(), one.high_us() / one.low_us());
  // What was measured with 2 threads is what counts for 2 threads.
  ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation two, EvaluateWorkload(model, {36, 20, {2}}));
  EXPECT_TRUE(two.extrapolated());
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
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitWorkload(Aggregate(runs), {}));
  ASSERT_THAT(model.messages(), SizeIs(1));
  EXPECT_NE(model.messages(0).value().type(), kConstant);
  ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation below, EvaluateWorkload(model, {4, 900}));
  EXPECT_NEAR(below.total_us(), 10 * (5 + 225), 30);
  EXPECT_LT(below.high_us() / below.low_us(), 1.5);
  EXPECT_NEAR(below.messages(0).bytes(), 1800, 20);
}

TEST(WorkloadTest, OtherFilesAreRefused) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel good,
                       FitWorkload(Aggregate(MadeUpRuns(36, 22)), WorkloadFitOptions()));
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
  EXPECT_THAT(FitWorkload(Measurements(), WorkloadFitOptions()).status().message(),
              HasSubstr("nothing to fit"));
}

TEST(WorkloadTest, WhatExplodesIsRefused) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(MadeUpRuns(36, 22)), WorkloadFitOptions()));
  EXPECT_OK(EvaluateWorkload(model, {1e6, 40}));
  EXPECT_THAT(EvaluateWorkload(model, {64, 1000}).status().message(),
              HasSubstr("lie too far from what is known"));
}

TEST(WorkloadTest, WhatIsNoNumberIsRefused) {
  CallModel call;
  call.set_source(7);
  *call.mutable_value() = MakeModel(kExponential, {1e300, -1e308, 1, 1});
  EXPECT_THAT(FiniteValue(call, call.value(), {1e8, 2.4e9}).status().message(),
              HasSubstr("of callsite 7 is no finite number"));
}

TEST(WorkloadTest, PredictionsAreComparedWithMeasurements) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(MadeUpRuns(36, 22)), WorkloadFitOptions()));
  std::vector<RunMeasurements> later = MadeUpRuns(49, 23);
  later.resize(2);
  later[1].times[{7, 8}] = {1e6};
  ASSERT_OK_AND_ASSIGN(const WorkloadComparison comparison,
                       CompareWorkload(model, Aggregate(later)));
  ASSERT_THAT(comparison.cells(), SizeIs(2));
  EXPECT_DOUBLE_EQ(comparison.cells(0).measured_us(), TotalOf(later[0]));
  EXPECT_NEAR(comparison.cells(0).error(), 0, 0.1);
  // Most of the second is of a transition that the model does not know.
  EXPECT_LT(comparison.cells(1).error(), -0.9);
  EXPECT_EQ(comparison.inside(), 1);
  EXPECT_THAT(comparison.notes(), ElementsAre(HasSubstr("no model from callsite 7 to 8")));
  EXPECT_THAT(comparison.transitions(), SizeIs(2));
  EXPECT_FALSE(CompareWorkload(model, Measurements()).ok());
}

// One cell is enough for constants, and says what it can not know.
TEST(WorkloadTest, FewCellsGiveConstants) {
  std::vector<RunMeasurements> runs = MadeUpRuns(36, 22);
  runs.resize(1);
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(runs), WorkloadFitOptions()));
  EXPECT_EQ(model.models(0).value().type(), kConstant);
  EXPECT_THAT(model.notes(), testing::Contains(HasSubstr("nothing can be left out")));
  WorkloadFitOptions polynomials;
  polynomials.models = "POLYNOMIAL";
  EXPECT_THAT(FitWorkload(Aggregate(runs), polynomials).status().message(),
              HasSubstr("from callsite 1 to 2: there are too few cells"));
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
        ASSERT_OK_AND_ASSIGN(const double bytes, EmberModel(call.value(), 1).Next(run.cell));
        run.messages[call.source()] = {bytes};
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel fitted,
                       FitWorkload(Aggregate(runs), WorkloadFitOptions()));
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
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model,
                       FitWorkload(Aggregate(fitted), WorkloadFitOptions()));
  EXPECT_LE(model.errors().in_sample(), 0.11);
  double error = 0;
  for (const RunMeasurements& run : beyond) {
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, run.cell));
    error += std::abs(evaluation.total_us() / TotalOf(run) - 1);
    EXPECT_LE(evaluation.low_us(), TotalOf(run));
    EXPECT_GE(evaluation.high_us(), TotalOf(run));
  }
  EXPECT_LE(error / static_cast<double>(beyond.size()), 0.1);
}

}  // namespace
}  // namespace meridian
