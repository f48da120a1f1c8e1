#include "xla_profiler/kineto/event_table_json.h"

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TraceJsonTable Load(absl::string_view text) {
  absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(text, "test.json");
  EXPECT_OK(loaded);
  return *std::move(loaded);
}

// "name start+duration" of each row, in picoseconds.
std::vector<std::string> Rows(const EventTable& table) {
  std::vector<std::string> rows;
  for (EventRow row = 0; row < table.size(); ++row) {
    rows.push_back(
        absl::StrCat(table.name(row), " ", table.start_ps(row), "+", table.duration_ps(row)));
  }
  return rows;
}

// A launch and its kernel in a container, where the process has the number of a device.
constexpr char kKineto[] = R"json({
  "schemaVersion": 1,
  "traceEvents": [
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 7,
    "ts": 3844757818350.492, "dur": 4.871,
    "args": { "External id": 513, "cbid": 211, "correlation": 2689 }
  },
  { "ph": "s", "id": 2689, "pid": 1, "tid": 7, "ts": 3844757818350.492, "cat": "ac2g", "name": "ac2g" },
  {
    "ph": "X", "cat": "kernel", "name": "void f<float>()", "pid": 1, "tid": 7,
    "ts": 3844757818355.0005, "dur": 18.399,
    "args": { "device": 1, "stream": 7, "correlation": 2689, "grid": [1, 128, 1] }
  },
  { "ph": "f", "id": 2689, "pid": 1, "tid": 7, "ts": 3844757818355.0005, "cat": "ac2g", "name": "ac2g", "bp": "e" },
  { "ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 8, "ts": 3844757818340, "dur": 10 },
  { "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 3844757818400 },
  { "ph": "C", "name": "memory", "pid": 1, "ts": 3844757818400, "args": { "bytes": 1 } },
  { "ph": "N", "name": "object", "id": 1, "ts": 1 },
  { "ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": { "name": "python3" } },
  { "ph": "M", "name": "thread_name", "pid": 1, "tid": 8, "args": { "name": "thread 8 (\"main\")" } },
  { "ph": "M", "name": "process_sort_index", "pid": 1, "args": { "sort_index": 5 } }
  ],
  "baseTimeNanoseconds": 1790857026000000000
})json";

TEST(EventTableJsonTest, LoadsATraceOfKineto) {
  const TraceJsonTable loaded = Load(kKineto);
  const EventTable& table = loaded.table;
  // baseTimeNanoseconds + 3844757818350492 ns.
  EXPECT_EQ(table.base_ns(), 1794701783818350492);
  EXPECT_THAT(Rows(table),
              ElementsAre("cudaLaunchKernel 0+4871000", "void f<float>() 4508500+18399000",
                          "aten::add -10492000+10000000"));
  EXPECT_EQ(table.category(0), EventCategory::kRuntimeApi);
  EXPECT_EQ(table.category(1), EventCategory::kKernel);
  EXPECT_EQ(table.category(2), EventCategory::kCpuOp);
  EXPECT_THAT(table.correlation(0), Optional(2689));
  EXPECT_THAT(table.correlation(1), Optional(2689));
  EXPECT_EQ(table.correlation(2), std::nullopt);
  EXPECT_EQ(loaded.problems.ToString(), "");
  EXPECT_THAT(loaded.header.Find("schemaVersion").AsInt64(), Optional(1));
}

TEST(EventTableJsonTest, RowsKnowTheirPlaceInTheFile) {
  EXPECT_THAT(Load(kKineto).positions, ElementsAre(0, 2, 4));
  EXPECT_THAT(Load(R"([{"ph":"i","ts":1}, {"ph":"B","ts":1}, {"ph":"E","ts":2},
                       {"ph":"X","ts":3,"dur":1}])")
                  .positions,
              ElementsAre(1, 3));
}

TEST(EventTableJsonTest, DeviceWorkHasItsOwnTracks) {
  const EventTable table = Load(kKineto).table;
  ASSERT_EQ(table.tracks().size(), 3);
  const Track& launch = table.track(table.track_id(0));
  const Track& kernel = table.track(table.track_id(1));
  const Track& op = table.track(table.track_id(2));
  EXPECT_EQ(launch.kind, TrackKind::kHost);
  EXPECT_EQ(launch.process, "1");
  EXPECT_EQ(launch.thread, "7");
  EXPECT_EQ(launch.device_id, std::nullopt);
  EXPECT_EQ(kernel.kind, TrackKind::kDevice);
  EXPECT_EQ(kernel.process, "1");
  EXPECT_EQ(kernel.thread, "7");
  EXPECT_THAT(kernel.device_id, Optional(1));
  EXPECT_EQ(op.name, "thread 8 (\"main\")");
  EXPECT_EQ(op.process_name, "python3");
  for (const Track& track : table.tracks()) EXPECT_EQ(track.clock, ClockDomain::kHost);
}

