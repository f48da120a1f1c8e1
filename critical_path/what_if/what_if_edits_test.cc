#include "critical_path/what_if/what_if_edits.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Field = Condition::Field;
using Kind = WhatIfEdit::Kind;

WhatIfEdit ParseOne(const std::string& text) {
  absl::StatusOr<std::vector<WhatIfEdit>> edits = ParseWhatIfEdits(text);
  EXPECT_OK(edits);
  if (!edits.ok() || edits->size() != 1) return {};
  return edits->front();
}

TEST(WhatIfEditsTest, ScalesExactDecimals) {
  const WhatIfEdit edit = ParseOne(R"(scale name=~"nccl\w+" rank=3 0.1)");
  EXPECT_EQ(edit.kind, Kind::kScale);
  EXPECT_EQ(edit.factor, 100'000);
  ASSERT_THAT(edit.subject.conditions, SizeIs(2));
  EXPECT_EQ(edit.subject.conditions[0].field, Field::kName);
  ASSERT_NE(edit.subject.conditions[0].pattern, nullptr);
  EXPECT_EQ(edit.subject.conditions[0].pattern->pattern(), R"(nccl\w+)");
  EXPECT_EQ(edit.subject.conditions[1].field, Field::kRank);
  EXPECT_EQ(edit.subject.conditions[1].number, 3);
  EXPECT_EQ(edit.subject.text, R"(name=~"nccl\w+" rank=3)");
  EXPECT_EQ(ParseOne("scale all x2").factor, 2'000'000);
  EXPECT_THAT(ParseOne("scale all x2").subject.conditions, SizeIs(0));
}

TEST(WhatIfEditsTest, SetsDurationsInAllUnits) {
  const std::vector<std::pair<std::string, int64_t>> durations = {
      {"0", 0},
      {"0us", 0},
      {"7ns", 7000},
      {"12.5us", 12'500'000},
      {"3ms", 3'000'000'000},
      {"1s", 1'000'000'000'000},
      {"0.0005ns", 1},
      {"0.0004ns", 0},
  };
  for (const auto& [text, picos] : durations) {
    EXPECT_EQ(ParseOne("set category=launch " + text).duration_ps, picos) << text;
  }
}

TEST(WhatIfEditsTest, ReadsEveryKindOfEdit) {
  ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits(R"(
# comment; no edit
set within="aten::copy_" 0   # with what it launched
scale event=17 2; scale with=5 0.4
  set name="a \"b\" # é;" 40us
level rank=3;
scale category=kernel rank=1 2)"));
  ASSERT_THAT(edits, SizeIs(6));
  const std::vector<Kind> kinds = {Kind::kSet, Kind::kScale, Kind::kScale,
                                   Kind::kSet, Kind::kLevel, Kind::kScale};
  for (size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(edits[i].kind, kinds[i]) << i;
  EXPECT_EQ(edits[0].text, "set within=\"aten::copy_\" 0");
  EXPECT_EQ(edits[1].subject.conditions[0].number, 17);
  EXPECT_EQ(edits[2].subject.conditions[0].number, 5);
  EXPECT_EQ(edits[3].subject.conditions[0].value, "a \"b\" # é;");
  EXPECT_EQ(edits[3].duration_ps, 40'000'000);
  EXPECT_EQ(edits[4].subject.conditions[0].number, 3);
  EXPECT_EQ(edits[5].subject.text, "category=kernel rank=1");
}

TEST(WhatIfEditsTest, ErrorsNamePlaceReasonAndRemedy) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "there are no edits; expected e.g. scale"},
      {" # nothing\n;;", "there are no edits"},
      {"shrink all 2", "shrink all 2: 'shrink' is no edit; there are: scale, set, level"},
      {"\"scale\" all 2", "'\"scale\"' is no edit"},
      {"scale all", "scale all: the edit ends too early; expected: scale CONDITIONS FACTOR"},
      {"scale 2", "scale 2: unexpected '2'; expected: scale CONDITIONS FACTOR"},
      {"scale all 2 3", "unexpected '3'"},
      {"scale all -1", "the factor -1 is not between 0 and 1000000"},
      {"scale all 1e9", "is not between 0 and 1000000"},
      {"scale all half", "'half' is no factor; expected e.g. 0.5"},
      {"set all 5", "'5' is no duration; expected e.g. 0us"},
      {"set all -5us", "the duration -5us is negative"},
      {"set all 25000000s", "is longer than a day"},
      {"set all us", "'us' is no duration"},
      {"scale nome=\"a\" 2", "'nome' is no condition; there are: name, within, category"},
      {"scale name=", "unexpected 'name='; expected: scale CONDITIONS FACTOR"},
      {"scale name=\"a", "cannot read '\"a'; expected a word, or a text in quotes"},
      {"scale all 1\nscale name=~\"a(\" 2",
       "scale name=~\"a(\" 2: 'a(' is no RE2 pattern: missing )"},
      {"scale name=~\"(?=a)\" 2", "is no RE2 pattern: invalid perl operator: (?="},
      {"scale rank=~\"3\" 2", "patterns (=~) are for name and within, not for rank"},
      {"scale rank=-3 2", "'-3' is no rank; expected a number from 0"},
      {"scale event=x 2", "'x' is no event"},
      {"level name=\"a\"",
       "level name=\"a\": only a whole rank can be levelled; expected: level rank=N"},
  };
  for (const auto& [text, reason] : wrong) {
    const absl::Status status = ParseWhatIfEdits(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason)) << text;
  }
}

TEST(WhatIfEditsTest, TooMuchIsRefused) {
  std::string edits;
  for (size_t i = 0; i < kMaxEdits; ++i) absl::StrAppend(&edits, "level rank=1\n");
  EXPECT_OK(ParseWhatIfEdits(edits));
  EXPECT_THAT(std::string(ParseWhatIfEdits(edits + "level rank=1").status().message()),
              HasSubstr("more than 1000 edits"));
  EXPECT_THAT(
      std::string(ParseWhatIfEdits(std::string(kMaxEditTextBytes + 1, ' ')).status().message()),
      HasSubstr("the edits have 1048577 bytes"));
  EXPECT_THAT(
      std::string(ParseWhatIfEdits(absl::StrCat("scale name=~\"", std::string(1001, 'a'), "\" 2"))
                      .status()
                      .message()),
      HasSubstr("the pattern is longer than 1000 bytes"));
  // RE2 gives up instead of taking memory and time.
  EXPECT_THAT(
      std::string(ParseWhatIfEdits("scale name=~\"((a{100}){100}){100}\" 2").status().message()),
      HasSubstr("is no RE2 pattern"));
}

}  // namespace
}  // namespace meridian
