#include "xla_profiler/trace_json/trace_json_writer.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(TraceJsonWriterTest, WritesTheWholeDocument) {
  std::string out;
  StringSink sink(&out);
  TraceJsonWriter writer(&sink);
  ASSERT_OK(writer.WriteProcess(1, "Node \"0\"", -5));
  ASSERT_OK(writer.WriteThread(1, 7, "Stream #7", 2));
  TraceJsonArgs args;
  args.AddString("s", "a\n");
  args.AddInt64("i", std::numeric_limits<int64_t>::min());
  args.AddUint64("u", std::numeric_limits<uint64_t>::max());
  args.AddDouble("d", 0.1);
  args.AddDouble("inf", -std::numeric_limits<double>::infinity());
  args.AddJson("j", "[1,2]");
  ASSERT_OK(writer.WriteComplete({1, 7, "k\xFF", "kernel", 17500000, &args}, 1000));
  ASSERT_OK(writer.WriteFlow({1, 7, "launch", "ac2g", -1000000}, FlowPhase::kStart, 42));
  ASSERT_OK(writer.WriteFlow({1, 7, "launch", "ac2g", 2000}, FlowPhase::kEnd, 42));
  args.Clear();
  args.AddInt64("bytes", 4096);
  ASSERT_OK(writer.WriteCounter({1, 0, "memory", "", 3000000, &args}));
  ASSERT_OK(writer.Finish());
  EXPECT_EQ(out,
            R"({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"Node \"0\""}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":-5}},
{"ph":"M","pid":1,"tid":7,"name":"thread_name","args":{"name":"Stream #7"}},
{"ph":"M","pid":1,"tid":7,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":7,"ts":17.5,"name":"k)"
            "\xEF\xBF\xBD"
            R"(","cat":"kernel","dur":0.001,"args":{"s":"a\n","i":-9223372036854775808,)"
            R"("u":18446744073709551615,"d":0.1,"inf":"-Infinity","j":[1,2]}},
{"ph":"s","pid":1,"tid":7,"ts":-1,"name":"launch","cat":"ac2g","id":42},
{"ph":"f","pid":1,"tid":7,"ts":0.002,"name":"launch","cat":"ac2g","id":42,"bp":"e"},
{"ph":"C","pid":1,"tid":0,"ts":3,"name":"memory","args":{"bytes":4096}}
]}
)");
}

TEST(TraceJsonWriterTest, ADocumentWithoutEventsIsWhole) {
  std::string out;
  StringSink sink(&out);
  TraceJsonWriter writer(&sink);
  ASSERT_OK(writer.Finish());
  EXPECT_EQ(out,
            "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},"
            "\"traceEvents\":[\n]}\n");
}

// 1.5 ns to 3.5 ns, then to 3.9 ns, then to 7.5 ns; and before zero. Rounded one by one, 1.5 + 2
// would end after 3.5 begins.
TEST(TraceJsonWriterTest, WhatTouchesStillDoesInWholeNanoseconds) {
  std::string out;
  StringSink sink(&out);
  TraceJsonWriter writer(&sink);
  ASSERT_OK(writer.WriteComplete({1, 7, "a", "", 1500}, 2000));
  ASSERT_OK(writer.WriteComplete({1, 7, "b", "", 3500}, 400));
  ASSERT_OK(writer.WriteComplete({1, 7, "c", "", 3900}, 3600));
  ASSERT_OK(writer.WriteComplete({1, 7, "d", "", -1500}, 1000));
  ASSERT_OK(writer.WriteComplete({1, 7, "e", "", -500}, std::numeric_limits<int64_t>::max()));
  ASSERT_OK(writer.Finish());
  EXPECT_THAT(out, AllOf(HasSubstr(R"("ts":0.001,"name":"a","dur":0.002)"),
                         HasSubstr(R"("ts":0.003,"name":"b","dur":0})"),
                         HasSubstr(R"("ts":0.003,"name":"c","dur":0.004)"),
                         HasSubstr(R"("ts":-0.002,"name":"d","dur":0.001)"),
                         HasSubstr(R"("ts":-0.001,"name":"e","dur":9223372036854.776)")));
}

TEST(TraceJsonWriterTest, TellsWhatTheTimesCountFrom) {
  std::string out;
  StringSink sink(&out);
  TraceJsonWriter writer(&sink, 1794701451406144825);
  ASSERT_OK(writer.Finish());
  EXPECT_EQ(out,
            "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},"
            "\"baseTimeNanoseconds\":1794701451406144825,\"traceEvents\":[\n]}\n");
}

TEST(TraceJsonWriterTest, TheReaderReadsWhatWasWritten) {
  // Enough to fill the buffer several times.
  constexpr int kEvents = 5000;
  std::string out;
  StringSink sink(&out);
  TraceJsonWriter writer(&sink);
  TraceJsonArgs args;
  for (int i = 0; i < kEvents; ++i) {
    args.Clear();
    args.AddDouble("third", i / 3.0);
    ASSERT_OK(writer.WriteComplete(
        {i, -i, absl::StrCat("event ", i), "c", i * int64_t{999983000}, &args}, i * int64_t{1000}));
  }
  ASSERT_OK(writer.Finish());
  int i = 0;
  TraceJsonProblems problems;
  ASSERT_OK(ReadTraceJson(
      out,
      [&](const TraceJsonEvent& event) {
        EXPECT_EQ(event.ph, 'X');
        EXPECT_EQ(event.pid, absl::StrCat(i));
        EXPECT_EQ(event.tid, absl::StrCat(-i));
        EXPECT_EQ(event.name, absl::StrCat("event ", i));
        EXPECT_EQ(event.ts_ps, i * int64_t{999983000});
        EXPECT_EQ(event.dur_ps, i * int64_t{1000});
        EXPECT_THAT(event.args.Find("third").AsDouble(), Optional(i / 3.0));
        ++i;
        return absl::OkStatus();
      },
      &problems));
  EXPECT_EQ(i, kEvents);
  EXPECT_EQ(problems.ToString(), "");
}

// Fails when it is asked to hold more than a number of bytes.
class FullSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override {
    bytes_ += data.size();
    return bytes_ > 100000 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  }

 private:
  uint64_t bytes_ = 0;
};

TEST(TraceJsonWriterTest, ErrorsOfTheSinkComeBack) {
  FullSink sink;
  TraceJsonWriter writer(&sink);
  absl::Status status;
  int written = 0;
  for (; status.ok() && written < 10000; ++written) {
    status = writer.WriteComplete({1, 2, "event", "", written}, 1);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_LT(written, 10000);
}

}  // namespace
}  // namespace meridian
