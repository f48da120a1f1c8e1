// xprof_trace_align and validate_collectives as users run them, on the example run.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTrace0[] = "examples/jax_cuda2/rank0.xplane.pb";
constexpr char kTrace1[] = "examples/jax_cuda2/rank1.xplane.pb";
// Both sessions lie around this Unix time, in ns.
constexpr char kOffsets[] =
    R"({"node_id":1,"midpoint_sys_ns":1794701450000000000,"offset_ns":50000000}
{"node_id":1,"midpoint_sys_ns":1794701453000000000,"offset_ns":50000000}
{"node_id":0,"midpoint_sys_ns":1794701450000000000,"offset_ns":0}
)";

CommandResult Align(const TemporaryDirectory& directory, const std::string& trace,
                    const std::string& output, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--trace=" + trace, "--node_id=1",
                                        "--offsets=" + directory.PathOf("offsets.jsonl"),
                                        "--output=" + directory.PathOf(output)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunCommandLine("tools/xprof_trace_align", arguments);
}

CommandResult Validate(const std::string& traces) {
  return RunCommandLine("tools/validate_collectives", {"--traces=" + traces, "--json"});
}

TEST(TraceAlignmentTest, AMovedNodeViolatesAndMovedBackItDoesNot) {
  const TemporaryDirectory directory;
  directory.Write("offsets.jsonl", kOffsets);
  EXPECT_EQ(Validate(std::string(kTrace0) + "," + kTrace1).exit_code, 0);

  // The node's clock is said to be 50 ms ahead though it is true: its events move 50 ms back.
  const CommandResult moved = Align(directory, kTrace1, "moved.xplane.pb");
  ASSERT_EQ(moved.exit_code, 0) << moved.standard_error;
  const CommandResult violated =
      Validate(std::string(kTrace0) + "," + directory.PathOf("moved.xplane.pb"));
  EXPECT_EQ(violated.exit_code, 1);
  EXPECT_THAT(violated.standard_output,
              AllOf(HasSubstr("\"checked\": 56,"), HasSubstr("\"violations\": 56,")));

  std::string back = kOffsets;
  for (size_t at = 0; (at = back.find(":50000000", at)) != std::string::npos; at += 2) {
    back.replace(at, 1, ":-");
  }
  directory.Write("offsets.jsonl", back);
  const CommandResult again =
      Align(directory, directory.PathOf("moved.xplane.pb"), "back.xplane.pb.gz", {"--force"});
  ASSERT_EQ(again.exit_code, 0) << again.standard_error;
  EXPECT_EQ(Validate(std::string(kTrace0) + "," + directory.PathOf("back.xplane.pb.gz")).exit_code,
            0);
}

TEST(TraceAlignmentTest, AligningTwiceIsRefusedAndLeavesNothingBehind) {
  const TemporaryDirectory directory;
  directory.Write("offsets.jsonl", kOffsets);
  ASSERT_EQ(Align(directory, kTrace1, "once.xplane.pb").exit_code, 0);
  const CommandResult twice =
      Align(directory, directory.PathOf("once.xplane.pb"), "twice.xplane.pb");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.standard_error, HasSubstr("--force"));
  EXPECT_THAT(directory.List(),
              ElementsAre("offsets.jsonl", "once.alignment_stats.json", "once.xplane.pb"));
}

TEST(TraceAlignmentTest, StatisticsAreWrittenBesideTheOutput) {
  const TemporaryDirectory directory;
  directory.Write("offsets.jsonl", kOffsets);
  ASSERT_EQ(Align(directory, kTrace1, "a.xplane.pb").exit_code, 0);
  EXPECT_THAT(directory.Read("a.alignment_stats.json"),
              AllOf(HasSubstr("\"events_corrected\": 1220,"),
                    HasSubstr("\"min_correction_ns\": -50000000,"),
                    HasSubstr("\"max_correction_ns\": -50000000,"),
                    HasSubstr("\"snapshot_extrapolations\": 0,")));
}

// Each run is a process of its own, in which libprotobuf's maps have an order of their own.
TEST(TraceAlignmentTest, RepeatedRunsWriteTheSameBytes) {
  const TemporaryDirectory directory;
  directory.Write("offsets.jsonl", kOffsets);
  struct Case {
    std::string trace;
    std::string output;
    std::vector<std::string> flags;
  };
  const std::vector<Case> cases = {
      {kTrace1, "a.xplane.pb", {}},
      {kTrace1, "a.xplane.pb.gz", {"--keep_original", "--target=host"}},
      {kTrace1, "a.xplane.pb", {"--strict_monotonic", "--keep_original"}},
      {"examples/torch_pipeline4/kineto_1.json.gz",
       "a.json",
       {"--max_extrapolation_ms=1000000000"}}};
  for (const Case& test : cases) {
    std::string first, first_stats;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const CommandResult result = Align(directory, test.trace, test.output, test.flags);
      ASSERT_EQ(result.exit_code, 0) << result.standard_error;
      const std::string written = directory.Read(test.output);
      const std::string stats = directory.Read("a.alignment_stats.json");
      if (repeat == 0) {
        first = written;
        first_stats = stats;
      }
      EXPECT_GT(written.size(), 1000u);
      EXPECT_TRUE(written == first) << test.output << " differs";
      EXPECT_EQ(stats, first_stats);
    }
  }
}

TEST(TraceAlignmentTest, ANodeWithoutOffsetsIsNamed) {
  const TemporaryDirectory directory;
  directory.Write("offsets.jsonl", kOffsets);
  const CommandResult result =
      RunCommandLine("tools/xprof_trace_align", {std::string("--trace=") + kTrace1, "--node_id=9",
                                                 "--offsets=" + directory.PathOf("offsets.jsonl"),
                                                 "--output=" + directory.PathOf("a.pb")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("9"));
  EXPECT_THAT(directory.List(), ElementsAre("offsets.jsonl"));
}

// Rank 1 has called what rank 0 waits for; a dump by itself says nothing.
TEST(TraceAlignmentTest, DumpsAreJudgedWhereTwoCanBeCompared) {
  const TemporaryDirectory directory;
  const std::string dump =
      R"({"pg_config":{"0":{"ranks":"[0, 1, 2]"}},"pg_status":{},"entries":[{"record_id":0,)"
      R"("process_group":["0",""],"collective_seq_id":1,"profiling_name":"nccl:all_reduce",)"
      R"("state":"started","time_created_ns":1794889542000000000}]})";
  directory.Write("run/fr_0.json", dump);
  directory.Write("run/fr_2.json", dump.substr(0, 40));
  const std::string run = "--traces=" + directory.PathOf("run");
  const CommandResult alone = RunCommandLine("tools/validate_collectives", {run});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.standard_error,
              AllOf(HasSubstr("fr_2.json: offset"), HasSubstr("nothing could be compared")));
  directory.Write("run/fr_1.json", dump);
  const CommandResult both = RunCommandLine("tools/validate_collectives", {run});
  EXPECT_EQ(both.exit_code, 0) << both.standard_error;
  EXPECT_THAT(
      both.standard_output,
      AllOf(HasSubstr("0 disagreement(s) in 1 calls of 2 rank(s), 1 of which could be compared"),
            HasSubstr("left out: "), HasSubstr("of rank 2: what they called is not known")));
}

TEST(TraceAlignmentTest, OneFileTwiceIsRefused) {
  const CommandResult result = Validate(std::string(kTrace0) + "," + kTrace0);
  EXPECT_EQ(result.exit_code, 2);
}

}  // namespace
}  // namespace meridian
