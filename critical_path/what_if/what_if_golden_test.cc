// What-ifs on real traces: those whose result HTA 0.6.1 defines (../shared/golden) equal it, and a
// graph that is run again without a change takes the measured time, event by event.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/testing/hta_case.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

namespace fs = std::filesystem;
using ::simdjson::dom::element;

double Micros(int64_t ps) { return static_cast<double>(ps) / kPsPerUs; }

struct Measured {
  PathGraph graph;
  CriticalPath path;
};

absl::StatusOr<Measured> Measure(const HtaCase& input) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(FileSystem::Posix(), input.trace));
  ASSIGN_OR_RETURN(TraceAnalysis trace, AnalyzeTraceJson(file.bytes(), input.trace, input.options));
  Measured measured;
  measured.graph = std::move(trace.graph);
  ASSIGN_OR_RETURN(measured.path, FindLongestPath(measured.graph));
  return measured;
}

struct GoldenEdit {
  const char* golden;
  const char* edit;
};
constexpr GoldenEdit kGoldenEdits[] = {
    {"whatif_gpu_kernels_x0.5", "scale category=device 0.5"},
    {"whatif_gpu_kernels_x2", "scale category=device 2"},
    {"whatif_cpu_x0.5", "scale category=host 0.5"},
    {"whatif_launch_delay_0", "set category=launch 0us"},
    {"whatif_kernel_kernel_0", "set category=kernel_gap 0us"},
};

TEST(WhatIfGoldenTest, EqualsHta) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  simdjson::dom::parser parser;
  element root;
  ASSERT_FALSE(parser.load(*shared + "/golden/hta_golden.json").get(root));
  int compared = 0;
  for (const auto& member : simdjson::dom::object(root["whatif"])) {
    const std::string name(member.key);
    SCOPED_TRACE(name);
    const std::optional<HtaCase> input = ReadHtaCase(root["cases"][name]["case"], *shared);
    if (!input.has_value()) continue;
    ASSERT_OK_AND_ASSIGN(const Measured measured, Measure(*input));
    EXPECT_EQ(Micros(measured.path.length_ps), double(member.value["base_length_us"]));
    for (const GoldenEdit& golden : kGoldenEdits) {
      SCOPED_TRACE(golden.edit);
      ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits(golden.edit));
      absl::StatusOr<WhatIfResult> result =
          RunWhatIf(measured.graph, measured.path, /*hta_compatible=*/true, edits);
      int64_t length_ps = measured.path.length_ps;
      if (result.ok()) {
        length_ps = result->path.length_ps;
      } else {
        // A trace without launch edges, or the like, stays as it is.
        EXPECT_TRUE(absl::StrContains(result.status().message(), "nothing matches"))
            << result.status();
      }
      EXPECT_EQ(Micros(length_ps), double(member.value[golden.golden]["length_us"]));
      ++compared;
    }
  }
  EXPECT_GE(compared, 60);
}

// Kineto traces among the samples, whole and by step.
std::vector<HtaCase> SampleCases(const std::string& shared) {
  std::vector<HtaCase> cases;
  std::error_code error;
  for (const char* folder : {"/samples/kineto", "/traces"}) {
    for (const auto& entry : fs::recursive_directory_iterator(shared + folder, error)) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || !absl::StrContains(path, ".json")) continue;
      HtaCase input;
      input.trace = path;
      cases.push_back(input);
      input.options.window.annotation = "ProfilerStep";
      cases.push_back(input);
    }
  }
  return cases;
}

void ExpectSameWithoutAChange(const Measured& measured) {
  ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits("scale all 1"));
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, RunWhatIf(measured.graph, measured.path,
                                                            /*hta_compatible=*/false, edits));
  EXPECT_EQ(result.path.length_ps, measured.path.length_ps);
  EXPECT_EQ(CountChanged(measured.graph, result), 0);
  EXPECT_EQ(BreakDown(result.edited.graph, result.path).time_ps,
            BreakDown(measured.graph, measured.path).time_ps);
  ASSERT_EQ(result.edited.graph.instants.size(), measured.graph.instants.size());
  int64_t moved = 0;
  for (InstantId instant = 0; instant < measured.graph.instants.size(); ++instant) {
    if (result.edited.graph.instants[instant].time_ps != measured.graph.instants[instant].time_ps)
      ++moved;
  }
  EXPECT_EQ(moved, 0);
}

TEST(WhatIfGoldenTest, WithoutAChangeTheMeasuredTimesComeOut) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int compared = 0;
  for (const HtaCase& input : SampleCases(*shared)) {
    SCOPED_TRACE(absl::StrCat(input.trace, " ", input.options.window.annotation));
    const absl::StatusOr<Measured> measured = Measure(input);
    // No trace, or one without device work or steps.
    if (!measured.ok()) continue;
    ExpectSameWithoutAChange(*measured);
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

// Two GPUs' profiles of XLA, and four ranks of PyTorch.
std::vector<std::vector<std::string>> Jobs(const std::string& shared) {
  std::vector<std::vector<std::string>> jobs(2);
  for (int rank = 0; rank < 2; ++rank) {
    jobs[0].push_back(absl::StrCat(shared, "/traces/jax_cuda2/rank", rank, ".xplane.pb"));
  }
  for (int rank = 0; rank < 4; ++rank) {
    jobs[1].push_back(absl::StrCat(shared, "/traces/torch_nccl4/kineto_", rank, ".json.gz"));
  }
  return jobs;
}

TEST(WhatIfGoldenTest, RanksThatWaitForEachOtherDoSoAgain) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::vector<std::string>& traces : Jobs(*shared)) {
    SCOPED_TRACE(traces[0]);
    JobInput input;
    input.traces = traces;
    ASSERT_OK_AND_ASSIGN(TraceAnalysis analysis, AnalyzeJob(FileSystem::Posix(), input, {}));
    Measured measured;
    measured.graph = std::move(analysis.graph);
    ASSERT_OK_AND_ASSIGN(measured.path, FindLongestPath(measured.graph));
    ExpectSameWithoutAChange(measured);
    // Nobody waits longer when one rank gets faster.
    ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits("level rank=1"));
    ASSERT_OK_AND_ASSIGN(const WhatIfResult result, RunWhatIf(measured.graph, measured.path,
                                                              /*hta_compatible=*/false, edits));
    EXPECT_LT(result.path.length_ps, measured.path.length_ps);
  }
}

}  // namespace
}  // namespace meridian
