#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/report/path_report.h"
#include "critical_path/report/path_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An operator that launches one kernel of the same name, with the storages that it takes and gives.
struct Step {
  std::string name;
  std::vector<int> takes, gives;
  // Start and duration of the kernel, in us.
  int64_t start = 0, duration = 100;
  // Whether the execution trace has the operator.
  bool is_traced = true;
  int64_t stream = 7;
};

std::string Tensors(const std::vector<int>& storages) {
  std::string text = "[";
  for (const int storage : storages) {
    absl::StrAppend(&text, text == "[" ? "" : ", ", TensorJson(storage, 256));
  }
  return absl::StrCat(text, "]");
}

// The i-th operator lasts from 10 i us to 10 i + 10, and its launch from 10 i + 2 to 10 i + 7.
absl::StatusOr<PathReport> Reorder(const std::vector<Step>& steps) {
  HostTraceText host;
  KinetoText profile;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto at = static_cast<int64_t>(10 * i);
    profile.Op(step.name, 1, at, 10, i + 2);
    profile.Call("cudaLaunchKernel", 1, at + 2, 5, i + 2);
    profile.Kernel(step.name, step.stream, step.start, step.duration, i + 2);
    if (step.is_traced) {
      host.Op(i + 2, 1, step.name, 1, Tensors(step.takes), Tensors(step.gives));
    }
  }
  const std::string text = profile.Text(), host_text = host.Text();
  const InputFile host_trace = InputFile::OfBytes(host_text, "et.json");
  TraceAnalysisOptions options;
  options.host_trace = &host_trace;
  absl::StatusOr<TraceAnalysis> analysis = AnalyzeTraceJson(text, "kineto.json", options);
  if (!analysis.ok()) return analysis.status();
  const CriticalPath path = *FindLongestPath(analysis->graph);
  PathReport report = ReportPath(analysis->source, analysis->graph, path);
  const absl::Status status = AddReordering(analysis->graph, path, &report);
  if (!status.ok()) return status;
  return report;
}

// "work behind other for so many us".
std::vector<std::string> Queued(const PathReport& report) {
  std::vector<std::string> rows;
  for (const QueuedWorkReport& row : report.reorder().queued()) {
    rows.push_back(absl::StrCat(row.name(), " behind ", row.behind(), " for ", row.us()));
  }
  return rows;
}

// Two chains that need nothing of each other, one kernel after the other on one stream:
//
//   stream   [a1 10..110][b1 110..210][a2 210..310][b2 310..410]
//
// Launch calls begin at 2, 12, 22 and 32; a1 starts 8 us later, which is what launching takes. So
// without turns b1 runs from 20 to 120; a2, which needs a1, from 110 to 210; b2 from 120 to 220.
TEST(ReorderingTest, IndependentChainsInterleave) {
  const absl::StatusOr<PathReport> report = Reorder(
      {{"a1", {}, {1}, 10}, {"b1", {}, {2}, 110}, {"a2", {1}, {3}, 210}, {"b2", {2}, {4}, 310}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().length_us(), DoubleNear(410, 1e-6));
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(220, 1e-6));
  EXPECT_EQ(report->reorder().unknown_percent(), 0);
  // All that a2 needs was there at 110, all that b2 needs at 210, as measured; b1 could have started
  // at 20.
  EXPECT_THAT(Queued(*report),
              ElementsAre("a2 behind b1 for 100", "b2 behind a2 for 100", "b1 behind a1 for 90"));
  EXPECT_THAT(FormatPathReport(*report),
              AllOf(HasSubstr("at most 190.000 us less than 410.000 us, the whole window\n"),
                    HasSubstr("100.000     0  a2 "), HasSubstr("  b1\n")));
}

// d needs c, c needs b, b needs a: by what each reads, or writes over.
TEST(ReorderingTest, AChainCannotBeReordered) {
  const absl::StatusOr<PathReport> report = Reorder(
      {{"a", {}, {1}, 10}, {"b", {1}, {2}, 111}, {"c", {2}, {3}, 212}, {"d", {4}, {2}, 313}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().length_us(), DoubleNear(413, 1e-6));
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(413, 1e-6));
  EXPECT_THAT(Queued(*report), IsEmpty());
}

