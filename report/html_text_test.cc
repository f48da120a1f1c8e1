#include "report/html_text.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(HtmlTextTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(HtmlEscape(""), "");
  EXPECT_EQ(HtmlEscape("node3.example.com: 12 µs, Größe 日本 🚀"),
            "node3.example.com: 12 µs, Größe 日本 🚀");
}

TEST(HtmlTextTest, MarkupIsEscaped) {
  EXPECT_EQ(HtmlEscape("<script>alert('x') && \"y\"</script>"),
            "&lt;script&gt;alert(&#39;x&#39;) &amp;&amp; &quot;y&quot;&lt;/script&gt;");
}

TEST(HtmlTextTest, ControlCharactersAreShownNotObeyed) {
  EXPECT_EQ(HtmlEscape("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(HtmlEscape(absl::string_view("\0\x1B[31m\x7F", 7)), "\uFFFD\uFFFD[31m\uFFFD");
  // C1 controls, line separators, bidirectional overrides, noncharacters.
  EXPECT_EQ(HtmlEscape("\u0085\u2028\u202Egnp.exe\u2066\u200F"),
            "\uFFFD\uFFFD\uFFFDgnp.exe\uFFFD\uFFFD");
  EXPECT_EQ(HtmlEscape("\xEF\xBF\xBE"), "\uFFFD");
}

TEST(HtmlTextTest, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(HtmlEscape("\xFF<\xC0\xBC>\xE2\x82"), "\uFFFD&lt;\uFFFD\uFFFD&gt;\uFFFD\uFFFD");
}

}  // namespace
}  // namespace meridian