TEST(EventTableJsonTest, ArgumentsAreReadAgainOnDemand) {
  const EventTable table = Load(kKineto).table;
  EXPECT_THAT(ReadTraceJsonArgs(kKineto, table, 0).Find("External id").AsInt64(), Optional(513));
  EXPECT_THAT(ReadTraceJsonArgs(kKineto, table, 1).Find("grid").AsInt64Array(),
              Optional(ElementsAre(1, 128, 1)));
  EXPECT_FALSE(ReadTraceJsonArgs(kKineto, table, 2).exists());
}

TEST(EventTableJsonTest, EpochTimesFitWithoutABaseTime) {
  const TraceJsonTable loaded = Load(R"([
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321.0005,"dur":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":1694039968933322,"dur":1}])");
  EXPECT_EQ(loaded.table.base_ns(), 1694039968933321000);
  EXPECT_THAT(Rows(loaded.table), ElementsAre("a 500+1000000", "b 1000000+1000000"));
}

TEST(EventTableJsonTest, NegativeTimesRoundTheBaseDown) {
  const TraceJsonTable loaded =
      Load(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":-0.0005,"dur":1}])");
  // -500 ps = -1 ns + 500 ps.
  EXPECT_EQ(loaded.table.base_ns(), -1);
  EXPECT_THAT(Rows(loaded.table), ElementsAre("a 500+1000000"));
}

TEST(EventTableJsonTest, PairsBeginsWithEndsThreadByThread) {
  const TraceJsonTable loaded = Load(R"([
    {"ph":"B","name":"outer","pid":1,"tid":1,"ts":10,"args":{"x":1}},
    {"ph":"B","name":"inner","pid":1,"tid":1,"ts":10},
    {"ph":"B","name":"other","pid":1,"tid":2,"ts":11},
    {"ph":"E","pid":1,"tid":1,"ts":15},
    {"ph":"E","name":"outer","pid":1,"tid":1,"ts":15,"args":{"x":2}},
    {"ph":"E","pid":1,"tid":1,"ts":16},
    {"ph":"E","pid":1,"tid":2,"ts":20}])");
  EXPECT_THAT(Rows(loaded.table),
              ElementsAre("outer 0+5000000", "inner 0+5000000", "other 1000000+9000000"));
  // Of equal spans the one that began first is the outer one.
  EXPECT_THAT(TrackIndex(loaded.table).Rows(0), ElementsAre(0, 1));
}

TEST(EventTableJsonTest, BeginsWithoutEndLastUntilTheLastEnd) {
  const TraceJsonTable loaded = Load(R"([
    {"ph":"B","name":"a","pid":1,"tid":1,"ts":10},
    {"ph":"B","name":"b","pid":1,"tid":1,"ts":50},
    {"ph":"X","name":"c","pid":1,"tid":2,"ts":20,"dur":10}])");
  EXPECT_THAT(Rows(loaded.table),
              ElementsAre("a 0+40000000", "b 40000000+0", "c 10000000+10000000"));
}

TEST(EventTableJsonTest, EndsBeforeTheirBeginAreCounted) {
  const TraceJsonTable loaded = Load(R"([
    {"ph":"B","name":"a","pid":1,"tid":1,"ts":10},
    {"ph":"E","pid":1,"tid":1,"ts":9}])");
  EXPECT_THAT(Rows(loaded.table), ElementsAre("a 0+0"));
  EXPECT_EQ(loaded.problems.count(TraceJsonProblem::kNegativeDuration), 1);
}

TEST(EventTableJsonTest, TimesTooFarFromTheFirstAreCounted) {
  // 2^63 ps = 9223372036854.775808 us, just over 106 days.
  const TraceJsonTable loaded = Load(R"([
    {"ph":"X","name":"far","pid":1,"tid":1,"ts":1e23},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":9223372036854.775807},
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":9223372036854.775807,"dur":0.000001},
    {"ph":"X","name":"d","pid":1,"tid":1,"ts":9223372036854.775808},
    {"ph":"X","name":"e","pid":1,"tid":1,"ts":1694039968933321}])");
  EXPECT_THAT(Rows(loaded.table),
              ElementsAre("a 0+1000000", "a 0+1000000", "a 0+1000000", "a 0+1000000", "a 0+1000000",
                          "b 9223372036854775807+0"));
  EXPECT_EQ(loaded.problems.count(TraceJsonProblem::kTimeOutOfRange), 4);
}

TEST(EventTableJsonTest, SpansOfMoreThanTheRangeAreCountedOrCut) {
  const TraceJsonTable loaded = Load(R"([
    {"ph":"X","name":"origin","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"B","name":"a","pid":1,"tid":1,"ts":-9000000000000},
    {"ph":"E","pid":1,"tid":1,"ts":9000000000000},
    {"ph":"B","name":"b","pid":1,"tid":1,"ts":-9000000000000},
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":9000000000000}])");
  EXPECT_EQ(loaded.problems.count(TraceJsonProblem::kTimeOutOfRange), 1);
  EXPECT_EQ(loaded.table.duration_ps(1), 0);
  EXPECT_EQ(loaded.table.duration_ps(2), std::numeric_limits<int64_t>::max());
}

TEST(EventTableJsonTest, ErrorsNameTheFile) {
  EXPECT_THAT(LoadTraceJson("{", "a.json"),
              StatusIs(kInvalid, "a.json: offset 1: expected a member's name in quotes"));
  EXPECT_THAT(LoadTraceJson(R"({"baseTimeNanoseconds":9223372036854775807,
                                "traceEvents":[{"ph":"X","ts":1}]})",
                            "a.json"),
              StatusIs(kInvalid, HasSubstr("beyond the year 2262")));
}

