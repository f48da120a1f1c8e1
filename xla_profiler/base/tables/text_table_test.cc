#include "xla_profiler/base/tables/text_table.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

using Align = TextTable::Align;

TEST(TextTableTest, AlignsColumnsWithoutTrailingSpaces) {
  TextTable table({{"op"}, {"count", Align::kRight}, {"note"}});
  table.AddRow({"all-reduce", "7", "ok"});
  table.AddRow({"send", "1,234,567", ""});
  EXPECT_EQ(table.ToString(),
            "op              count  note\n"
            "----------  ---------  ----\n"
            "all-reduce          7  ok\n"
            "send        1,234,567\n");
}

TEST(TextTableTest, ShowsTheTitlesOfAnEmptyTable) {
  EXPECT_EQ(TextTable({{"a"}, {"bc", Align::kRight}}).ToString(), "a  bc\n-  --\n");
}

TEST(TextTableTest, CountsCodePointsNotBytes) {
  TextTable table({{"é"}, {"µs", Align::kRight}});
  table.AddRow({"日本語", "12"});
  EXPECT_EQ(table.ToString(), "é    µs\n---  --\n日本語  12\n");
}

TEST(TextTableTest, KeepsNamesOnOneLineAndOffTheTerminal) {
  TextTable table({{"na\nme"}, {"x"}});
  table.AddRow({"\x1b[2J", "a\tb"});
  EXPECT_EQ(table.ToString(), "na?me  x\n-----  ---\n?[2J   a?b\n");
}

TEST(TextTableDeathTest, RefusesARowOfAnotherLength) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_DEATH(table.AddRow({"1"}), "check failed");
}

TEST(WithThousandsTest, SeparatesGroupsOfThree) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(123456), "123,456");
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
}

TEST(WithThousandsTest, KeepsTheSignApart) {
  EXPECT_EQ(WithThousands(-999), "-999");
  EXPECT_EQ(WithThousands(-123456), "-123,456");
  EXPECT_EQ(WithThousands(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(PrintableTest, KeepsText) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("fusion.1 é 日 🙂~"), "fusion.1 é 日 🙂~");
}

TEST(PrintableTest, ReplacesControlCharacters) {
  EXPECT_EQ(Printable(std::string("a\0b\x1b"
                                  "c\x7f"
                                  "d\r\n",
                                  9)),
            "a?b?c?d??");
  // The first and last C1 control, then the first character after them.
  EXPECT_EQ(Printable("\xC2\x80\xC2\x9F\xC2\xA0"), "??\xC2\xA0");
}

TEST(PrintableTest, ReplacesEachByteThatIsNotUtf8) {
  EXPECT_EQ(Printable("a\xFF"
                      "b\xE2\x82"),
            "a?b??");
}

TEST(PrintableTest, MarksThatReverseTextAreControls) {
  EXPECT_EQ(Printable("a\u202Eb\u2028c\u2066d"), "a?b?c?d");
}

TEST(FirstCharactersTest, CutsBetweenCharacters) {
  EXPECT_EQ(FirstCharacters("h\u00E9llo", 2), "h\u00E9...");
  EXPECT_EQ(FirstCharacters("h\u00E9", 2), "h\u00E9");
  EXPECT_EQ(FirstCharacters("", 0), "");
}

}  // namespace
}  // namespace meridian
