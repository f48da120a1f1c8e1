#include "xla_profiler/base/json/json_cutter.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

struct Parts {
  std::vector<std::string> events;
  std::vector<std::pair<std::string, std::string>> members;
  absl::Status status;
};

Parts Cut(absl::string_view text) {
  Parts parts;
  parts.status = CutTrace(
      text,
      [&](absl::string_view element) {
        parts.events.emplace_back(element);
        return absl::OkStatus();
      },
      [&](absl::string_view key, absl::string_view value) {
        parts.members.emplace_back(std::string(key), std::string(value));
        return absl::OkStatus();
      });
  return parts;
}

TEST(JsonCutterTest, CutsEventsAndMembersOfTheObjectForm) {
  const Parts parts = Cut(R"(
    { "schemaVersion": 1, "deviceProperties": [{"id": 0}, {"id": 1}],
      "traceEvents": [ {"ph": "X", "args": {"a": [1, {"b": "]}"}]}} , {} ,"text", 17 ],
      "name \"q\"": "a, b: {[", "baseTimeNanoseconds": 1711964646000000000 }
  )");
  EXPECT_OK(parts.status);
  EXPECT_THAT(parts.events, ElementsAre(R"({"ph": "X", "args": {"a": [1, {"b": "]}"}]}})", "{}",
                                        R"("text")", "17"));
  EXPECT_THAT(parts.members, ElementsAre(Pair("schemaVersion", "1"),
                                         Pair("deviceProperties", R"([{"id": 0}, {"id": 1}])"),
                                         Pair(R"(name \"q\")", R"("a, b: {[")"),
                                         Pair("baseTimeNanoseconds", "1711964646000000000")));
}

TEST(JsonCutterTest, CutsABareArrayWithOrWithoutItsEnd) {
  for (absl::string_view text : {"[{},{\"a\":1}]", "[{},{\"a\":1}", " [ {} , {\"a\":1} ,\n"}) {
    const Parts parts = Cut(text);
    EXPECT_OK(parts.status) << text;
    EXPECT_THAT(parts.events, ElementsAre("{}", "{\"a\":1}")) << text;
  }
  for (absl::string_view text : {"[]", "[", " [ \n"}) {
    const Parts parts = Cut(text);
    EXPECT_OK(parts.status) << text;
    EXPECT_THAT(parts.events, IsEmpty()) << text;
  }
}

TEST(JsonCutterTest, MissingValuesAreEmptyUnlessAllIsChecked) {
  JsonCutter cutter("[,1,]");
  std::vector<std::string> values;
  cutter.Enter('[');
  while (cutter.NextElement()) values.emplace_back(cutter.CutValue());
  EXPECT_OK(cutter.status());
  EXPECT_THAT(values, ElementsAre("", "1", ""));
  EXPECT_THAT(Cut(R"({"a":,"traceEvents":[]})").status,
              StatusIs(kInvalid, "offset 5: expected a value"));
  EXPECT_THAT(Cut(R"({"traceEvents":[{},]})").status,
              StatusIs(kInvalid, "offset 19: expected a value"));
}

TEST(JsonCutterTest, ChecksAllAtEveryDistanceFromTheStart) {
  const std::string kSound[] = {
      R"({"a":[1,"b",{"c":-0.5e+3}],"d" : {} , "e":[ ],"f":10.25,"g":0,"h":[true,false,null]})",
      R"(["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00",NaN,-Infinity,"é"])"};
  const std::string kWrong[] = {
      R"({"a":1 "b":2})", R"({"a" "b"})",     R"({"a":})",  R"({"a",1})",  R"({:1})",
      R"({1:2})",         R"({"a":1,})",      R"([1,])",    R"([,1])",     R"([1 2])",
      R"([1:2])",         R"(["a":1])",       R"([01])",    R"([-])",      R"([1.])",
      R"([.5])",          R"([1.5.5])",       R"([1e])",    R"([1e+])",    R"([+1])",
      R"([tru])",         R"([truee])",       R"([nan])",   R"([0x10])",   R"(["\x"])",
      R"(["\u12"])",      R"(["\ud83d"])",    "[\"\t\"]",   "[\"\xff\"]",  "[1,\f2]",
      R"({"a":{}"b":1})", R"([[]1])",         R"([{}"a"])", R"(["a""b"])", R"({"a"::1})",
      R"([1,,2])",        R"({"a":1,,"b":2})"};
  for (int shift = 0; shift < 130; ++shift) {
    const std::string before = absl::StrCat("[\"", std::string(shift, 's'), "\",");
    for (const std::string& text : kSound) {
      EXPECT_OK(Cut(absl::StrCat("[", before, text, "]]")).status) << text << " " << shift;
    }
    for (const std::string& text : kWrong) {
      EXPECT_THAT(Cut(absl::StrCat("[", before, text, "]]")).status, StatusIs(kInvalid))
          << text << " " << shift;
    }
  }
}

TEST(JsonCutterTest, ArraysNamedTwiceAreBothCut) {
  EXPECT_THAT(Cut(R"({"traceEvents":[1],"traceEvents":[2]})").events, ElementsAre("1", "2"));
}

TEST(JsonCutterTest, SaysWhereTheStructureIsDamaged) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "offset 0: expected an object"},
      {"  17", "offset 2: expected an object"},
      {R"({"traceEvents":[{}])", "offset 19: expected ',' or '}'"},
      {R"({"traceEvents":[{})", "offset 18: expected ',' or ']'"},
      {R"({"traceEvents":[{} {}]})", "offset 19: expected ',' or ']'"},
      {R"({"traceEvents":{}})", "offset 15: expected an array"},
      {R"({"traceEvents":[{"a":[1,{"b":2]}]})", "offset 30: expected ',' or '}'"},
      {R"({"traceEvents":[{"a":[1}]})", "offset 23: expected ',' or ']'"},
      {R"({"traceEvents":[{"a":[1, {"b")", "offset 25: bracket without end"},
      {R"({"traceEvents":[{"a":"b\"}]})", "offset 21: string without end"},
      {R"({"traceEvents":["a\"]})", "offset 16: string without end"},
      {R"([{"a":"b)", "offset 6: string without end"},
      {R"([{"a":1)", "offset 1: bracket without end"},
      {R"({"traceEvents)", "offset 1: string without end"},
      {R"({"traceEvents" [])", "offset 15: expected ':'"},
      {R"({traceEvents: []})", "offset 1: expected a member's name in quotes"},
      {R"({"a":1,})", "offset 7: expected a member's name in quotes"},
      {R"({"traceEvents":[]} x)", "offset 19: text after the end of the trace"},
      {R"({"nodes":[]})", "no traceEvents found; expected a trace in Chrome's JSON format"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(Cut(text).status, StatusIs(kInvalid, message)) << text;
  }
}

