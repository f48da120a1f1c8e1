// critical_path --what_if as users run it.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult FindPath(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/critical_path", arguments);
}

// 165 us long.
std::string Trace() { return GradientsTrace().Text(); }

TEST(WhatIfCommandTest, ComparesBeforeAndAfter) {
  const TemporaryDirectory directory;
  const CommandResult result =
      FindPath({"--trace=" + directory.Write("t.json", Trace()),
                "--what_if=scale name=~\"AllReduce\" 0.5; set category=launch 0us"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("t.json, the whole trace: 125.000 us\n"),
                    HasSubstr("what if: 125.000 us instead of 165.000 us (-24.24 %)"),
                    HasSubstr("scale name=~\"AllReduce\" 0.5        1\n"),
                    HasSubstr("set category=launch 0us            3\n"),
                    HasSubstr("gpu_communication_bound        60.000    30.000    -30.000\n"),
                    HasSubstr("length                        165.000   125.000    -40.000\n")));
}

TEST(WhatIfCommandTest, ReadsEditsOnSeveralLines) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("t.json", Trace());
  const std::string edits = R"(# a faster network
scale category=communication 0.5

set name="x" 0   # and less to do
)";
  const CommandResult result = FindPath({"--trace=" + trace, "--what_if=" + edits, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // x at 10, y 12 .. 52 or, by its launch, 15 .. 55, nccl 58 .. 88, return 10.
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"length_us\": 98"), HasSubstr("\"length_us_before\": 165"),
                    HasSubstr("\"length_us_after\": 98"),
                    HasSubstr("\"text\": \"scale category=communication 0.5\""),
                    HasSubstr("\"matched\": 1\n"), HasSubstr("\"breakdown_before\": {"),
                    HasSubstr("\"breakdown_after\": {")));
}

TEST(WhatIfCommandTest, WithoutEditsNothingIsSaid) {
  const TemporaryDirectory directory;
  const std::string trace = "--trace=" + directory.Write("t.json", Trace());
  EXPECT_THAT(FindPath({trace}).standard_output, Not(HasSubstr("what if")));
  EXPECT_THAT(FindPath({trace, "--json"}).standard_output, Not(HasSubstr("what_if")));
}

TEST(WhatIfCommandTest, WritesTheEditedScheduleToFiles) {
  const TemporaryDirectory directory;
  const std::string trace = "--trace=" + directory.Write("t.json", Trace());
  const CommandResult result =
      FindPath({trace, "--what_if=scale name=\"y\" 0.5", "--save=" + directory.PathOf("graph.mcp"),
                "--overlay=" + directory.PathOf("o.json"), "--noonly_critical"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // What was saved is the edited graph.
  EXPECT_THAT(FindPath({"--restore=" + directory.PathOf("graph.mcp")}).standard_output,
              HasSubstr(": 145.000 us\n"));
  // The overlay is a trace with the new times: y from 52 us on takes 20 us.
  const std::string overlay = directory.Read("o.json");
  EXPECT_THAT(overlay, AllOf(HasSubstr("\"ts\":52,\"name\":\"y\",\"cat\":\"kernel\",\"dur\":20"),
                             HasSubstr("critical_path_sync_dependency")));
}

TEST(WhatIfCommandTest, WrongEditsExitWithTwoAndAReason) {
  const TemporaryDirectory directory;
  const std::string trace = "--trace=" + directory.Write("t.json", Trace());
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{trace, "--what_if=shrink all 2"},
       "--what_if: shrink all 2: 'shrink' is no edit; there are: scale"},
      {{trace, "--what_if=scale all 1\nscale all -1\n"},
       "--what_if: scale all -1: the factor -1 is not"},
      {{trace, "--what_if=set all -5us"}, "the duration -5us is negative"},
      {{trace, "--what_if=scale name=~\"qq+\" 2"},
       "--what_if: scale name=~\"qq+\" 2: nothing matches name=~\"qq+\"; the most frequent "
       "names "
       "are 'cudaLaunchKernel' (3x)"},
      {{trace, "--what_if=scale category=network 2"}, "'network' is no category; there are: "},
      {{trace, "--what_if=level rank=3"}, "traces of several ranks are needed"},
  };
  for (const auto& [arguments, reason] : wrong) {
    const CommandResult result = FindPath(arguments);
    EXPECT_EQ(result.exit_code, 2) << reason;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith("critical_path: "), HasSubstr(reason)));
  }
}

TEST(WhatIfCommandTest, HasTheLengthsOfHta) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const std::string trace = *shared +
                            "/samples/kineto/critical_path/alexnet/"
                            "benchmark_result_2869224_1695835535_trace.json.gz";
  const CommandResult result =
      FindPath({"--trace=" + trace, "--hta_compatible",
                "--annotation=[param|pytorch.model.alex_net|0|0|0|measure|forward]", "--instance=1",
                "--what_if=scale category=device 0.5"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              HasSubstr("what if: 34455.000 us instead of 35834.000 us (-3.85 %)"));
}

}  // namespace
}  // namespace meridian
