#include "xla_profiler/trace_json/trace_json_reader.h"

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/trace_json_comparison.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

struct Reading {
  // "name@ts_ps+dur_ps".
  std::vector<std::string> events;
  TraceJsonProblems problems;
  absl::StatusOr<TraceJsonHeader> header;
};

Reading Read(absl::string_view text) {
  Reading reading;
  reading.header = ReadTraceJson(
      text,
      [&](const TraceJsonEvent& event) {
        std::string line = absl::StrCat(event.name, "@");
        if (event.ts_ps.has_value()) absl::StrAppend(&line, static_cast<int64_t>(*event.ts_ps));
        reading.events.push_back(absl::StrCat(line, "+", event.dur_ps));
        return absl::OkStatus();
      },
      &reading.problems);
  return reading;
}

TEST(TraceJsonReaderTest, ReadsAnEventAsKinetoWritesIt) {
  constexpr absl::string_view kText = R"json({
    "schemaVersion": 1, "distributedInfo": {"rank": 3},
    "traceEvents": [
    {
      "ph": "X", "cat": "kernel", "name": "void f<\"q\">()", "pid": 0, "tid": 7,
      "ts": 3844757818350.492, "dur": 18.399,
      "args": {
        "device": 0, "stream": 7, "correlation": 2689, "grid": [1, 128, 1]
      }
    }
    ], "baseTimeNanoseconds": 1790857026000000000
  })json";
  TraceJsonProblems problems;
  int events = 0;
  ASSERT_OK_AND_ASSIGN(
      const TraceJsonHeader header,
      ReadTraceJson(
          kText,
          [&](const TraceJsonEvent& event) {
            ++events;
            EXPECT_EQ(event.ph, 'X');
            EXPECT_EQ(event.cat, "kernel");
            EXPECT_EQ(event.name, "void f<\"q\">()");
            EXPECT_EQ(event.pid, "0");
            EXPECT_EQ(event.tid, "7");
            EXPECT_THAT(event.ts_ps, Optional(Eq(absl::int128(3844757818350492000))));
            EXPECT_EQ(event.dur_ps, 18399000);
            EXPECT_THAT(event.args.Find("correlation").AsUint64(), Optional(2689));
            EXPECT_THAT(event.args.Find("grid").AsInt64Array(), Optional(ElementsAre(1, 128, 1)));
            // Points into the text and ends with its brace.
            EXPECT_GE(event.args.text().data(), kText.data());
            EXPECT_TRUE(absl::EndsWith(event.args.text(), "\n      }"));
            EXPECT_EQ(kText.substr(event.offset, 12), "{\n      \"ph\"");
            return absl::OkStatus();
          },
          &problems));
  EXPECT_EQ(events, 1);
  EXPECT_EQ(problems.total(), 0);
  EXPECT_THAT(header.base_time_ns, Optional(1790857026000000000));
  EXPECT_THAT(header.Find("distributedInfo").Find("rank").AsInt64(), Optional(3));
  EXPECT_FALSE(header.Find("rank").exists());
}

TEST(TraceJsonReaderTest, PositionsCountWhatCannotBeUsed) {
  TraceJsonProblems problems;
  std::vector<std::string> events;
  ASSERT_OK(ReadTraceJson(
      R"([{"ph":"X","name":"a","ts":1,"dur":0}, 17, {}, {"ph":"X"}, {"ph":"s","name":"b","ts":2}])",
      [&](const TraceJsonEvent& event) {
        events.push_back(absl::StrCat(event.name, " ", event.position, " ", event.has_dur));
        return absl::OkStatus();
      },
      &problems));
  EXPECT_EQ(problems.total(), 2);
  EXPECT_THAT(events, ElementsAre("a 0 1", "b 4 0"));
}

TEST(TraceJsonReaderTest, ReadsIdsOfEitherType) {
  TraceJsonProblems problems;
  std::vector<std::string> events;
  ASSERT_OK(ReadTraceJson(
      R"([{"ph":"f","id":2689,"pid":-1,"tid":"main","ts":1,"bp":"e"},
          {"ph":"s","id":"0xa1","pid":"GPU \u0031","tid":-5 ,"ts":"2.5"}])",
      [&](const TraceJsonEvent& event) {
        events.push_back(absl::StrCat(std::string(1, event.ph), " ", event.pid, " ", event.tid, " ",
                                      static_cast<int64_t>(*event.ts_ps)));
        return absl::OkStatus();
      },
      &problems));
  EXPECT_THAT(events, ElementsAre("f -1 main 1000000", "s GPU 1 -5 2500000"));
}

