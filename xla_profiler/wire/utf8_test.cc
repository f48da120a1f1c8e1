#include "xla_profiler/wire/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

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
