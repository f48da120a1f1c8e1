#include "critical_path/job/trace_analysis.h"

#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph_file.h"
#include "critical_path/report/path_overlay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"

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
                                           Contains(HasSubstr("no cuda_sync events"))));
}

TEST(TraceAnalysisTest, EventsThatEndBeforeTheyStartAreSkippedAndNoted) {
  KinetoTrace trace;
  trace.Op("a", 0, 100);
  trace.Kernel("kernel", 70, 5, 7, 1);
  trace.Kernel("inverted", 80, -5, 7, 2);
  ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, AnalyzeTraceJson(trace.Text(), "t.json", {}));
  EXPECT_THAT(analysis.source.notes,
              Contains(StartsWith("skipped events: 1 with a negative duration (at offset ")));
}

TEST(TraceAnalysisTest, EventsBeforeTheClocksZeroAreNoted) {
  KinetoTrace trace;
  trace.Op("before", -5, 1);
  trace.Op("a", 0, 100);
  trace.Kernel("kernel", 70, 5, 7, 1);
  ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, AnalyzeTraceJson(trace.Text(), "t.json", {}));
  EXPECT_THAT(analysis.source.notes, Contains(StartsWith("1 x negative ts: ")));
}

TEST(TraceAnalysisTest, BothGraphsKnowTheRank) {
  KinetoTrace trace;
  trace.Op("first", 0, 1);
  trace.Call("cudaLaunchKernel", 2, 5, 1);
  trace.Kernel("kernel", 10, 5, 7, 1);
  for (bool hta_compatible : {false, true}) {
    TraceAnalysisOptions options;
    options.hta_compatible = hta_compatible;
    ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis,
                         AnalyzeTraceJson(trace.Text(), "t.json", options));
    for (const Lane& lane : analysis.graph.lanes) EXPECT_EQ(lane.rank, 3);
  }
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

// A trace with a bit of everything.
std::string Everything() {
  KinetoTrace trace;
  trace.Raw(R"({"ph": "M", "name": "process_name", "pid": 1, "ts": 0})");
  trace.Annotation("ProfilerStep#1", 0, 300);
  trace.Op("forward", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Call("cudaEventRecord", 16, 1, 2);
  trace.Call("cudaStreamWaitEvent", 18, 1, 3);
  trace.Call("cudaMemcpyAsync", 20, 5, 4);
  trace.Call("cudaGraphLaunch", 30, 5, 5);
  trace.Call("cudaStreamSynchronize", 40, 50, 6);
  trace.Call("cudaDeviceSynchronize", 92, 5, 7);
  trace.Op("autograd", 110, 50, /*thread=*/200);
  trace.Kernel("ncclKernel", 20, 20, 7, 1);
  trace.Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 45, 10, 20, 4);
  trace.Kernel("k1", 56, 10, 20, 5);
  trace.Kernel("k2", 67, 10, 20, 5);
  trace.EventSync("Stream Wait Event", 18, 1, 20, 3, 7, 2);
  trace.Sync("Stream Sync", 40, 45, 20, 6);
  trace.Sync("Context Sync", 92, 4, -1, 7);
  trace.Annotation("ProfilerStep#2", 300, 10);
  return trace.Text();
}

TEST(TraceAnalysisTest, AnyBytesAreSafeToAnalyze) {
  const std::string text = Everything();
  std::mt19937_64 random(11);
  int analyzed = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const std::string damaged = round == 0 ? text : Damage(text, random);
    TraceAnalysisOptions options;
    options.hta_compatible = round % 2 == 0;
    options.zero_weight_launch_edges = round % 4 == 0;
    if (round % 3 == 0) options.window.annotation = "Profiler";
    options.data_load_events = {"forward", "(["};
    const absl::StatusOr<TraceAnalysis> analysis = AnalyzeTraceJson(damaged, "t.json", options);
    ++(analysis.ok() ? analyzed : refused);
    if (round == 0) {
      EXPECT_OK(analysis);
    }
    if (!analysis.ok()) continue;
    const absl::StatusOr<CriticalPath> path = FindLongestPath(analysis->graph);
    if (!path.ok()) continue;
    std::string overlay;
    StringSink sink(&overlay);
    EXPECT_OK(WriteOverlay(damaged, analysis->graph, *path, {}, &sink));
    EXPECT_FALSE(SerializeGraph(analysis->source, analysis->graph).empty());
  }
  EXPECT_GT(analyzed, 400);
  EXPECT_GT(refused, 1000);
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