TEST(TraceJsonReaderTest, TimesAreExactWhateverTheirForm) {
  const Reading reading = Read(R"([
    {"ph":"X","name":"a","ts":-0.000001,"dur":9007199254740.993001},
    {"ph":"X","name":"b","ts":1.5e3,"dur":"2"},
    {"ph":"X","name":"c","ts":"9223372036854.775807"},
    {"ph":"M","name":"d"}
  ])");
  EXPECT_THAT(reading.events, ElementsAre("a@-1+9007199254740993001", "b@1500000000+2000000",
                                          "c@9223372036854775807+0", "d@+0"));
  EXPECT_EQ(reading.problems.ToString(), "");
}

TEST(TraceJsonReaderTest, CountsAndSkipsWhatCannotBeUsed) {
  const std::pair<const char*, absl::string_view> kCases[] = {
      {"17", TraceJsonProblem::kNotAnObject},
      {"\"{}\"", TraceJsonProblem::kNotAnObject},
      {"[{}]", TraceJsonProblem::kNotAnObject},
      {"null", TraceJsonProblem::kNotAnObject},
      {"NaN", TraceJsonProblem::kNotAnObject},
      {R"({"ph":"XX","ts":1})", TraceJsonProblem::kWrongType},
      {R"({"ph":"","ts":1})", TraceJsonProblem::kWrongType},
      {R"({"ph":1,"ts":1})", TraceJsonProblem::kWrongType},
      {R"({"ph":"X","ts":1,"name":null})", TraceJsonProblem::kWrongType},
      {R"({"ph":"X","ts":1,"pid":true})", TraceJsonProblem::kWrongType},
      {R"({"ph":"X","ts":1,"tid":[1]})", TraceJsonProblem::kWrongType},
      {R"({"ph":"X","ts":1,"args":[1]})", TraceJsonProblem::kWrongType},
      {R"({"ts":1})", TraceJsonProblem::kMissingPhase},
      {R"({"ph":"X"})", TraceJsonProblem::kMissingTime},
      {R"({"ph":"X","ts":NaN})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":-Infinity})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":null})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":{}})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":"soon"})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":1,"pid":-Infinity})", TraceJsonProblem::kWrongType},
      {R"({"ph":"X","ts":1e400})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":1,"dur":9223372036854.775808})", TraceJsonProblem::kBadTime},
      {R"({"ph":"X","ts":1,"dur":-1})", TraceJsonProblem::kNegativeDuration},
  };
  for (const auto& [element, problem] : kCases) {
    const Reading reading = Read(absl::StrCat(R"([{"ph":"X","name":"before","ts":1},)", element,
                                              R"(,{"ph":"X","name":"after","ts":2}])"));
    EXPECT_OK(reading.header) << element;
    EXPECT_THAT(reading.events, ElementsAre("before@1000000+0", "after@2000000+0")) << element;
    EXPECT_EQ(reading.problems.total(), 1) << element;
    EXPECT_THAT(reading.problems.first_offset(problem), Optional(35)) << element;
  }
}

