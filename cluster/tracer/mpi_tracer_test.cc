// mpi_tracer as users run it, preloaded into a program on processes of this machine, and what
// workload_model makes of its traces.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/measurements/call_traces.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::SizeIs;

using Flags = std::vector<std::string>;

// What heat does besides its 20 steps: two calls before, three after.
constexpr size_t kSteps = 20;
constexpr size_t kBefore = 2;
constexpr size_t kCalls = kBefore + 3 * kSteps + 3;

class MpiTracerTest : public ::testing::Test {
 protected:
  // Sockets of MPI lie in the folder of temporary files, whose path must be short.
  MpiTracerTest() { setenv("TMPDIR", "/tmp", 1); }

  // Runs heat, traced to files of that prefix.
  static CommandResult Trace(const std::string& prefix, int ranks, int size) {
    return RunCommandLine(
        "/usr/bin/mpirun",
        {"--allow-run-as-root", "--oversubscribe", "-n", absl::StrCat(ranks), "-x",
         absl::StrCat("MERIDIAN_MPI_TRACE=", prefix), "-x",
         "LD_PRELOAD=cluster/tracer/libmpi_tracer.so", "cluster/tracer/heat", absl::StrCat(size)});
  }

  static CommandResult Meridian(const std::string& command, Flags flags) {
    flags.insert(flags.begin(), command);
    return RunCommandLine("tools/meridian", flags);
  }

  std::vector<TracedCall> CallsOf(const std::string& name) {
    const auto calls = ParseCallTrace(directory_.Read(name), name);
    EXPECT_OK(calls.status());
    return calls.ok() ? *calls : std::vector<TracedCall>();
  }

  const TemporaryDirectory directory_;
};

TEST_F(MpiTracerTest, WritesEachCallOfEachRank) {
  const CommandResult result = Trace(directory_.PathOf("heat"), 3, 8);
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("residual "));

  const std::vector<TracedCall> calls = CallsOf("heat-1.trace");
  ASSERT_THAT(calls, SizeIs(kCalls));
  EXPECT_EQ(calls[0].source, 0);
  for (size_t i = 1; i < kCalls; ++i) EXPECT_EQ(calls[i].source, calls[i - 1].destination);
  EXPECT_EQ(calls[0].operation, "MPI_Comm_dup");
  EXPECT_FALSE(calls[0].bytes.has_value());
  EXPECT_EQ(calls[1].operation, "MPI_Bcast");
  EXPECT_THAT(calls[1].members, ElementsAre(0, 1, 2));
  for (size_t step = 0; step < kSteps; ++step) {
    const TracedCall* const of_step = &calls[kBefore + 3 * step];
    // 4 of 256 cells of 8 bytes go to either neighbour.
    EXPECT_EQ(of_step[0].operation, "MPI_Sendrecv");
    EXPECT_THAT(of_step[0].bytes, Optional(32));
    EXPECT_THAT(of_step[0].peer, Optional(0));
    EXPECT_THAT(of_step[1].peer, Optional(2));
    EXPECT_EQ(of_step[2].operation, "MPI_Allreduce");
    EXPECT_THAT(of_step[2].bytes, Optional(8));
    EXPECT_THAT(of_step[2].members, ElementsAre(0, 1, 2));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(of_step[i].destination, calls[kBefore + i].destination);
  }
  const std::string text = directory_.Read("heat-1.trace");
  // Numbers for each: four bytes times 1 + 2 + 3.
  EXPECT_THAT(text, HasSubstr(" 24 to 0>1<2 1>2<2 2>3<2 \n"));
  EXPECT_EQ(calls[kCalls - 1].operation, "MPI_Comm_free");

  // At the end of the rod nobody receives. Ranks call callsites alike.
  const std::vector<TracedCall> first = CallsOf("heat-0.trace");
  ASSERT_THAT(first, SizeIs(kCalls));
  EXPECT_TRUE(first[kBefore].sends_message);
  EXPECT_EQ(first[kBefore].peer, std::nullopt);
  for (size_t i = 0; i < kCalls; ++i) EXPECT_EQ(first[i].destination, calls[i].destination);
}

TEST_F(MpiTracerTest, TellsTimesAndNamesOfCallsites) {
  ASSERT_EQ(Trace(directory_.PathOf("heat"), 3, 8).exit_code, 0);
  const std::string report = directory_.Read("heat.mpiP");
  EXPECT_THAT(report, HasSubstr(" Residual Allreduce\n"));
  EXPECT_THAT(report, HasSubstr(" main Alltoallv\n"));
  ASSERT_OK_AND_ASSIGN(const auto callsites, ParseCallsites(report, "heat.mpiP"));
  EXPECT_THAT(callsites, SizeIs(8));
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<TracedCall> calls = CallsOf(absl::StrCat("heat-", rank, ".trace"));
    EXPECT_OK(AddCallTimes(callsites, "heat", &calls));
    EXPECT_GT(calls[1].call_us.value_or(0), 0);
  }
  const int64_t reduced = CallsOf("heat-0.trace")[kBefore + 2].destination;
  EXPECT_THAT(report, HasSubstr(absl::StrCat("Allreduce ", reduced, " * 60 ")));
}

TEST_F(MpiTracerTest, TracesBecomeAModelAndALargerRun) {
  for (const int ranks : {2, 3, 4}) {
    for (const int size : {6, 8, 10}) {
      const std::string name = absl::StrCat("heat_", ranks, "-", ranks, "-1-", size);
      const CommandResult result = Trace(directory_.PathOf(name), ranks, size);
      ASSERT_EQ(result.exit_code, 0) << result.standard_error;
    }
  }
  const std::string model = directory_.PathOf("model.json"), et = directory_.PathOf("et/heat");
  const CommandResult fitted =
      Meridian("workload_model",
               {"fit", "--traces=" + directory_.PathOf("*.trace"),
                "--callsites=" + directory_.PathOf("heat_4-4-1-8.mpiP"), "--output=" + model});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.standard_error;
  EXPECT_THAT(fitted.standard_output, HasSubstr("8 transitions in 9 cells: 2 to 4 nodes"));
  const CommandResult generated =
      Meridian("workload_model",
               {"generate", "--model=" + model, "--nodes=8", "--size=12", "--output=" + et});
  ASSERT_EQ(generated.exit_code, 0) << generated.standard_error;
  EXPECT_THAT(generated.standard_output, HasSubstr("8 ranks of up to 65 calls"));

  const CommandResult inspected = Meridian("chakra_inspect", {"--et=" + et, "--stats", "--check"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.standard_output;
  // 7 pairs of neighbours send each other 64 cells of 8 bytes in 20 steps.
  EXPECT_THAT(inspected.standard_output, ContainsRegex("SEND +- +- +280 +143,360 "));
  directory_.Write(
      "network.yml",
      "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 10 ]\nlatency: [ 500 ]\n");
  const CommandResult simulated = Meridian(
      "astra_simulate", {"--workload=" + et, "--network=" + directory_.PathOf("network.yml")});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
}

TEST_F(MpiTracerTest, AProgramGoesOnWhereNothingCanBeWritten) {
  const CommandResult result = Trace("/dev/null/heat", 2, 6);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_output, HasSubstr("residual "));
  EXPECT_THAT(result.standard_error,
              HasSubstr("mpi_tracer: rank 1: /dev/null/heat-1.trace: Not a directory; calls are no "
                        "longer traced\n"));
}

}  // namespace
}  // namespace meridian
