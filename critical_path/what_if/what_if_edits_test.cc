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
remove within="aten::copy_"   # with what it launched
add "pre fetch" 40us after event=17
link event=17 to event=40 5us; link event=1 to event=2
  unlink category=communication to name="a \"b\" # c;"
move event=4 before event=1; move event=4 after event=1
overlap category=communication; overlap stream=7 until thread=9
level rank=3;
scale link=0->12 2)"));
  ASSERT_THAT(edits, SizeIs(11));
  const std::vector<Kind> kinds = {Kind::kRemove,    Kind::kAdd,     Kind::kLink,
                                   Kind::kLink,      Kind::kUnlink,  Kind::kMoveBefore,
                                   Kind::kMoveAfter, Kind::kOverlap, Kind::kOverlap,
                                   Kind::kLevel,     Kind::kScale};
  for (size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(edits[i].kind, kinds[i]) << i;
  EXPECT_EQ(edits[0].text, "remove within=\"aten::copy_\"");
  EXPECT_EQ(edits[0].line, 3);
  EXPECT_EQ(edits[1].name, "pre fetch");
  EXPECT_EQ(edits[1].duration_ps, 40'000'000);
  EXPECT_EQ(edits[1].subject.conditions[0].number, 17);
  EXPECT_EQ(edits[2].object->conditions[0].number, 40);
  EXPECT_EQ(edits[2].duration_ps, 5'000'000);
  EXPECT_EQ(edits[3].column, 32);
  EXPECT_EQ(edits[4].object->conditions[0].value, "a \"b\" # c;");
  EXPECT_EQ(edits[4].column, 3);
  EXPECT_FALSE(edits[7].object.has_value());
  EXPECT_EQ(edits[8].object->text, "thread=9");
  EXPECT_EQ(edits[10].subject.conditions[0].number, 0);
  EXPECT_EQ(edits[10].subject.conditions[0].waiting_rank, 12);
}

TEST(WhatIfEditsTest, ErrorsNamePlaceReasonAndRemedy) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "there are no edits; expected e.g. scale"},
      {" # nothing\n;;", "there are no edits"},
      {"shrink all 2", "1:1: 'shrink' is no edit; there are: scale, set, remove"},
      {"\"scale\" all 2", "1:1: '\"scale\"' is no edit"},
      {"scale all", "1:10: the edit ends too early; expected: scale CONDITIONS FACTOR"},
      {"scale 2", "1:7: unexpected '2'; expected: scale CONDITIONS FACTOR"},
      {"scale all 2 3", "1:13: unexpected '3'"},
      {"scale all -1", "1:11: the factor -1 is not between 0 and 1000000"},
      {"scale all 1e9", "is not between 0 and 1000000"},
      {"scale all half", "1:11: 'half' is no factor; expected e.g. 0.5"},
      {"set all 5", "1:9: '5' is no duration; expected e.g. 0us"},
      {"set all -5us", "1:9: the duration -5us is negative"},
      {"set all 25000000s", "is longer than a day"},
      {"set all us", "'us' is no duration"},
      {"remove nome=\"a\"", "1:8: 'nome' is no condition; there are: name, within, category"},
      {"remove name=", "1:13: a value is missing after '='"},
      {"remove name=\"a", "1:13: the quote is not closed on its line"},
      {"scale all 1\nremove name=~\"a(\"", "2:8: 'a(' is no RE2 pattern: missing )"},
      {"remove name=~\"(?=a)\"", "is no RE2 pattern: invalid perl operator: (?="},
      {"remove rank=~\"3\"", "1:8: patterns (=~) are for name and within, not for rank"},
      {"remove rank=-3", "1:8: '-3' is no rank; expected a number from 0"},
      {"remove event=x", "'x' is no event"},
      {"remove link=3", "1:8: '3' is no link; expected e.g. link=0->3"},
      {"move event=1 event=2", "the edit ends too early; expected: move CONDITIONS before|after"},
      {"link event=1 event=2", "the edit ends too early; expected: link CONDITIONS to CONDITIONS"},
      {"level name=\"a\"", "1:7: only a whole rank can be levelled; expected: level rank=N"},
      {"add 5us after all", "1:9: 'after' is no duration"},
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
              HasSubstr("1001:1: more than 1000 edits"));
  EXPECT_THAT(
      std::string(ParseWhatIfEdits(std::string(kMaxEditTextBytes + 1, ' ')).status().message()),
      HasSubstr("the edits have 1048577 bytes"));
  EXPECT_THAT(
      std::string(ParseWhatIfEdits(absl::StrCat("remove name=~\"", std::string(1001, 'a'), "\""))
                      .status()
                      .message()),
      HasSubstr("the pattern is longer than 1000 bytes"));
  // RE2 gives up instead of taking memory and time.
  EXPECT_THAT(
      std::string(ParseWhatIfEdits("remove name=~\"((a{100}){100}){100}\"").status().message()),
      HasSubstr("is no RE2 pattern"));
}

}  // namespace
}  // namespace meridian
