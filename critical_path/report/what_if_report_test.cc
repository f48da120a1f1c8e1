// What a report says of a what-if.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/report/path_report.h"
#include "critical_path/report/path_report.pb.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

MeasuredGraph Step() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 10, 1);
  trace.Call("cudaDeviceSynchronize", 20, 100, 2);
  trace.Kernel("k", 15, 100, 7, 1);
  trace.Sync("Context Sync", 20, 100, -1, 2);
  return MeasureTrace(trace);
}

PathReport Report(const std::string& text) {
  const MeasuredGraph measured = Step();
  absl::StatusOr<std::vector<WhatIfEdit>> edits = ParseWhatIfEdits(text);
  EXPECT_OK(edits);
  absl::StatusOr<WhatIfResult> result = WhatIf(measured, text);
  EXPECT_OK(result);
  PathReport report = ReportPath({}, result->edited.graph, result->path);
  AddWhatIf(*edits, *result, ReportPath({}, measured.graph, measured.path), &report);
  return report;
}

TEST(WhatIfReportTest, ComparesBeforeAndAfter) {
  const PathReport report = Report("scale name=\"k\" 0.5; set category=launch 5us");
  const WhatIfReport& what_if = report.what_if();
  EXPECT_EQ(what_if.length_us_before(), 120);
  EXPECT_EQ(what_if.length_us_after(), 60);
  EXPECT_EQ(report.length_us(), 60);
  EXPECT_EQ(what_if.breakdown_before().at("gpu_compute_bound"), 100);
  EXPECT_EQ(what_if.breakdown_after().at("gpu_compute_bound"), 50);
  EXPECT_EQ(what_if.breakdown_after().at("wait_for_other_ranks"), 0);
  EXPECT_EQ(what_if.edits(1).text(), "set category=launch 5us");
  EXPECT_EQ(what_if.edits(1).matched(), 1);
  EXPECT_THAT(FormatPathReport(report), EndsWith(R"(
what if: 60.000 us instead of 120.000 us (-50.00 %)

edit                     matched
-----------------------  -------
scale name="k" 0.5             1
set category=launch 5us        1

spent on                    before us  after us  change us
--------------------------  ---------  --------  ---------
cpu_bound                       5.000     5.000     +0.000
gpu_compute_bound             100.000    50.000    -50.000
gpu_kernel_launch_overhead     15.000     5.000    -10.000
length                        120.000    60.000    -60.000
)"));
}

}  // namespace
}  // namespace meridian