TEST(TraceJsonReaderTest, WhatIsNotJsonIsRefusedWithItsPlace) {
  const std::pair<std::string, std::string> kCases[] = {
      {"", "offset 35: expected a value"},
      {R"({"ph":"X","ts":1,})", "offset 52: expected a member's name in quotes"},
      {R"({"ph":"X" "ts":1})", "offset 45: expected ',' or '}'"},
      {R"({"ph":"X",ts:1})", "offset 45: expected a member's name in quotes"},
      {R"({"ph":"X","ts":1,"name":"\x"})", "offset 60: an escape that means no character"},
      {R"({"ph":"X","ts":1,"name":"\ud83d"})", "offset 60: an escape that means no character"},
      {"{\"ph\":\"X\",\"ts\":1,\"name\":\"\n\"}", "offset 60: a control character in a string"},
      {"{\"ph\":\"X\",\"ts\":1,\"name\":\"\xFF\"}", "offset 60: text is not UTF-8"},
      // A form feed is no white space in JSON.
      {"{\"ph\":\"X\",\"ts\":1\f}", "offset 50: neither a number nor true, false or null"},
      {R"({"ph":"X","ts":1,"args":{"a":tru}})",
       "offset 64: neither a number nor true, false or null"},
      {R"({"ph":"X","ts":1,"args":{"a":01}})",
       "offset 64: neither a number nor true, false or null"},
      {R"({"ph":"X","ts":1,"args":{"a":1.}})",
       "offset 64: neither a number nor true, false or null"},
      {R"({"ph":"X","ts":1,"args":{"a" 1}})", "offset 64: expected ':'"},
      {R"({"ph":"X","ts":1,"args":["a":1]})", "offset 63: expected ',' or ']'"},
      {R"({"ph":"X","ts":1,"args":{"a":[1,,2]}})", "offset 67: expected a value"},
  };
  for (const auto& [element, message] : kCases) {
    const Reading reading = Read(absl::StrCat(R"([{"ph":"X","name":"before","ts":1},)", element,
                                              R"(,{"ph":"X","name":"after","ts":2}])"));
    EXPECT_THAT(reading.header, StatusIs(kInvalid, message)) << element;
  }
  EXPECT_THAT(Read("\xEF\xBB\xBF[]").header, StatusIs(kInvalid, HasSubstr("byte order mark")));
  EXPECT_THAT(Read(R"({"a": 1x, "traceEvents": []})").header,
              StatusIs(kInvalid, "offset 6: neither a number nor true, false or null"));
  EXPECT_THAT(Read(R"({"a": , "traceEvents": []})").header,
              StatusIs(kInvalid, "offset 6: expected a value"));
}

TEST(TraceJsonReaderTest, IgnoresWhatItIsNotAskedFor) {
  const Reading reading = Read(R"([
    {"ph":"X","ts":1,"name":"a","x":NaN,"y":[{"ts":"no"}],"args":{"a":Infinity,"b":true}},
    {}, { }])");
  EXPECT_THAT(reading.events, ElementsAre("a@1000000+0"));
  EXPECT_EQ(reading.problems.ToString(), "");
}

TEST(TraceJsonReaderTest, TheLastOfRepeatedFieldsCounts) {
  EXPECT_THAT(Read(R"([{"ph":"M","name":"a","ts":1,"ph":"X","name":"b","ts":2}])").events,
              ElementsAre("b@2000000+0"));
  EXPECT_THAT(Read(R"([{"ph":"X","\u006eame":"escaped","ts":2}])").events,
              ElementsAre("escaped@2000000+0"));
}

TEST(TraceJsonReaderTest, EventsOfAllLengthsComeThrough) {
  std::string text = "[";
  std::vector<std::string> expected;
  for (int size = 0; size < 400; ++size) {
    const std::string name(size * size % 7919, 'n');
    absl::StrAppend(&text, size == 0 ? "" : ",", R"({"name":")", name, R"(","ph":"X","ts":)", size,
                    "}");
    expected.push_back(absl::StrCat(name, "@", size * 1000000, "+0"));
  }
  EXPECT_EQ(Read(absl::StrCat(text, "]")).events, expected);
}

TEST(TraceJsonReaderTest, TooLongEventsAreCounted) {
  const Reading reading =
      Read(absl::StrCat(R"([{"name":")", std::string(kMaxTraceJsonEventBytes, 'n'), "\"}]"));
  EXPECT_THAT(reading.events, IsEmpty());
  EXPECT_EQ(reading.problems.ToString(), "1 too long (at offset 1)");
}

TEST(TraceJsonReaderTest, DamagedStructureIsAnErrorAfterTheEventsBeforeIt) {
  const Reading reading = Read(R"({"traceEvents":[{"ph":"X","name":"a","ts":1},{"name":"b)");
  EXPECT_THAT(reading.header, StatusIs(kInvalid, "offset 53: string without end"));
  EXPECT_THAT(reading.events, ElementsAre("a@1000000+0"));
}

TEST(TraceJsonReaderTest, BaseTimeMustBeAnInteger) {
  EXPECT_THAT(Read(R"({"traceEvents":[],"baseTimeNanoseconds":"12"})").header->base_time_ns,
              Optional(12));
  EXPECT_THAT(Read(R"({"traceEvents":[],"baseTimeNanoseconds":1.5})").header,
              StatusIs(kInvalid, HasSubstr("baseTimeNanoseconds is not an integer")));
}

