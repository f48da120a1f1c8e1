#include "critical_path/hta/hta_frame.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "id name start+duration partner" of each row, in microseconds.
std::vector<std::string> Rows(absl::string_view text) {
  const absl::StatusOr<HtaFrame> frame = LoadHtaFrame(text, "test");
  EXPECT_OK(frame);
  std::vector<std::string> rows;
  for (const HtaRow& row : frame->rows) {
    rows.push_back(absl::StrCat(row.index, " ", frame->names.Get(row.name), " ",
                                row.start_ps / kPsPerUs, "+", row.duration_ps / kPsPerUs, " ",
                                row.partner));
    EXPECT_EQ(frame->Find(row.index), &row);
  }
  return rows;
}

TEST(HtaFrameTest, KeepsEventsWithDurationAndCategory) {
  KinetoTrace trace;
  trace.Raw(R"({"ph": "s", "ts": 1, "cat": "ac2g", "id": 3})");
  trace.Raw(R"({"ph": "X", "ts": 5, "dur": 900, "cat": "Trace", "name": "PyTorch Profiler"})");
  trace.Op("op", 20, 30);
  trace.Raw(R"({"ph": "X", "ts": 1, "dur": 2, "name": "without category"})");
  trace.Call("cudaLaunchKernel", 25, 3, 8);
  trace.Call("cudaFree", 30, 3, 9);
  trace.Kernel("kernel", 40, 3, 7, 8);
  // Times count from the earliest of those kept.
  EXPECT_THAT(Rows(trace.Text()), ElementsAre("2 op 0+30 -1", "4 cudaLaunchKernel 5+3 6",
                                              "5 cudaFree 10+3 0", "6 kernel 20+3 4"));
}

TEST(HtaFrameTest, RoundsInwardsWhenAStartHasAFraction) {
  KinetoTrace trace;
  trace.Op("a", 10, 5.9);
  trace.Op("b", 20.25, 1.5);
  trace.Op("c", 30.25, 0.5);
  // b: from 20.25 up to 21, to 21.75 down to 21. c: from 31 to 30.
  EXPECT_THAT(Rows(trace.Text()), ElementsAre("0 a 0+5 -1", "1 b 11+0 -1", "2 c 21+-1 -1"));
}

TEST(HtaFrameTest, RoundsDoublesAsPythonReadsThem) {
  // Doubles of this size are 1/4 apart: .05 is read as .0, and .2 as .25.
  KinetoTrace trace;
  trace.Raw(R"({"ph":"X","cat":"cpu_op","name":"a","ts":1712160700123456.05,"dur":10})");
  trace.Raw(R"({"ph":"X","cat":"cpu_op","name":"b","ts":1712160700123456.2,"dur":10})");
  EXPECT_THAT(Rows(trace.Text()), ElementsAre("0 a 0+10 -1", "1 b 1+9 -1"));
}

TEST(HtaFrameTest, KeepsFractionsOfDurationsWhenStartsHaveNone) {
  KinetoTrace trace;
  trace.Op("a", 10, 5.9);
  ASSERT_OK_AND_ASSIGN(const HtaFrame whole, LoadHtaFrame(trace.Text(), "test"));
  EXPECT_EQ(whole.rows[0].duration_ps, 5900000);
  // An event without a time makes Pandas use doubles, which HTA rounds.
  trace.Raw(R"({"ph": "M", "name": "process_name", "pid": 1})");
  ASSERT_OK_AND_ASSIGN(const HtaFrame rounded, LoadHtaFrame(trace.Text(), "test"));
  EXPECT_EQ(rounded.rows[0].duration_ps, 5000000);
}

TEST(HtaFrameTest, ACallKnowsTheLastOfItsKernels) {
  KinetoTrace trace;
  trace.Call("cudaGraphLaunch", 0, 3, 8);
  trace.Kernel("k1", 10, 3, 7, 8);
  trace.Kernel("k2", 20, 3, 7, 8);
  EXPECT_THAT(Rows(trace.Text()),
              ElementsAre("0 cudaGraphLaunch 0+3 2", "1 k1 10+3 0", "2 k2 20+3 0"));
}

TEST(HtaFrameTest, StreamsThatAreNoNumbersAreNone) {
  KinetoTrace trace;
  trace.Raw(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,
                "args":{"stream":"0x0","correlation":3}})");
  trace.Raw(R"({"ph":"X","cat":"kernel","name":"l","ts":1,"dur":1,
                "args":{"stream":"12","correlation":4}})");
  ASSERT_OK_AND_ASSIGN(const HtaFrame frame, LoadHtaFrame(trace.Text(), "test"));
  EXPECT_EQ(frame.rows[0].stream, -1);
  EXPECT_EQ(frame.rows[1].stream, 12);
}

TEST(HtaFrameTest, ReadsWhatSyncsWaitFor) {
  KinetoTrace trace;
  trace.Op("op", 0, 1);
  trace.EventSync("Stream Wait Event", 8, 1, 24, 21, 7, 11);
  ASSERT_OK_AND_ASSIGN(const HtaFrame frame, LoadHtaFrame(trace.Text(), "test"));
  ASSERT_EQ(frame.waits.size(), 1u);
  EXPECT_EQ(frame.waits.at(1).stream, 7);
  EXPECT_EQ(frame.waits.at(1).record_correlation, 11);
}

TEST(HtaFrameTest, LeavesTheLastOfSeveralStepsOut) {
  KinetoTrace trace;
  trace.Annotation("ProfilerStep#1", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Annotation("ProfilerStep#2", 100, 100);
  trace.Call("cudaLaunchKernel", 110, 5, 2);
  trace.Kernel("of step 1", 150, 5, 7, 1);
  trace.Kernel("of step 2", 160, 5, 7, 2);
  // Device rows come first.
  EXPECT_THAT(Rows(trace.Text()), ElementsAre("4 of step 1 150+5 1", "0 ProfilerStep#1 0+100 -1",
                                              "1 cudaLaunchKernel 10+5 4"));
}

TEST(HtaFrameTest, OneStepStays) {
  KinetoTrace trace;
  trace.Annotation("ProfilerStep#1", 0, 100);
  trace.Op("after", 200, 5);
  EXPECT_THAT(Rows(trace.Text()), ElementsAre("0 ProfilerStep#1 0+100 -1", "1 after 200+5 -1"));
}

TEST(HtaFrameTest, RefusesTracesWithoutEvents) {
  EXPECT_THAT(LoadHtaFrame(R"({"traceEvents": []})", "t.json"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("t.json: no event has")));
  KinetoTrace far;
  far.Op("a", 0, 1);
  far.Raw(R"({"ph":"X","cat":"cpu_op","name":"b","ts":9e14,"dur":1})");
  EXPECT_THAT(LoadHtaFrame(far.Text(), "t.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("23 days")));
}

}  // namespace
}  // namespace meridian
