#include "chakra_export/inspect/text_disguise.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(TextDisguiseTest, TheSameTextBecomesTheSame) {
  TextDisguise disguise;
  EXPECT_EQ(disguise.Replace("matmul"), "op1");
  EXPECT_EQ(disguise.Replace("softmax"), "op2");
  EXPECT_EQ(disguise.Replace("matmul"), "op1");
  EXPECT_EQ(disguise.Replace(""), "");
}

TEST(TextDisguiseTest, PartsKeepTheStructure) {
  TextDisguise disguise;
  disguise.AnnounceParts("[[128, 1024], [128], []]");
  EXPECT_EQ(disguise.ReplaceParts("[[128, 1024], [128], []]"), "[[1, 2], [1], []]");
  EXPECT_EQ(disguise.ReplaceParts("['Tensor(float)', 'Tensor(c10::Half)']"),
            "['w1(w2)', 'w1(w3??w4)']");
  EXPECT_EQ(disguise.ReplaceParts("\xC3\xA9;"), "???");
}

TEST(TextDisguiseTest, ReplacementsAreNoOriginals) {
  TextDisguise disguise;
  for (const char* text : {"op1", "op2", "matmul"}) disguise.Announce(text);
  disguise.AnnounceParts("[1, 2, w1]");
  EXPECT_EQ(disguise.Replace("op1"), "op3");
  EXPECT_EQ(disguise.Replace("matmul"), "op4");
  EXPECT_EQ(disguise.ReplaceParts("[1, 2, w1]"), "[3, 4, w2]");
}

}  // namespace
}  // namespace meridian
