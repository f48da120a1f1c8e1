#include "xla_profiler/base/config/config_value.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<ConfigValue> Yaml(absl::string_view text) {
  return ConfigValue::FromYaml(text, "f.yml", 1000, "a test");
}

// What both formats have in common, in a document of each.
class ConfigValueTest : public ::testing::TestWithParam<absl::StatusOr<ConfigValue>> {
 protected:
  const ConfigValue document_ = *GetParam();
};

INSTANTIATE_TEST_SUITE_P(
    Formats, ConfigValueTest,
    ::testing::Values(
        Yaml(
            R"({"n": -7, "x": 2.5, "on": true, "s": "te\u0078t", "l": ["a", 1, []], "m": {"k": 3}})"),
        Yaml("n: -7\nx: 2.5\non: true\ns: text\nl: [a, 1, []]\nm: {k: 3}\n")));

TEST_P(ConfigValueTest, ReadsScalars) {
  EXPECT_THAT(document_.Find("n").Integer(), IsOkAndHolds(-7));
  EXPECT_THAT(document_.Find("x").Number(), IsOkAndHolds(2.5));
  EXPECT_THAT(document_.Find("on").Switch(), IsOkAndHolds(true));
  EXPECT_THAT(document_.Find("n").Switch(), IsOkAndHolds(true));
  EXPECT_THAT(document_.Find("s").Text(), IsOkAndHolds("text"));
  EXPECT_THAT(document_.Find("m").Find("k").Integer(), IsOkAndHolds(3));
  EXPECT_TRUE(document_.IsMap() && document_.Find("l").IsList() && document_.Find("n").IsScalar());
}

TEST_P(ConfigValueTest, ErrorsNameFileAndPlace) {
  const std::string file = "f.yml";
  EXPECT_THAT(document_.Find("x").Integer(),
              StatusIs(kInvalid, file + ": x: expected a whole number"));
  EXPECT_THAT(document_.Find("n").Integer("expected 0 to 9", 0, 9),
              StatusIs(kInvalid, file + ": n: expected 0 to 9"));
  EXPECT_THAT(document_.Find("s").Number(), StatusIs(kInvalid, file + ": s: expected a number"));
  EXPECT_THAT(document_.Find("s").Switch(), StatusIs(kInvalid, file + ": s: expected 0 or 1"));
  EXPECT_THAT(document_.Find("l").Text(), StatusIs(kInvalid, file + ": l: expected one value"));
  EXPECT_THAT(document_.Find("l").Texts("wants names"),
              StatusIs(kInvalid, file + ": l: wants names"));
  EXPECT_THAT(
      document_.Find("m").ForEachElement([](const ConfigValue&) { return absl::OkStatus(); }),
      StatusIs(kInvalid, file + ": m: expected a list"));
  EXPECT_THAT(document_.Find("m").ReadMembers({{"a", nullptr}, {"b", nullptr}}),
              StatusIs(kInvalid, file + ": m.k: not known; there are a, b"));
  std::vector<std::string> places;
  ASSERT_OK(document_.Find("l").ForEachElement([&](const ConfigValue& element) {
    places.emplace_back(element.Error("").message());
    return absl::OkStatus();
  }));
  EXPECT_THAT(places, ElementsAre(file + ": l[0]: ", file + ": l[1]: ", file + ": l[2]: "));
}

TEST_P(ConfigValueTest, WhatIsAbsentIsLeftAsItIs) {
  int64_t number = 5;
  EXPECT_OK(document_.Find("none").ReadIfThere(&number));
  EXPECT_EQ(number, 5);
  EXPECT_OK(document_.Find("n").ReadIfThere(&number));
  EXPECT_EQ(number, -7);
  EXPECT_FALSE(document_.Find("none").exists());
  EXPECT_FALSE(document_.Find("n").Find("none").exists());
  EXPECT_THAT(document_.Find("none").Integer(), StatusIs(kInvalid, HasSubstr(": none: ")));
}

