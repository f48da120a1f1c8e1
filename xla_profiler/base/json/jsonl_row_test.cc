#include "xla_profiler/base/json/jsonl_row.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

JsonlRow Row(absl::string_view text) { return JsonlRow(text, "a.jsonl", 7, "{\"x\":1}"); }

TEST(JsonlRowTest, NanosecondsAreExactWhateverTheirForm) {
  EXPECT_THAT(Row(R"({"x":-750.8})").NanosAsPicos("x"), IsOkAndHolds(-750800));
  EXPECT_THAT(Row(R"({"x":1.23457e+07})").NanosAsPicos("x"), IsOkAndHolds(12345700000));
  // Half a picosecond and more is one.
  EXPECT_THAT(Row(R"({"x":0.0005})").NanosAsPicos("x"), IsOkAndHolds(1));
  EXPECT_THAT(Row(R"({"x":0.0004})").NanosAsPicos("x"), IsOkAndHolds(0));
}

TEST(JsonlRowTest, ErrorsNameThePlaceTheValueAndAGoodLine) {
  EXPECT_THAT(Row(R"({"x":"hi"})").Int64("x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a.jsonl:7: x is \"hi\", not an integer; expected e.g. {\"x\":1}"));
  EXPECT_THAT(Row("{}").Int64("x"), StatusIs(absl::StatusCode::kInvalidArgument,
                                             "a.jsonl:7: x is missing; expected e.g. {\"x\":1}"));
  EXPECT_THAT(Row(R"({"x":NaN})").FiniteDouble("x"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Row(R"({"x":1})").Bool("x", true), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Row("{}").Bool("x", true), IsOkAndHolds(true));
}

TEST(JsonlRowTest, BlankLinesAreSkippedAndCounted) {
  std::vector<int64_t> lines;
  EXPECT_OK(ForEachJsonlRow("{}\n\n  {} \n", "a", "{}", [&](const JsonlRow& row) {
    lines.push_back(row.line());
    return absl::OkStatus();
  }));
  EXPECT_THAT(lines, ElementsAre(1, 3));
}

TEST(JsonlRowTest, WhatIsNoObjectOrNothingAtAllIsRefused) {
  const auto ignore = [](const JsonlRow&) { return absl::OkStatus(); };
  EXPECT_THAT(ForEachJsonlRow("{}\n[1]\n", "a", "{}", ignore),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a:2: the line is no JSON object; expected e.g. {}"));
  EXPECT_THAT(ForEachJsonlRow("\n", "a", "{}", ignore),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(JsonlRowTest, AHalfLineAtTheEndCanBeLeftOut) {
  EXPECT_EQ(WithoutTornLine("{\"a\":1}\n{\"b\":"), "{\"a\":1}\n");
  for (const char* whole : {"", "{\"a\":", "{}\n", "{}\n{\"b\":2}", "{\"a\":\n{}\n", "{}\n\n"}) {
    EXPECT_EQ(WithoutTornLine(whole), whole);
  }
}

}  // namespace
}  // namespace meridian
