#include "xla_profiler/base/tables/text_table.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(TextTableTest, AlignsColumnsWithoutTrailingSpaces) {
  TextTable table({"op", ">count", "note"});
  table.AddRow({"all-reduce", "7", "ok"});
  table.AddRow({"send", "1,234,567", ""});
  EXPECT_EQ(table.ToString(),
            "op              count  note\n"
            "----------  ---------  ----\n"
            "all-reduce          7  ok\n"
            "send        1,234,567\n");
}

TEST(TextTableTest, ShowsTheTitlesOfAnEmptyTable) {
  EXPECT_EQ(TextTable({"a", ">bc"}).ToString(), "a  bc\n-  --\n");
}

TEST(TextTableTest, TitlesSayWhatIsAlignedRight) {
  EXPECT_EQ(TextTable({"a", ">b c"}).ToString(), TextTable({"a", ">b c"}).ToString());
}

TEST(TextTableTest, CountsCodePointsNotBytes) {
  TextTable table({"é", ">µs"});
  table.AddRow({"日本語", "12"});
  EXPECT_EQ(table.ToString(), "é    µs\n---  --\n日本語  12\n");
}

TEST(TextTableTest, KeepsNamesOnOneLineAndOffTheTerminal) {
  TextTable table({"na\nme", "x"});
  table.AddRow({"\x1b[2J", "a\tb"});
  EXPECT_EQ(table.ToString(), "na?me  x\n-----  ---\n?[2J   a?b\n");
}

TEST(TextTableDeathTest, RefusesARowOfAnotherLength) {
  TextTable table({"a", "b"});
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

TEST(CsvFieldTest, QuotesWhatSpreadsheetsTrip) {
  EXPECT_EQ(CsvField(""), "\"\"");
  EXPECT_EQ(CsvField("gemm<float, 4>"), "\"gemm<float, 4>\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two?lines\"");
}

TEST(CsvFieldTest, AFormulaIsATextForSpreadsheets) {
  EXPECT_EQ(CsvField("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(CsvField("+cmd|'/c calc'!A0"), "\"'+cmd|'/c calc'!A0\"");
  EXPECT_EQ(CsvField("-2+3"), "\"'-2+3\"");
  EXPECT_EQ(CsvField("@SUM(A1)"), "\"'@SUM(A1)\"");
  // Spreadsheets skip these before a formula.
  EXPECT_EQ(CsvField("\t=1+1"), "\"?=1+1\"");
  EXPECT_EQ(CsvField("\r=1+1"), "\"?=1+1\"");
  EXPECT_EQ(CsvField("-1.5"), "\"-1.5\"");
  EXPECT_EQ(CsvField("+2e9"), "\"+2e9\"");
  EXPECT_EQ(CsvField("a=b"), "\"a=b\"");
}

TEST(TimeTextTest, RoundsToTheDecimalsAskedFor) {
  EXPECT_EQ(FormatMillis(12345678901), "12.346");
  EXPECT_EQ(FormatMillis(12345678901, 6), "12.345679");
  EXPECT_EQ(FormatMillis(12345678901, 9), "12.345678901");
  EXPECT_EQ(FormatMillis(12345678901, 0), "12");
  EXPECT_EQ(FormatMicros(12345678), "12.346");
  EXPECT_EQ(FormatMicros(1000, 6), "0.001000");
}

TEST(TimeTextTest, HalvesGoAwayFromZero) {
  EXPECT_EQ(FormatMicros(1499), "0.001");
  EXPECT_EQ(FormatMicros(1500), "0.002");
  EXPECT_EQ(FormatMicros(-1500), "-0.002");
  EXPECT_EQ(FormatMicros(999500), "1.000");
}

TEST(TimeTextTest, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(FormatMicros(-499), "0.000");
  EXPECT_EQ(FormatMicros(0), "0.000");
}

TEST(TimeTextTest, TheEndsOfInt64AreTimes) {
  EXPECT_EQ(FormatMillis(std::numeric_limits<int64_t>::min(), 9), "-9223372036.854775808");
  EXPECT_EQ(FormatMillis(std::numeric_limits<int64_t>::max(), 0), "9223372037");
}

TEST(ByteSizeTest, ReadsUnitsOf1024AndOf1000) {
  EXPECT_THAT(ParseByteSize("0"), IsOkAndHolds(0));
  EXPECT_THAT(ParseByteSize("4096"), IsOkAndHolds(4096));
  EXPECT_THAT(ParseByteSize("7B"), IsOkAndHolds(7));
  EXPECT_THAT(ParseByteSize("64KiB"), IsOkAndHolds(65536));
  EXPECT_THAT(ParseByteSize("3mib"), IsOkAndHolds(3145728));
  EXPECT_THAT(ParseByteSize("2GiB"), IsOkAndHolds(2147483648));
  EXPECT_THAT(ParseByteSize("1TiB"), IsOkAndHolds(1099511627776));
  EXPECT_THAT(ParseByteSize("5kB"), IsOkAndHolds(5000));
  EXPECT_THAT(ParseByteSize("10MB"), IsOkAndHolds(10000000));
  EXPECT_THAT(ParseByteSize("8388607TiB"), IsOkAndHolds(9223370937343148032));
}

TEST(ByteSizeTest, RefusesWhatIsNoSizeOrDoesNotFit) {
  for (const char* text : {"", "KiB", "-1", "+1", "1.5KiB", "1 KiB", "1K", "1PiB", "0x10", "1,000",
                           "8388608TiB", "9223372036854775808"}) {
    EXPECT_THAT(ParseByteSize(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected e.g. 4096")))
        << text;
  }
}

TEST(ByteSizeTest, WritesTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatByteSize(0), "0B");
  EXPECT_EQ(FormatByteSize(1000), "1000B");
  EXPECT_EQ(FormatByteSize(1024), "1KiB");
  EXPECT_EQ(FormatByteSize(1536), "1536B");
  EXPECT_EQ(FormatByteSize(3 << 20), "3MiB");
  EXPECT_EQ(FormatByteSize(int64_t{5} << 40), "5TiB");
}

}  // namespace
}  // namespace meridian