TEST(JsonCutterTest, NulBytesAreNotTheEnd) {
  EXPECT_THAT(Cut(absl::string_view("[{}\0", 4)).status,
              StatusIs(kInvalid, "offset 3: expected ',' or ']'"));
}

TEST(JsonCutterTest, NestsToTheLimitAndNoDeeper) {
  const auto nested = [](int depth) {
    return absl::StrCat("[", std::string(depth, '['), std::string(depth, ']'), "]");
  };
  EXPECT_OK(Cut(nested(kMaxJsonDepth)).status);
  EXPECT_THAT(Cut(nested(kMaxJsonDepth + 1)).status,
              StatusIs(kInvalid, absl::StrCat("offset ", kMaxJsonDepth + 1, ": nested too deep")));
}

TEST(JsonCutterTest, ErrorsOfCallbacksEndTheWalk) {
  int events = 0;
  const absl::Status status = CutTrace(
      "[1,2,3]",
      [&](absl::string_view element) {
        ++events;
        return element == "2" ? absl::OutOfRangeError("two") : absl::OkStatus();
      },
      [](absl::string_view, absl::string_view) { return absl::OkStatus(); });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange, "two"));
  EXPECT_EQ(events, 2);
}

TEST(JsonCutterTest, EscapesAtEveryDistanceFromTheStart) {
  for (int padding = 0; padding < 200; ++padding) {
    for (absl::string_view tail : {R"(\"}])", R"(\\)", R"(\\\"]})", R"(\\\\)", R"(\u005c\")"}) {
      const std::string element = absl::StrCat("{\"", std::string(padding, 'a'), tail, "\":[{}]}");
      EXPECT_THAT(Cut(absl::StrCat("[", element, ",{}]")).events, ElementsAre(element, "{}"));
    }
  }
}

// Returns the end of the bracketed value at the text's start, or npos: byte by byte.
size_t SimpleEnd(absl::string_view text) {
  std::string closers;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      closers.push_back(c == '{' ? '}' : ']');
    } else if (c == '}' || c == ']') {
      if (closers.back() != c) return std::string::npos;
      closers.pop_back();
      if (closers.empty()) return i + 1;
    }
  }
  return std::string::npos;
}

TEST(JsonCutterTest, AgreesWithAByteByByteWalk) {
  std::mt19937 random(3);
  // Backslashes occur inside strings only.
  const std::vector<std::string> pieces = {"{", "[", "}", "]", "\"\"", "\"\\\"\"", "\"]\\\\\"",
                                           "_", "y", "1", " ", ",",    "\x7F",     "\xFF"};
  int whole = 0;
  for (int round = 0; round < 100000; ++round) {
    std::string text = random() % 2 == 0 ? "{" : "[";
    if (random() % 4 == 0) text += absl::StrCat("\"", std::string(random() % 80, '_'), "\"");
    for (int n = random() % 60; n > 0; --n) text += pieces[random() % pieces.size()];
    if (random() % 8 == 0) text.pop_back();
    JsonCutter cutter(text);
    const absl::string_view value = cutter.CutValue();
    const size_t end = text.empty() ? 0 : SimpleEnd(text);
    if (end == std::string::npos) {
      EXPECT_THAT(cutter.status(), StatusIs(kInvalid)) << text;
    } else {
      EXPECT_EQ(value, absl::string_view(text).substr(0, end)) << text;
      ++whole;
    }
  }
  EXPECT_GT(whole, 10000);
}

}  // namespace
}  // namespace meridian