TEST(EventTableJsonTest, ATraceWithoutRowsIsFine) {
  const TraceJsonTable loaded = Load(R"({"traceEvents":[],"baseTimeNanoseconds":5})");
  EXPECT_THAT(Rows(loaded.table), IsEmpty());
  EXPECT_EQ(loaded.table.base_ns(), 5);
}

// Compares rows, times and correlations with simdjson's parse of the whole document.
void ExpectSameAsWholeDocument(absl::string_view text, const TraceJsonTable& loaded) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_FALSE(parser.parse(text.data(), text.size()).get(document));
  const EventTable& table = loaded.table;
  const int64_t origin_ns = table.base_ns() - loaded.header.base_time_ns.value_or(0);
  EventRow row = 0;
  for (const simdjson::dom::element event : document["traceEvents"].get_array()) {
    const std::string_view ph = event["ph"].get_string();
    if (ph != "X") continue;
    ASSERT_LT(row, table.size());
    const double ts_us = event["ts"].get_double();
    const double dur_us = event["dur"].get_double();
    // Doubles of today's epoch in us are 1/4 us apart.
    EXPECT_NEAR(1e-3 * origin_ns + 1e-6 * table.start_ps(row), ts_us, 0.5);
    EXPECT_NEAR(1e-6 * table.duration_ps(row), dur_us, 1e-6 + 1e-12 * dur_us);
    EXPECT_EQ(std::string(table.name(row)), std::string(event["name"].get_string().value()));
    uint64_t correlation = 0;
    const bool has_correlation = !event["args"]["correlation"].get_uint64().get(correlation);
    EXPECT_EQ(table.correlation(row).has_value(), has_correlation);
    EXPECT_EQ(table.correlation(row).value_or(0), correlation);
    uint64_t id = 0;
    const bool has_id = !event["args"]["External id"].get_uint64().get(id);
    const std::optional<uint64_t> our_id =
        ReadTraceJsonArgs(text, table, row).Find("External id").AsUint64();
    EXPECT_EQ(our_id.has_value(), has_id);
    EXPECT_EQ(our_id.value_or(0), id);
    ++row;
  }
  EXPECT_EQ(table.size(), row);
}

TEST(EventTableJsonTest, AgreesWithAParseOfTheWholeDocumentOnRealFiles) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int traces = 0;
  for (const char* folder : {"/samples/kineto", "/traces/torch_nccl4"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + folder)) {
      const std::string path = entry.path().string();
      if (!absl::EndsWith(path, ".json.gz")) continue;
      if (absl::StrContains(path, "/et_") || absl::EndsWith(path, "_et.json.gz")) continue;
      SCOPED_TRACE(path);
      ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
      ASSERT_OK_AND_ASSIGN(const TraceJsonTable loaded, LoadTraceJson(file.bytes(), file.path()));
      EXPECT_EQ(loaded.problems.ToString(), "");
      ExpectSameAsWholeDocument(file.bytes(), loaded);
      ++traces;
    }
  }
  EXPECT_GE(traces, 18);
}

TEST(EventTableJsonTest, CountsOfARealFile) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(
      const InputFile file,
      InputFile::Open(FileSystem::Posix(), *shared + "/traces/torch_nccl4/kineto_0.json.gz"));
  ASSERT_OK_AND_ASSIGN(const TraceJsonTable loaded, LoadTraceJson(file.bytes(), file.path()));
  std::map<std::string, int> rows;
  for (EventRow row = 0; row < loaded.table.size(); ++row) {
    ++rows[std::string(EventCategoryName(loaded.table.category(row)))];
  }
  // Counted with Python's json module.
  EXPECT_THAT(
      rows, ElementsAre(Pair("annotation", 14), Pair("cpu_op", 1320), Pair("device_annotation", 14),
                        Pair("kernel", 254), Pair("memcpy", 66), Pair("memset", 17),
                        Pair("runtime_api", 447), Pair("step", 2), Pair("unknown", 1)));
  EXPECT_EQ(loaded.table.tracks().size(), 5);
}

TEST(EventTableJsonTest, OneAbsurdFirstEventCostsOnlyItself) {
  const std::string text = R"([
    {"ph":"X","name":"junk","pid":1,"tid":1,"ts":0,"dur":1},
    {"ph":"X","name":"a","pid":1,"tid":1,"ts":1794701783818350.5,"dur":1},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":1794701783818351,"dur":1},
    {"ph":"X","name":"c","pid":1,"tid":1,"ts":1794701783818352,"dur":1}])";
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(text, "a.json");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->table.size(), 3u);
  EXPECT_EQ(loaded->table.base_ns(), 1794701783818350500);
  EXPECT_EQ(loaded->table.start_ps(1), 500000);
}

}  // namespace
}  // namespace meridian
