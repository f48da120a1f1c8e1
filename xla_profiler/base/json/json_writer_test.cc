#include "xla_profiler/base/json/json_writer.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

using ::testing::Optional;

std::string Escape(absl::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(JsonStringTest, EscapesOnlyWhatMustBe) {
  EXPECT_EQ(Escape(""), R"("")");
  EXPECT_EQ(Escape("a/b</script> \xC3\xA9\x7F"), "\"a/b</script> \xC3\xA9\x7F\"");
  EXPECT_EQ(Escape("\"\\\n\r\t"), R"("\"\\\n\r\t")");
  EXPECT_EQ(Escape(absl::string_view("\0\x01\x1F", 3)), R"("\u0000\u0001\u001f")");
}

TEST(JsonStringTest, ReplacesEachByteThatIsNotUtf8) {
  // A lone continuation byte, a cut-off character, an encoded surrogate.
  EXPECT_EQ(Escape("a\x80z"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(Escape("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(Escape("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonStringTest, ReadsEveryEscape) {
  EXPECT_THAT(ParseJsonString(R"("")"), Optional(std::string()));
  EXPECT_THAT(ParseJsonString(R"("\"\\\/\b\f\n\r\t")"), Optional(std::string("\"\\/\b\f\n\r\t")));
  EXPECT_THAT(ParseJsonString(R"("\u0041\u00e9\u20AC")"),
              Optional(std::string("A\xC3\xA9\xE2\x82\xAC")));
  // U+1F600 as a surrogate pair.
  EXPECT_THAT(ParseJsonString(R"("\ud83d\uDE00")"), Optional(std::string("\xF0\x9F\x98\x80")));
  EXPECT_THAT(ParseJsonString(R"("\u0000")"), Optional(std::string(1, '\0')));
}

TEST(JsonStringTest, RefusesWhatIsNoString) {
  for (absl::string_view text :
       {"", "\"", "a", "\"a", "a\"", R"("\")", R"("\x41")", R"("\u12")", R"("\u12g4")",
        R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ude00")",
        R"("a"b")", "\"\n\"", "\"\x80\"", "\"\xED\xA0\x80\""}) {
    EXPECT_EQ(ParseJsonString(text), std::nullopt) << text;
  }
}

TEST(JsonStringTest, EveryUtf8TextSurvivesARoundTrip) {
  std::mt19937 random(4);
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (int n = random() % 12; n > 0; --n) text.push_back(static_cast<char>(random()));
    const std::optional<std::string> back = ParseJsonString(Escape(text));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back == text, IsValidUtf8(text));
    // Replacing once is enough.
    EXPECT_THAT(ParseJsonString(Escape(*back)), Optional(*back));
  }
}

TEST(JsonWriterTest, PutsCommasAndSpaces) {
  for (const JsonSpacing spacing : {JsonSpacing::kCompact, JsonSpacing::kSpaced}) {
    std::string out;
    JsonWriter json(&out, spacing);
    json.BeginObject();
    json.Member("a\n", "x\"y");
    json.Member("b", std::numeric_limits<uint64_t>::max());
    json.Member("c", 0.1);
    json.Member("d", false);
    json.Key("e");
    json.List(std::vector<int64_t>{-1, 2});
    json.Key("f");
    json.BeginArray();
    json.BeginObject();
    json.EndObject();
    json.Raw("null");
    json.EndArray();
    json.EndObject();
    EXPECT_EQ(
        out,
        spacing == JsonSpacing::kCompact
            ? R"({"a\n":"x\"y","b":18446744073709551615,"c":0.1,"d":false,"e":[-1,2],"f":[{},null]})"
            : R"({"a\n": "x\"y", "b": 18446744073709551615, "c": 0.1, "d": false, "e": [-1, 2], )"
              R"("f": [{}, null]})");
  }
}

TEST(JsonWriterTest, BreaksLinesWhereAsked) {
  std::string out;
  JsonWriter json(&out, JsonSpacing::kSpaced);
  json.BeginObject(JsonLayout::kIndented);
  json.Key("a");
  json.BeginArray(JsonLayout::kIndented);
  json.List(std::vector<int>{1, 2});
  json.BeginObject(JsonLayout::kIndented);
  json.EndObject();
  json.EndArray();
  json.Key("b");
  json.BeginArray(JsonLayout::kLines);
  json.EndArray();
  json.EndObject();
  EXPECT_EQ(out, R"({
  "a": [
    [1, 2],
    {
    }
  ],
  "b": [
  ]
})");
}

TEST(JsonWriterTest, LinesNeedNoIndentationAndTheStringMayBeEmptied) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Key("nodes");
  json.BeginArray(JsonLayout::kLines);
  json.Value(1);
  EXPECT_EQ(out, "{\"nodes\":[\n1");
  out.clear();
  json.ContinueObject("{\"id\": 2");
  json.Member("x", 3);
  json.EndObject();
  json.EndArray();
  json.EndObject();
  EXPECT_EQ(out, ",\n{\"id\": 2,\"x\":3}\n]}");
}

TEST(JsonWriterTest, NumbersAreExactAndNeverBreakTheSyntax) {
  const auto text = [](double number) {
    std::string out;
    AppendJsonNumber(number, &out);
    return out;
  };
  EXPECT_EQ(text(1e300), "1e+300");
  EXPECT_EQ(text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(text(-0.0), "-0");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "\"-Infinity\"");
}

}  // namespace
}  // namespace meridian