// c needs x on another stream, which needs b: that c stood behind b cost nothing.
TEST(ReorderingTest, NeedsAreTransitive) {
  const absl::StatusOr<PathReport> report = Reorder({{"a", {}, {1}, 10},
                                                     {"b", {1}, {2}, 110},
                                                     {"x", {2}, {3}, 210, 50, true, 8},
                                                     {"c", {3}, {4}, 260}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(360, 1e-6));
  EXPECT_THAT(Queued(*report), IsEmpty());
}

// b1 of the chains above has no operator: it may need a1, and a2 and b2 may need it. These two may
// run together, from 210 on.
TEST(ReorderingTest, WorkOfUnknownNeedsStaysWhereItIs) {
  const std::vector<Step> steps = {{"a1", {}, {1}, 10},
                                   {"b1", {}, {2}, 110, 100, /*is_traced=*/false},
                                   {"a2", {1}, {3}, 210},
                                   {"b2", {2}, {4}, 310}};
  const absl::StatusOr<PathReport> report = Reorder(steps);
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(310, 1e-6));
  EXPECT_EQ(report->reorder().unknown_percent(), 25);
  EXPECT_THAT(Queued(*report), ElementsAre("b2 behind a2 for 100"));
  EXPECT_THAT(FormatPathReport(*report), HasSubstr("25.00 % of device time has unknown data"));
}

// aten::_foreach_add_ and its like write what they take, and say nothing of it.
TEST(ReorderingTest, WhatGivesNothingHasUnknownNeeds) {
  const absl::StatusOr<PathReport> report = Reorder(
      {{"a", {}, {1}, 10}, {"ncclDevKernel_AllGather", {2}, {}, 110}, {"c", {3}, {4}, 210}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(310, 1e-6));
  EXPECT_THAT(report->reorder().unknown_percent(), DoubleNear(100.0 / 3, 1e-6));
}

// b would end at 30 without its turn, but nobody goes on before a has ended, too.
TEST(ReorderingTest, WhatWaitsForAStreamWaitsForAllOfIt) {
  const absl::StatusOr<PathReport> report = Reorder({{"a", {}, {1}, 10}, {"b", {}, {2}, 110, 10}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(110, 1e-6));
  EXPECT_THAT(Queued(*report), ElementsAre("b behind a for 90"));
}

// b begins 5 us before a ends, as programs that launch dependent kernels early do.
TEST(ReorderingTest, WorkThatBeginsEarlyNeedsWhatItNeeds) {
  const absl::StatusOr<PathReport> report = Reorder({{"a", {}, {1}, 10}, {"b", {1}, {2}, 105}});
  ASSERT_OK(report);
  EXPECT_THAT(report->reorder().at_least_us(), DoubleNear(205, 1e-6));
  EXPECT_THAT(Queued(*report), IsEmpty());
}

TEST(ReorderingTest, AtMostTenAreListed) {
  std::vector<Step> steps;
  for (int i = 0; i < 15; ++i) {
    steps.push_back({absl::StrCat("k", i), {}, {i + 1}, 10 + 1000 * i, 1000});
  }
  const absl::StatusOr<PathReport> report = Reorder(steps);
  ASSERT_OK(report);
  ASSERT_EQ(report->reorder().queued_size(), 10);
  // The last one's launch begins at 142, and it could have started at 150.
  EXPECT_EQ(Queued(*report)[0], "k14 behind k13 for 13860");
}

TEST(ReorderingTest, AnExecutionTraceOfAnotherRunIsRefused) {
  EXPECT_THAT(Reorder({{"a", {}, {1}, 10, 100, /*is_traced=*/false}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("et.json: no operator of it is in the profile")));
  // An operator is there, but none that tells of tensors.
  EXPECT_THAT(Reorder({{"a", {}, {}, 10}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the tensors of no device work are known")));
}

// Execution traces and profiles of one run, four ranks each.
TEST(ReorderingTest, RealRunsAreNoLongerThanMeasured) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string name : {"torch_nccl4", "fsdp_nccl4"}) {
    SCOPED_TRACE(name);
    JobInput input;
    for (int rank = 0; rank < 4; ++rank) {
      const std::string folder = absl::StrCat(*shared, "/traces/", name);
      input.traces.push_back(absl::StrCat(folder, "/kineto_", rank, ".json.gz"));
      absl::StatusOr<InputFile> host =
          InputFile::Open(FileSystem::Posix(), absl::StrCat(folder, "/et_", rank, ".json.gz"));
      ASSERT_OK(host);
      input.host_traces.push_back(*std::move(host));
    }
    const absl::StatusOr<TraceAnalysis> analysis = AnalyzeJob(FileSystem::Posix(), input, {});
    ASSERT_OK(analysis);
    const CriticalPath path = *FindLongestPath(analysis->graph);
    PathReport report = ReportPath(analysis->source, analysis->graph, path);
    ASSERT_OK(AddReordering(analysis->graph, path, &report));
    EXPECT_GT(report.reorder().at_least_us(), 0.5 * report.reorder().length_us());
    EXPECT_LE(report.reorder().at_least_us(), report.reorder().length_us() + 1e-6);
    EXPECT_THAT(FormatPathReport(report), HasSubstr(" us, from the end of the first step on\n("));
    // Communication gives no tensor, and takes most of the time.
    EXPECT_LT(report.reorder().unknown_percent(), 96);
  }
}

}  // namespace
}  // namespace meridian
