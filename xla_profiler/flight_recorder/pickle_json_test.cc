#include "xla_profiler/flight_recorder/pickle_json.h"

#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// What Python's pickle.dumps writes.
const std::string& Sample() {
  using namespace std::string_literals;
  static const auto& sample = *new std::string(
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01M\x2c\x01J\xfe\xff\xff\xff\x8a\x08\x00\x00\x10\x63\x2d\x5e\xc7\x6bNe"
      "X\x01\x00\x00\x00"
      "bq\x03h\x01\x88\x89\x87X\x01\x00\x00\x00"
      "ch\x02X\x01\x00\x00\x00"
      "dG\x3f\xf8\x00\x00\x00\x00\x00\x00u."s);
  return sample;
}

TEST(PickleJsonTest, PlainValuesBecomeJson) {
  EXPECT_THAT(PickleToJson(Sample()),
              IsOkAndHolds(R"({"a":[1,300,-2,7766279631452241920,null],"b":["a",true,false],)"
                           R"("c":[1,300,-2,7766279631452241920,null],"d":1.5})"));
}

// {"r": [1]} as protocol 4 writes it: framed, short texts, remembered without numbers.
TEST(PickleJsonTest, LaterProtocolsAreRead) {
  using namespace std::string_literals;
  EXPECT_THAT(
      PickleToJson("\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01r\x94]\x94K\x01"
                   "as."s),
      IsOkAndHolds(R"({"r":[1]})"));
}

TEST(PickleJsonTest, WhatCallsIsRefusedByItsName) {
  const std::pair<const char*, const char*> kCalls[] = {
      {"cposix\nsystem\n", "GLOBAL"},
      {"\x93", "STACK_GLOBAL"},
      {"R", "REDUCE"},
      {"b", "BUILD"},
      {"iposix\nsystem\n", "INST"},
      {"o", "OBJ"},
      {"\x81", "NEWOBJ"},
      {"\x92", "NEWOBJ_EX"},
      {"\x82\x01", "EXT1"},
      {"\x83\x01\x01", "EXT2"},
      {"\x84\x01\x01\x01\x01", "EXT4"},
      {"Pid\n", "PERSID"},
      {"Q", "BINPERSID"},
  };
  for (const auto& [bytes, name] : kCalls) {
    EXPECT_THAT(
        PickleToJson(absl::StrCat("\x80\x02)", bytes, ".")).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("offset 3: the opcode ", name, " imports or calls"))));
  }
  EXPECT_THAT(PickleToJson("\x80\x02\xf0").status().message(), HasSubstr("0xf0 is no opcode"));
}

TEST(PickleJsonTest, CutAnywhereIsAnError) {
  for (size_t size = 0; size < Sample().size(); ++size) {
    EXPECT_THAT(PickleToJson(Sample().substr(0, size)).status().message(), HasSubstr("cut off"))
        << size;
  }
}

TEST(PickleJsonTest, ProgramsThatMakeNoSenseAreErrors) {
  using namespace std::string_literals;
  for (const std::string& body : {"."s, "u."s, "e."s, "t."s, "\x85."s,
                                  "K\x01"
                                  "a."s,
                                  "]K\x01K\x02u."s, "](a."s, "}(K\x01K\x02u."s,
                                  "}(X\x01\x00\x00\x00"
                                  "au."s,
                                  "K\x01K\x02."s, "K\x01(."s, "h\x07."s, "q\x00."s, "(q\x00."s,
                                  "\x8a\x09"
                                  "123456789."s,
                                  "NN\x86(\x85."s}) {
    EXPECT_THAT(PickleToJson("\x80\x02" + body).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << body;
  }
}

// Each list holds the one before twice, and so would stand for 2^40 numbers.
TEST(PickleJsonTest, ShortPicklesOfLongTextsAreRefused) {
  std::string pickle = "\x80\x02]K\x01";
  pickle += "a";
  for (int i = 0; i < 40; ++i) {
    pickle += "q\x01";
    pickle += "h\x01\x86";
  }
  EXPECT_THAT(PickleToJson(pickle + ".").status().message(), HasSubstr("too long a text"));
}

TEST(PickleJsonTest, CountsAreLimited) {
  std::string pickle = "\x80\x02";
  pickle.append(kMaxPickleValues + 1, 'N');
  EXPECT_THAT(PickleToJson(pickle).status().message(), HasSubstr("too many values"));
  pickle.resize(2);
  pickle.append(kMaxPickleValues + 1, '(');
  EXPECT_THAT(PickleToJson(pickle).status().message(), HasSubstr("too many values"));
}

// A list within itself is what it was when it was put there.
TEST(PickleJsonTest, ListsWithinThemselvesEnd) {
  using namespace std::string_literals;
  EXPECT_THAT(PickleToJson("\x80\x02]q\x00h\x00"
                           "a."s),
              IsOkAndHolds("[[]]"));
}

TEST(PickleJsonTest, DamageIsAnErrorOrAnotherValue) {
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) refused += PickleToJson(Damage(Sample(), random)).ok() ? 0 : 1;
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace meridian
