#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/measurements/model_files.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
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

// The values that the published motif computes, to the ns.
TEST(EmberValueTest, EqualsThePublishedMotif) {
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
    ASSERT_OK_AND_ASSIGN(const double ns, EmberValue(model, 1000,
                                                     {static_cast<double>(numbers[3]),
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
  ASSERT_OK_AND_ASSIGN(const std::string text, FormatModelFile(models));
  EXPECT_TRUE(IsModelFile(text));
  ASSERT_OK_AND_ASSIGN(const std::vector<CallModel> read, ParseModelFile(text, "m.model"));
  ASSERT_THAT(read, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].SerializeAsString(), models[i].SerializeAsString());
  }
  for (CallModel& call : models) {
    *call.mutable_value() = MakeModel(kPolynomial, {1.0 / 3, -2}, {"0,0", "1,2"});
  }
  ASSERT_OK_AND_ASSIGN(const std::string table, FormatModelFile(models));
  EXPECT_THAT(table, HasSubstr("callsite_source callsite_destination threads_per_rank 0,0 1,2\n"));
  ASSERT_OK_AND_ASSIGN(const std::vector<CallModel> tabled, ParseModelFile(table, "poly"));
  EXPECT_EQ(tabled[1].SerializeAsString(), models[1].SerializeAsString());
  // A table is of the same terms, and only generated motifs know the normal form.
  models[1].mutable_value()->set_terms(1, "2,2");
  EXPECT_THAT(FormatModelFile(models).status().message(),
              HasSubstr("callsite 33 has other terms than the first"));
  for (CallModel& call : models) *call.mutable_value() = MakeModel(kNormal, {1}, {"1"});
  EXPECT_THAT(FormatModelFile(models).status().message(),
              AllOf(HasSubstr("the published Ember motif reads no rows of type NORMAL"),
                    HasSubstr("generate --format=ember")));
  EXPECT_FALSE(FormatModelFile({}).ok());
}

TEST(ModelFilesTest, ModelsOfGeneratedMotifsHaveClassesAndRoles) {
  const std::string text =
      "3 4 1 CONSTANT 7\n"
      "class 0\n1 2 1 FIRST CONSTANT 90\n1 2 1 NORMAL 64 1 3 0 0 2 0\n"
      "1 2 1 WHOLE POLYNOMIAL 0 0 8 2 1 0.25\n1 2 1 LAST CONSTANT 1.5\n"
      "class 1\n1 2 1 CONSTANT 5\n";
  EXPECT_TRUE(IsModelFile(text));
  EXPECT_TRUE(IsModelFile("\nclass 0\n"));
  EXPECT_TRUE(IsModelFile("1 2 1 FIRST CONSTANT 90\n"));
  ASSERT_OK_AND_ASSIGN(const std::vector<CallModel> read, ParseModelFile(text, "m"));
  ASSERT_THAT(read, SizeIs(3));
  EXPECT_EQ(read[0].rank_class(), "");
  EXPECT_EQ(read[1].rank_class(), "0");
  // 3 us, and 2 for each of 40 / 4.
  EXPECT_EQ(EvaluateModel(read[1].compute(), {4, 40}), 23);
  EXPECT_EQ(read[1].compute().most_u(), 64);
  EXPECT_EQ(read[1].first().coefficients(0), 90);
  EXPECT_EQ(EvaluateModel(read[1].value(), {4, 10}), 8 + 0.25 * 100 * 4);
  EXPECT_EQ(read[2].rank_class(), "1");
  EXPECT_FALSE(read[2].has_compute());
  EXPECT_EQ(read[2].value().coefficients(0), 5);
  // The published form knows no classes.
  EXPECT_THAT(FormatModelFile({read[2], read[2]}).status().message(),
              HasSubstr("callsite 1 has models for several classes of ranks"));
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
        {"class\n", "m:1: a class of ranks is a number"},
        {"class 0\n1 2 1 NORMAL 1 2\n", "m:2: a model of type NORMAL has 2 numbers"},
        {"1 2 1 POLYNOMIAL 1 2\n", "m:1: a model of type POLYNOMIAL has 2 numbers"},
        {"1 2 1 POLYNOMIAL 1.5 2 3\n", "m:1: a model of type POLYNOMIAL has the unknown term"},
        {"1 2 1 FIRST CONSTANT 1\n1 2 1 FIRST CONSTANT 1\n", "m:2: there are two models"},
        {"1 2 1 FIRST CONSTANT 1\n3 4 1 CONSTANT 5\n",
         "m:1: callsites 1 and 2 have no model but of the first"},
        {"1 2 1 LAST CONSTANT 1\n1 2 1 LAST CONSTANT 1\n", "m:2: there are two models"},
        {"1 2 1 CONSTANT nan\n", "no finite number"},
        {"callsite threads_per_rank 0,0 x\n", "unknown term 'x'"},
        {"callsite threads_per_rank 0,0\n1 1 2 3\n", "not one coefficient for each term"},
        {"\n", "there is no model"}}) {
    EXPECT_THAT(ParseModelFile(text, "m").status().message(), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace meridian
