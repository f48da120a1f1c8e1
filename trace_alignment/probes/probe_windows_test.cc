#include "trace_alignment/probes/probe_windows.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kBaseNs = 1794701452000000000;
constexpr int64_t kSecondNs = 1000000000;
constexpr absl::string_view kEdge =
    R"({"dst":1,"alpha":0.0000001234,"beta":-123456,"pairs":40,"lost":2})";

std::string Window(absl::string_view edges) {
  return absl::StrCat(R"({"window_start_ns":1000,"window_end_ns":2000,"window_id":3,)",
                      R"("round_id":3,"node_id":0,"edges":[)", edges, "]}\n");
}

TEST(ProbeWindowsTest, ReadsTheEdgesOfEachWindow) {
  const std::string header =
      "{\"meta\":true,\"node_id\":0,\"start_walltime_ns\":5,\"start_gpu_ns\":6}\n";
  ASSERT_OK_AND_ASSIGN(
      const std::vector<ProbeWindowEdge> edges,
      ParseProbeWindows(
          header +
              Window(absl::StrCat(kEdge, R"(,{"dst":2,"alpha":0,"beta":1.5,"pairs":0,"lost":9})")) +
              Window(kEdge),
          "p.jsonl"));
  // The second window repeats what the first says of node 1.
  ASSERT_EQ(edges.size(), 2);
  const ProbeWindowEdge& edge = edges[0];
  EXPECT_EQ(edge.src, 0);
  EXPECT_EQ(edge.dst, 1);
  EXPECT_EQ(edge.round_id, 3);
  EXPECT_EQ(edge.window_start_ns, 1000);
  EXPECT_EQ(edge.window_end_ns, 2000);
  EXPECT_EQ(edge.alpha, 1.234e-7);
  EXPECT_EQ(edge.beta_ps, -123456000);
  EXPECT_EQ(edge.pairs, 40);
  EXPECT_EQ(edge.lost, 2);
  EXPECT_EQ(edges[1].beta_ps, 1500);
}

TEST(ProbeWindowsTest, NamesTheLineThatCannotBeRead) {
  const std::pair<std::string, absl::string_view> kCases[] = {
      {Window(R"({"dst":1,"alpha":nan,"beta":1,"pairs":1,"lost":1})"), "alpha is nan"},
      {Window(R"({"dst":1,"alpha":0,"beta":NaN,"pairs":1,"lost":1})"), "beta is NaN"},
      {Window(R"({"dst":1,"alpha":0,"beta":1,"lost":1})"), "pairs is missing"},
      {Window(R"({"dst":1,"alpha":0,"beta":1,"pairs":1,"lost":-1})"), "is negative"},
      {Window(R"({"dst":0,"alpha":0,"beta":1,"pairs":1,"lost":1})"), "dst is the node itself"},
      {R"({"window_start_ns":1,"window_end_ns":2,"round_id":3,"node_id":0})", "edges is no array"},
      {R"({"window_start_ns":2,"window_end_ns":1,"round_id":3,"node_id":0})", "is before"},
      {R"({"window_start_ns":2,"window_end_ns":3,"node_id":0})", "round_id is missing"},
      {R"({"window_start_ns":1,"window_end_ns":2,"round_id":3,"edges":[]})", "node_id is missing"},
      {"x", "the line is no JSON object"},
  };
  for (const auto& [row, reason] : kCases) {
    EXPECT_THAT(ParseProbeWindows(absl::StrCat("{\"meta\":true,\"node_id\":0}\n", row), "p.jsonl"),
                StatusIs(kInvalid, AllOf(HasSubstr("p.jsonl:2: "), HasSubstr(std::string(reason)))))
        << row;
  }
  EXPECT_THAT(ParseProbeWindows("", "p.jsonl"), StatusIs(kInvalid, HasSubstr("empty")));
}

TEST(ProbeWindowsTest, NamesBothLinesOfAContradiction) {
  EXPECT_THAT(
      ParseProbeWindows(
          Window(kEdge) + Window(R"({"dst":1,"alpha":0,"beta":-123456,"pairs":40,"lost":2})"),
          "p.jsonl"),
      StatusIs(kInvalid, HasSubstr("p.jsonl:2: contradicts line 1: both are for dst 1")));
}

ProbeWindowEdge FittedWindow(double alpha, int64_t beta_ps, int64_t pairs, int64_t lost) {
  ProbeWindowEdge window;
  window.dst = 1;
  window.window_start_ns = kBaseNs;
  window.window_end_ns = kBaseNs + 4 * kSecondNs;
  window.alpha = alpha;
  window.beta_ps = beta_ps;
  window.pairs = pairs;
  window.lost = lost;
  return window;
}

TEST(ProbeWindowsTest, TakesWindowsToTheirMiddle) {
  const WindowEstimates estimates = EstimatesFromWindows({FittedWindow(1e-6, 5000, 30, 10)});
  ASSERT_EQ(estimates.edges.size(), 1);
  const ProbeEdge& edge = estimates.edges[0];
  EXPECT_EQ(edge.midpoint_src_ns, kBaseNs + 2 * kSecondNs);
  // 5 ns + 2 s * 1e-6.
  EXPECT_EQ(edge.offset_ps, 5000 + 2000000);
  EXPECT_EQ(edge.rate, 1e-6);
  // 30 pairs, 3 of 4 arrived.
  EXPECT_DOUBLE_EQ(edge.weight, 22.5);
}

TEST(ProbeWindowsTest, RejectsPoorWindows) {
  const WindowEstimates estimates = EstimatesFromWindows({
      FittedWindow(1e-6, 5000, 11, 0),
      FittedWindow(1e-6, 5000, 12, 8),
      FittedWindow(0, 0, 40, 0),
      FittedWindow(1.0, 5000, 40, 0),
      FittedWindow(1e-6, std::numeric_limits<int64_t>::max(), 40, 0),
      FittedWindow(0, 5000, 20, 12),
  });
  EXPECT_EQ(estimates.rejected, 5);
  EXPECT_EQ(estimates.edges.size(), 1);
}

}  // namespace
}  // namespace meridian
