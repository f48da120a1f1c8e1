#include "critical_path/trace_analysis.h"

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "critical_path/longest_path.h"
#include "critical_path/testing/kineto_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/input_file.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TraceAnalysisTest, SaysWhatIsMissing) {
  KinetoTrace trace;
  trace.Op("a", 0, 100);
  trace.Op("b", 50, 100);
  trace.Raw(R"({"ph": "X"})");
  trace.Call("cudaStreamWaitEvent", 10, 1, 5);
  trace.Kernel("kernel", 70, 5, 7, 1);
  ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, AnalyzeTraceJson(trace.Text(), "t.json", {}));
  EXPECT_EQ(analysis.source.trace, "t.json");
  EXPECT_THAT(analysis.source.notes, AllOf(Contains(StartsWith("skipped events: 1 without ts")),
                                           Contains(HasSubstr("no cuda_sync events")),
                                           Contains("1 x no edge for event wait: record unknown"),
                                           Contains("1 x device work whose launch is unknown"),
                                           Contains("1 x operators that overlap without nesting")));
  EXPECT_EQ(analysis.graph.lanes[0].rank, 3);
}

TEST(TraceAnalysisTest, ErrorsNameTheTraceOnce) {
  for (bool hta_compatible : {false, true}) {
    TraceAnalysisOptions options;
    options.hta_compatible = hta_compatible;
    EXPECT_THAT(AnalyzeTraceJson("{", "t.json", options),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("t.json: offset ")));
    KinetoTrace trace;
    trace.Call("cudaLaunchKernel", 0, 5, 1);
    trace.Kernel("kernel", 10, 5, 7, 1);
    options.window.annotation = "step";
    EXPECT_THAT(AnalyzeTraceJson(trace.Text(), "t.json", options),
                StatusIs(absl::StatusCode::kNotFound,
                         StartsWith("t.json: no event's name contains 'step'")));
    KinetoTrace host;
    host.Op("op", 0, 5);
    EXPECT_THAT(AnalyzeTraceJson(host.Text(), "t.json", {}),
                StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("t.json: ")));
  }
}

TEST(TraceAnalysisTest, ExplainsTheWholeWindowOfEveryRealTrace) {
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
      ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, AnalyzeTraceJson(file.bytes(), path, {}));
      ASSERT_OK_AND_ASSIGN(const CriticalPath critical, FindLongestPath(analysis.graph));
      EXPECT_EQ(critical.length_ps, analysis.graph.window_end_ps - analysis.graph.window_start_ps);
      ++traces;
    }
  }
  EXPECT_GE(traces, 16);
}

}  // namespace
}  // namespace meridian
