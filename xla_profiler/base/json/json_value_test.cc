#include "xla_profiler/base/json/json_value.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

// As Kineto writes them.
constexpr char kArgs[] = R"({
    "External id": 513,"Trace iteration": "7", "correlation": 18446744073709551615,
    "device": -1, "blocks per SM": 0.969697, "grid": [ 1, 128 ,-1], "kind": "Memcpy \"HtoD\"",
    "Input Dims": [[8, 1], []], "none": null, "occupancy": NaN, "nested": {"a": {"b": 5}}
  })";

TEST(JsonValueTest, ReadsTheArgumentsOfAnEvent) {
  const JsonValue args(kArgs);
  EXPECT_THAT(args.Find("External id").AsInt64(), Optional(513));
  EXPECT_THAT(args.Find("Trace iteration").AsInt64(), Optional(7));
  EXPECT_THAT(args.Find("correlation").AsUint64(), Optional(std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(args.Find("device").AsInt64(), Optional(-1));
  EXPECT_THAT(args.Find("blocks per SM").AsDouble(), Optional(0.969697));
  EXPECT_THAT(args.Find("grid").AsInt64Array(), Optional(ElementsAre(1, 128, -1)));
  EXPECT_THAT(args.Find("kind").AsString(), Optional(std::string("Memcpy \"HtoD\"")));
  EXPECT_EQ(args.Find("Input Dims").text(), "[[8, 1], []]");
  EXPECT_THAT(args.Find("nested").Find("a").Find("b").AsInt64(), Optional(5));
  EXPECT_TRUE(std::isnan(args.Find("occupancy").AsDouble().value()));
}

TEST(JsonValueTest, ValuesOfAnotherTypeAreNullopt) {
  const JsonValue args(kArgs);
  EXPECT_EQ(args.Find("correlation").AsInt64(), std::nullopt);
  EXPECT_EQ(args.Find("device").AsUint64(), std::nullopt);
  EXPECT_EQ(args.Find("blocks per SM").AsInt64(), std::nullopt);
  EXPECT_EQ(args.Find("kind").AsDouble(), std::nullopt);
  EXPECT_EQ(args.Find("External id").AsString(), std::nullopt);
  EXPECT_EQ(args.Find("Input Dims").AsInt64Array(), std::nullopt);
  EXPECT_EQ(args.Find("kind").AsInt64Array(), std::nullopt);
  EXPECT_FALSE(args.Find("kind").Find("x").exists());
  EXPECT_TRUE(args.Find("none").exists());
  EXPECT_THAT(JsonValue("[]").AsInt64Array(), Optional(IsEmpty()));
}

TEST(JsonValueTest, ValuesThatDoNotExistAnswerNullopt) {
  for (const JsonValue& value : {JsonValue(), JsonValue(kArgs).Find("b"), JsonValue("{}")}) {
    EXPECT_FALSE(value.Find("a").exists());
    EXPECT_EQ(value.AsInt64(), std::nullopt);
    EXPECT_EQ(value.AsUint64(), std::nullopt);
    EXPECT_EQ(value.AsDouble(), std::nullopt);
    EXPECT_EQ(value.AsString(), std::nullopt);
    EXPECT_EQ(value.AsInt64Array(), std::nullopt);
  }
}

TEST(JsonValueTest, TheLastOfEqualKeysCounts) {
  EXPECT_THAT(JsonValue(R"({"a":1,"b":2,"a":3})").Find("a").AsInt64(), Optional(3));
}

TEST(JsonValueTest, DamagedObjectsHaveNoMembers) {
  for (absl::string_view text : {R"({"a":1,)", R"({"a":1 "b":2})", R"({"a":1,"b)", R"({"a":1,b:2})",
                                 R"(["a",1])", R"({"a":1,"b":[})"}) {
    EXPECT_FALSE(JsonValue(text).Find("a").exists()) << text;
  }
}

TEST(JsonValueTest, ElementsOfAnArray) {
  const auto texts = [](absl::string_view json, size_t most) {
    std::vector<std::string> texts;
    for (const JsonValue value : JsonValue(json).Elements(most)) texts.emplace_back(value.text());
    return texts;
  };
  EXPECT_EQ(texts(R"([1, [2, 3], "a]"])", 9), (std::vector<std::string>{"1", "[2, 3]", "\"a]\""}));
  EXPECT_EQ(texts("[1, 2, 3]", 2), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(texts("[1, 2", 9), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(texts("[]", 9).empty());
  EXPECT_TRUE(texts("{}", 9).empty());
  EXPECT_TRUE(texts("", 9).empty());
}

}  // namespace
}  // namespace meridian
