#include "trace_alignment/combine/kineto_merger.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kRunBaseNs = 1'700'000'000'000'000'000;

constexpr char kTrace[] = R"({"schemaVersion": 1, "traceEvents": [
  {"ph":"X","pid":70,"tid":7,"ts":1,"dur":1,"name":"op"},
  {"ph":"X","pid":"Spans","tid":"a","ts":1,"dur":1,"name":"span"},
  {"ph":"s","pid":70,"tid":7,"ts":1,"id":5,"name":"ac2g"},
  {"ph":"M","pid":70,"tid":0,"name":"process_name","args":{"name":"python"}},
  {"ph":"M","pid":70,"tid":0,"name":"process_sort_index","args":{"sort_index":70}}]})";

// Rank 3's clock is a microsecond ahead, and its base a microsecond later.
TEST(KinetoMergerTest, RanksAreTheirOwn) {
  NodeClock same((RunClock(kRunBaseNs)));
  NodeClock ahead = same;
  ASSERT_OK_AND_ASSIGN(ahead.host_to_reference, ClockMap::Create({{0, -1'000'000}}));
  std::string out;
  StringSink sink(&out);
  ASSERT_OK_AND_ASSIGN(const std::vector<AlignmentStats> stats,
                       MergeKineto({{{kTrace, kRunBaseNs, &same, 0, "host-a"},
                                     {kTrace, kRunBaseNs + 1000, &ahead, 3, ""}}},
                                   nullptr, sink));
  ASSERT_THAT(stats, SizeIs(2));
  EXPECT_EQ(stats[1].events(), 3);
  EXPECT_EQ(stats[1].max_correction_ns(), -1000);
  EXPECT_THAT(out,
              AllOf(HasSubstr(absl::StrCat("\"baseTimeNanoseconds\": ", kRunBaseNs)),
                    HasSubstr(R"({"ph":"X","pid":1,"tid":7,"ts":1.000,"dur":1.000,"name":"op"})"),
                    HasSubstr(R"({"ph":"X","pid":2,"tid":7,"ts":1.000,"dur":1.000,"name":"op"})"),
                    HasSubstr(R"("pid":"rank 3 Spans")"), HasSubstr(R"("id":4294967301)"),
                    HasSubstr(R"("id":17179869189)"),
                    HasSubstr(R"("args":{"name": "rank 0 host-a (70) python"})"),
                    HasSubstr(R"("args":{"name": "rank 3 (70) python"})"),
                    HasSubstr(absl::StrCat(R"("sort_index": )", (int64_t{3} << 32) + 70))));
}

TEST(KinetoMergerTest, DamageIsAnError) {
  const NodeClock clock((RunClock(kRunBaseNs)));
  std::string out;
  StringSink sink(&out);
  EXPECT_FALSE(
      MergeKineto({{{"{\"traceEvents\": [{", kRunBaseNs, &clock, 0, ""}}}, nullptr, sink).ok());
}

}  // namespace
}  // namespace meridian