TraceJsonVerdict Compare(absl::string_view text) {
  TraceJsonVerdict verdict = TraceJsonVerdict::kMalformed;
  EXPECT_OK(CompareWithWholeDocument(text, &verdict)) << text.substr(0, 1000);
  return verdict;
}

TEST(TraceJsonReaderTest, AgreesWithAParseOfTheWholeDocumentOnRealFiles) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int traces = 0;
  for (const char* folder : {"/samples/kineto", "/traces/torch_nccl4"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + folder)) {
      const std::string path = entry.path().string();
      if (!absl::EndsWith(path, ".json.gz")) continue;
      SCOPED_TRACE(path);
      ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
      // Beside Kineto's traces lie PyTorch's execution traces.
      const bool is_trace =
          !absl::StrContains(path, "/et_") && !absl::EndsWith(path, "_et.json.gz");
      EXPECT_EQ(Compare(file.bytes()),
                is_trace ? TraceJsonVerdict::kAccepted : TraceJsonVerdict::kNoTrace);
      traces += is_trace;
    }
  }
  EXPECT_GE(traces, 18);
}

// One of everything.
constexpr absl::string_view kSeed = R"({"schemaVersion": 1,"traceEvents": [
  {"ph":"X","cat":"kernel","name":"k\"\\\u00e9","pid":0,"tid":7,"ts":-17.5,"dur":1e2,
   "args":{"correlation":5,"grid":[1,[2]],"s":"]}"}},
  {"ph":"M","name":"thread_name","pid":"a","tid":1,"args":{"name":"t"}},
  {"ph":"s","id":"3","pid":1,"tid":2,"ts":"12","bp":"e"},{"ts":1},7,{}],
  "t":[true,false,null,0.5,-0,10,"\u00e9\/"], "o" : { } ,
  "baseTimeNanoseconds": 1711964646000000000})";

TEST(TraceJsonReaderTest, AgreesWithAParseOfTheWholeDocumentOnDamagedText) {
  ASSERT_EQ(Compare(kSeed), TraceJsonVerdict::kAccepted);
  constexpr absl::string_view kBytes = "{}[]\",:\\0123456789.eE+- nXtu\f\x01\xFF";
  std::mt19937 random(5);
  std::map<TraceJsonVerdict, int> verdicts;
  for (int round = 0; round < 60000 && !HasFailure(); ++round) {
    std::string text(kSeed);
    for (int n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        case 2:
          text.erase(at, 1 + random() % 4);
          break;
        case 3:
          text.insert(at, std::string(kSeed.substr(random() % kSeed.size(), random() % 60)));
          break;
      }
    }
    ++verdicts[Compare(text)];
  }
  EXPECT_GT(verdicts[TraceJsonVerdict::kAccepted], 5000);
  EXPECT_GT(verdicts[TraceJsonVerdict::kNoTrace], 50);
  EXPECT_GT(verdicts[TraceJsonVerdict::kMalformed], 5000);
}

TEST(TraceJsonReaderTest, SurvivesEveryTruncation) {
  for (size_t size = 0; size < kSeed.size(); ++size) {
    EXPECT_NE(Compare(kSeed.substr(0, size)), TraceJsonVerdict::kAccepted) << size;
    EXPECT_THAT(Read(kSeed.substr(0, size)).header, StatusIs(kInvalid)) << size;
  }
}

TEST(TraceJsonProblemsTest, CountsAndRemembersTheFirstOfEachKind) {
  TraceJsonProblems problems;
  EXPECT_EQ(problems.total(), 0);
  EXPECT_EQ(problems.ToString(), "");
  EXPECT_EQ(problems.first_offset(TraceJsonProblem::kTooLong), std::nullopt);
  problems.Add(TraceJsonProblem::kMissingTime, 99);
  problems.Add(TraceJsonProblem::kTooLong, 17);
  problems.Add(TraceJsonProblem::kTooLong, 20);
  EXPECT_EQ(problems.total(), 3);
  EXPECT_EQ(problems.count(TraceJsonProblem::kTooLong), 2);
  EXPECT_THAT(problems.first_offset(TraceJsonProblem::kTooLong), Optional(17));
  EXPECT_EQ(problems.ToString(), "2 too long (first at offset 17), 1 without ts (at offset 99)");
}

}  // namespace
}  // namespace meridian
