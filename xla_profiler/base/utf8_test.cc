#include "xla_profiler/base/utf8.h"

#include <string>
#include <vector>

#include <string>
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

std::vector<char32_t> CodePoints(absl::string_view text) {
  std::vector<char32_t> code_points;
  while (!text.empty()) code_points.push_back(ConsumeCodePoint(&text));
  return code_points;
}

TEST(ConsumeCodePointTest, DecodesTheEndsOfEachLength) {
  EXPECT_THAT(CodePoints("\x01\x7F"), ElementsAre(0x01, 0x7F));
  EXPECT_THAT(CodePoints("\xC2\x80\xDF\xBF"), ElementsAre(0x80, 0x7FF));
  EXPECT_THAT(CodePoints("\xE0\xA0\x80\xEF\xBF\xBF"), ElementsAre(0x800, 0xFFFF));
  EXPECT_THAT(CodePoints("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), ElementsAre(0x10000, 0x10FFFF));
}

TEST(ConsumeCodePointTest, RefusesOverlongForms) {
  EXPECT_THAT(CodePoints("\xC0\x80"), ElementsAre(kNotUtf8, kNotUtf8));
  EXPECT_THAT(CodePoints("\xE0\x9F\xBF"), ElementsAre(kNotUtf8, kNotUtf8, kNotUtf8));
  EXPECT_THAT(CodePoints("\xF0\x8F\xBF\xBF"), ElementsAre(kNotUtf8, kNotUtf8, kNotUtf8, kNotUtf8));
}

TEST(ConsumeCodePointTest, RefusesSurrogatesAndValuesPastTheEnd) {
  EXPECT_THAT(CodePoints("\xED\x9F\xBF"), ElementsAre(0xD7FF));
  EXPECT_THAT(CodePoints("\xED\xA0\x80"), ElementsAre(kNotUtf8, kNotUtf8, kNotUtf8));
  EXPECT_THAT(CodePoints("\xED\xBF\xBF"), ElementsAre(kNotUtf8, kNotUtf8, kNotUtf8));
  EXPECT_THAT(CodePoints("\xEE\x80\x80"), ElementsAre(0xE000));
  EXPECT_THAT(CodePoints("\xF4\x90\x80\x80"), ElementsAre(kNotUtf8, kNotUtf8, kNotUtf8, kNotUtf8));
}

TEST(ConsumeCodePointTest, GoesOnAfterABrokenSequence) {
  EXPECT_THAT(CodePoints("\xE2\x82"), ElementsAre(kNotUtf8, kNotUtf8));
  EXPECT_THAT(CodePoints("\xE2\x41"), ElementsAre(kNotUtf8, 'A'));
  EXPECT_THAT(CodePoints("\x80\xFF\x41"), ElementsAre(kNotUtf8, kNotUtf8, 'A'));
}

TEST(Utf8Test, AcceptsEveryLengthAtItsEdges) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8(absl::string_view("\0\x7F", 2)));
  EXPECT_TRUE(IsValidUtf8("\xC2\x80\xDF\xBF"));
  EXPECT_TRUE(IsValidUtf8("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"));
  EXPECT_TRUE(IsValidUtf8("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
}

TEST(Utf8Test, RejectsOverlongSurrogateAndOutOfRange) {
  EXPECT_FALSE(IsValidUtf8("\xC0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xC1\xBF"));
  EXPECT_FALSE(IsValidUtf8("\xE0\x9F\xBF"));
  EXPECT_FALSE(IsValidUtf8("\xED\xA0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xF0\x8F\xBF\xBF"));
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80"));
  EXPECT_FALSE(IsValidUtf8("\xF5\x80\x80\x80"));
  EXPECT_FALSE(IsValidUtf8("\x80"));
}

TEST(Utf8Test, RejectsSequencesCutAtTheEnd) {
  EXPECT_FALSE(IsValidUtf8("\xC2"));
  EXPECT_FALSE(IsValidUtf8("\xE1\x80"));
  EXPECT_FALSE(IsValidUtf8("\xF1\x80\x80"));
}

TEST(Utf8Test, PrefixEndsBeforeTheFirstBadByteWhateverItsAlignment) {
  for (size_t good = 0; good < 40; ++good) {
    const std::string text = std::string(good, 'a') + "\xFF" + std::string(9, 'b');
    EXPECT_EQ(ValidUtf8Prefix(text), good);
  }
}

}  // namespace
}  // namespace meridian