TEST_P(ConfigValueTest, MembersAreHandedToTheirReaders) {
  int64_t k = 0;
  EXPECT_OK(document_.Find("m").ReadMembers(
      {{"k", ReadInto(&k, [](const ConfigValue& value) { return value.Integer(); })}}));
  EXPECT_EQ(k, 3);
}

TEST(ConfigValueYamlTest, ErrorsOfSyntaxNameTheLine) {
  EXPECT_THAT(Yaml("a: 1\nb: ["), StatusIs(kInvalid, StartsWith("f.yml:2: ")));
  EXPECT_THAT(Yaml(std::string(1001, '#')),
              StatusIs(kInvalid, "f.yml: too long for a test: 1001 bytes"));
  EXPECT_THAT(Yaml(std::string(1000, '[')), StatusIs(kInvalid));
  EXPECT_THAT(Yaml(R"({"a": 1 "b": 2})"), StatusIs(kInvalid, StartsWith("f.yml:1: ")));
  EXPECT_THAT(Yaml("{} x"), StatusIs(kInvalid, "f.yml: text after the end of the document"));
  EXPECT_THAT(Yaml(", s"), StatusIs(kInvalid, "f.yml: text after the end of the document"));
}

// Lists and maps, in brackets and by indentation, with their ends and without.
TEST(ConfigValueYamlTest, DeepYamlIsRefused) {
  const auto repeated = [](absl::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) absl::StrAppend(&all, text);
    return all;
  };
  const auto parse = [](const std::string& text) {
    return ConfigValue::FromYaml(text, "f.yml", size_t{1} << 20, "a test").status();
  };
  constexpr int kDeep = 100'000;
  for (const char* level : {"[", "{", "{a: ", "[a: ", "- ", "? "}) {
    EXPECT_THAT(parse(repeated(level, kDeep)), StatusIs(kInvalid, StartsWith("f.yml:1: ")))
        << level;
  }
  EXPECT_THAT(parse(repeated("[", kDeep) + repeated("]", kDeep)),
              StatusIs(kInvalid, StartsWith("f.yml:1: ")));
  EXPECT_OK(parse(repeated("[", 100) + repeated("]", 100)));
}

TEST(ConfigValueYamlTest, KeysAreTextsAndComeOnce) {
  const auto ignore = [](const auto&...) { return absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const ConfigValue twice, Yaml("a: 1\na: 2\n"));
  EXPECT_THAT(twice.ForEachMember(ignore), StatusIs(kInvalid, "f.yml: a occurs twice"));
  EXPECT_THAT(twice.Find("a").Integer(), IsOkAndHolds(1));
  ASSERT_OK_AND_ASSIGN(const ConfigValue no_text, Yaml("[1]: 2\n"));
  EXPECT_THAT(no_text.ForEachMember(ignore),
              StatusIs(kInvalid, "f.yml: has a key that is no text"));
  ASSERT_OK_AND_ASSIGN(const ConfigValue nothing, Yaml(""));
  EXPECT_THAT(nothing.ForEachMember(ignore), StatusIs(kInvalid, "f.yml: expected keys and values"));
}

// Unfolded, this list would have 9^9 elements; one that holds itself would have no end.
TEST(ConfigValueYamlTest, AliasesAreNotUnfolded) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string alias = absl::StrCat("*a", i - 1);
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [", alias);
    for (int k = 0; k < 8; ++k) absl::StrAppend(&bomb, ",", alias);
    absl::StrAppend(&bomb, "]\n");
  }
  ASSERT_OK_AND_ASSIGN(const ConfigValue document, Yaml(bomb));
  EXPECT_THAT(document.Find("a9").Texts("too deep"), StatusIs(kInvalid, "f.yml: a9: too deep"));
  ASSERT_OK_AND_ASSIGN(const ConfigValue loop, Yaml("a: &a [*a]\n"));
  EXPECT_THAT(loop.Find("a").Texts("a loop"), StatusIs(kInvalid, "f.yml: a: a loop"));
}

}  // namespace
}  // namespace meridian
