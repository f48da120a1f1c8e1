#include "xla_profiler/base/json/report_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/report_test.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(ReportToJsonTest, PrintsZerosAndEmptyListsButNoUnsetOptionals) {
  EXPECT_EQ(ReportToJson(ReportForTest()), R"({
 "offset_ns": 0,
 "is_valid": false,
 "drift_ppm": 0,
 "host_name": "",
 "method": "UNKNOWN",
 "rows": [],
 "trace_paths": [],
 "breakdown": {},
 "digest": "",
 "rank": 0
}
)");
}

TEST(ReportToJsonTest, PrintsWhatIsSet) {
  ReportForTest report;
  report.set_offset_ns(-9007199254740993);
  report.set_is_valid(true);
  report.set_drift_ppm(0.25);
  report.set_host_name("node0 \"é\"");
  report.set_method(ReportForTest::OFFSETS);
  report.add_rows()->set_uncertainty_ns(0);
  report.add_rows()->set_op_name("all-reduce");
  report.add_trace_paths("a.pb");
  report.mutable_worst_row();
  report.set_offset_at_ns(0);
  report.set_note("");
  report.set_digest("\xFF");
  report.set_rank(3);
  EXPECT_EQ(ReportToJson(report), R"({
 "offset_ns": -9007199254740993,
 "is_valid": true,
 "drift_ppm": 0.25,
 "host_name": "node0 \"é\"",
 "method": "OFFSETS",
 "rows": [
  {
   "op_name": "",
   "uncertainty_ns": 0
  },
  {
   "op_name": "all-reduce"
  }
 ],
 "trace_paths": [
  "a.pb"
 ],
 "breakdown": {},
 "worst_row": {
  "op_name": ""
 },
 "digest": "/w==",
 "rank": 3,
 "offset_at_ns": 0,
 "note": ""
}
)");
}

TEST(ReportToJsonTest, WholeNumbersAreNumbersAlsoBeyondTwoToThe53) {
  constexpr int64_t kLast = int64_t{1} << 53;
  const auto offset = [](int64_t offset_ns) {
    ReportForTest report;
    report.set_offset_ns(offset_ns);
    (*report.mutable_breakdown())["a"] = offset_ns;
    const std::string json = ReportToCompactJson(report);
    ReportForTest read;
    EXPECT_TRUE(ReportFromJson(json, &read).ok());
    EXPECT_EQ(read.offset_ns(), offset_ns);
    EXPECT_EQ(read.breakdown().at("a"), offset_ns);
    return json.substr(0, json.find(','));
  };
  EXPECT_EQ(offset(0), "{\"offset_ns\":0");
  EXPECT_EQ(offset(-1), "{\"offset_ns\":-1");
  EXPECT_EQ(offset(kLast), "{\"offset_ns\":9007199254740992");
  EXPECT_EQ(offset(-kLast), "{\"offset_ns\":-9007199254740992");
  EXPECT_EQ(offset(kLast + 1), "{\"offset_ns\":9007199254740993");
  EXPECT_EQ(offset(-kLast - 1), "{\"offset_ns\":-9007199254740993");
  EXPECT_EQ(offset(std::numeric_limits<int64_t>::min()), "{\"offset_ns\":-9223372036854775808");
}

TEST(ReportFromJsonTest, ReadsWholeNumbersAsNumbersAndAsText) {
  ReportForTest report;
  ASSERT_TRUE(ReportFromJson(R"({"offset_ns": "12", "breakdown": {"a": "3", "b": 4}, "rank": "5",
                                 "offset_at_ns": 6})",
                             &report)
                  .ok());
  EXPECT_EQ(report.offset_ns(), 12);
  EXPECT_EQ(report.breakdown().at("a"), 3);
  EXPECT_EQ(report.breakdown().at("b"), 4);
  EXPECT_EQ(report.rank(), 5);
  EXPECT_EQ(report.offset_at_ns(), 6);
}

TEST(ReportToJsonTest, PrintsNumbersWithTheDigitsThatReadBack) {
  const auto drift = [](double drift_ppm) {
    ReportForTest report;
    report.set_drift_ppm(drift_ppm);
    const std::string json = ReportToCompactJson(report);
    const size_t begin = json.find("drift_ppm\":") + 11;
    return json.substr(begin, json.find(',', begin) - begin);
  };
  EXPECT_EQ(drift(100000), "100000");
  EXPECT_EQ(drift(0.1), "0.1");
  EXPECT_EQ(drift(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(drift(1e300), "1e+300");
  EXPECT_EQ(drift(std::numeric_limits<double>::infinity()), "\"Infinity\"");
}

TEST(ReportToJsonTest, SortsMapsSoThatEqualReportsPrintEqually) {
  ReportForTest report;
  for (const char* key : {"h", "b", "g", "d", "a", "f", "c", "e"}) {
    (*report.mutable_breakdown())[key] = 1;
  }
  EXPECT_THAT(ReportToJson(report), HasSubstr(R"( "breakdown": {
  "a": 1,
  "b": 1,
  "c": 1,
  "d": 1,
  "e": 1,
  "f": 1,
  "g": 1,
  "h": 1
 },)"));
}

TEST(ReportToJsonTest, ReplacesBytesThatAreNotUtf8Everywhere) {
  ReportForTest report;
  report.set_host_name(
      "a\xFF"
      "b");
  report.set_note("\xE2\x82");
  report.add_trace_paths("ok");
  report.add_trace_paths("\xC0");
  report.add_rows()->set_op_name("\xFE");
  report.mutable_worst_row()->set_op_name("\xFD");
  (*report.mutable_breakdown())["k\xFC"] = 1;
  const std::string json = ReportToJson(report);
  EXPECT_THAT(json, HasSubstr("\"host_name\": \"a\uFFFDb\""));
  EXPECT_THAT(json, HasSubstr("\"note\": \"\uFFFD\uFFFD\""));
  EXPECT_THAT(json, HasSubstr("\"trace_paths\": [\n  \"ok\",\n  \"\uFFFD\"\n ]"));
  EXPECT_THAT(json, HasSubstr("\"rows\": [\n  {\n   \"op_name\": \"\uFFFD\"\n  }\n ]"));
  EXPECT_THAT(json, HasSubstr("\"worst_row\": {\n  \"op_name\": \"\uFFFD\"\n }"));
  EXPECT_THAT(json, HasSubstr("\"k\uFFFD\": 1"));
  EXPECT_EQ(report.host_name(),
            "a\xFF"
            "b");
}

}  // namespace
}  // namespace meridian
