#include "trace_alignment/combine/run_alignment.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Two days fit into picoseconds of a run, half a century does not.
TEST(RunAlignmentTest, SessionsFarApartNameTheProfile) {
  constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
  for (const int64_t second_start_ns : {2 * kDayNs, -2 * kDayNs, 20000 * kDayNs}) {
    CollectiveRun run;
    AlignmentInputs inputs;
    for (const int64_t start_ns : {int64_t{0}, second_start_ns}) {
      const int64_t node_id = static_cast<int64_t>(inputs.nodes.size());
      run.profiles.emplace_back().trace = node_id == 0 ? "a.pb" : "b.pb";
      ASSERT_OK_AND_ASSIGN(const SessionClock clock,
                           SessionClock::Create("", SessionInfo(), start_ns));
      inputs.nodes.push_back({node_id, clock, std::nullopt, std::nullopt});
    }
    EXPECT_THAT(AlignRun(inputs, run, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith("b.pb: its session began more than 40 hours ")))
        << second_start_ns;
  }
}

constexpr int64_t kRunUs = 1'000'000;

absl::StatusOr<RunAlignment> TryAlignNodes(RunBuilder builder,
                                           const std::vector<std::string>& hosts,
                                           const AlignmentOptions& options, const char* device) {
  for (ProfileCollectives& profile : builder.profiles()) profile.devices[0].name = device;
  ResolvedRun resolved = builder.Resolve();
  CollectiveRun run;
  run.table = *BuildCollectiveTable(resolved.profiles, resolved.ranks, resolved.runs);
  run.profiles = std::move(resolved.profiles);
  run.ranks = std::move(resolved.ranks);
  run.runs = std::move(resolved.runs);
  AlignmentInputs inputs;
  for (size_t node = 0; node < hosts.size(); ++node) {
    absl::StatusOr<SessionClock> clock = SessionClock::Create("", SessionInfo(), 0);
    EXPECT_OK(clock);
    inputs.nodes.push_back({static_cast<int64_t>(node), *clock, std::nullopt, std::nullopt,
                            std::nullopt, hosts[node]});
  }
  return AlignRun(inputs, run, options);
}

RunAlignment AlignNodes(RunBuilder builder, const std::vector<std::string>& hosts,
                        const AlignmentOptions& options, const char* device) {
  absl::StatusOr<RunAlignment> aligned = TryAlignNodes(std::move(builder), hosts, options, device);
  EXPECT_OK(aligned);
  return *std::move(aligned);
}

// Two nodes with an all-reduce every millisecond, which takes `transfer_us`. The second node's clock
// is ahead, by more from the 50th on.
RunAlignment AlignTwoNodes(int64_t transfer_us, int64_t ahead_us, int64_t more_us,
                           const std::vector<std::string>& hosts, const AlignmentOptions& options,
                           const char* device = "/device:GPU:0") {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}}, 1024);
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t start_ps = i * 1000 * kRunUs, shift_ps = (ahead_us + i / 50 * more_us) * kRunUs;
    const int64_t end_ps = start_ps + transfer_us * kRunUs;
    builder.Add({op, i, 0, start_ps, end_ps});
    builder.Add({op, i, 1, start_ps + shift_ps, end_ps + i % 3 * kRunUs + shift_ps});
  }
  return AlignNodes(std::move(builder), hosts, options, device);
}

TEST(RunAlignmentTest, ProcessesOfOneHostHaveOneClock) {
  const RunAlignment two = AlignTwoNodes(50, 120, 0, {"a", "b"}, {});
  EXPECT_TRUE(two.nodes[1].clock.host_to_reference.has_value());
  EXPECT_FALSE(two.nodes[1].clock.tracer_to_host.has_value());
  const RunAlignment one = AlignTwoNodes(50, 120, 0, {"a", "a"}, {});
  EXPECT_FALSE(one.nodes[1].clock.host_to_reference.has_value());
  ASSERT_TRUE(one.nodes[1].clock.tracer_to_host.has_value());
  for (const int64_t time_ps : {int64_t{0}, 50'000 * kRunUs}) {
    EXPECT_NEAR(static_cast<double>(one.nodes[1].clock.tracer_to_host->Forward(time_ps)),
                static_cast<double>(two.nodes[1].clock.host_to_reference->Forward(time_ps)), 1000);
  }
  EXPECT_THAT(one.notes, Contains(HasSubstr("node 1 is on the host of node 0")));
  EXPECT_THAT(one.after.violations, IsEmpty());
  // So far apart they are not on one host, whatever they say.
  const RunAlignment far = AlignTwoNodes(50, 20'000, 0, {"a", "a"}, {});
  EXPECT_TRUE(far.nodes[1].clock.host_to_reference.has_value());
}

TEST(RunAlignmentTest, WhatHostsKnowNarrowsTheRange) {
  AlignmentOptions options;
  const auto align = [&](int64_t ahead_us) {
    return AlignTwoNodes(900, ahead_us, 0, {"a", "b"}, options, "/host:CPU");
  };
  const RunAlignment alone = align(0);
  options.clock_prior_ps = 50 * kRunUs;
  const RunAlignment known = align(0);
  EXPECT_GT(alone.nodes[1].stated.uncertainty_ns(), 100'000);
  EXPECT_LT(known.nodes[1].stated.uncertainty_ns(), 60'000);
  EXPECT_EQ(known.nodes[1].stated.certified_uncertainty_ns(),
            alone.nodes[1].stated.certified_uncertainty_ns());
  EXPECT_THAT(known.notes, Not(Contains(HasSubstr("should keep it within"))));
  // What the collectives contradict is not believed.
  const RunAlignment wrong = align(30'000);
  EXPECT_NEAR(static_cast<double>(wrong.nodes[1].stated.offset_ns()), 30e6, 0.5e6);
  EXPECT_THAT(wrong.notes, Contains(HasSubstr("should keep it within 50us")));
}

// Hosts keep their own clocks; what stamps kernels was seen 120 us apart on a single one.
TEST(RunAlignmentTest, WhatHostsKnowIsNotOfTheirTracers) {
  AlignmentOptions options;
  options.clock_prior_ps = kRunUs;
  for (const char* device : {"/device:GPU:0", "GPU 0"}) {
    const RunAlignment known = AlignTwoNodes(900, 0, 0, {"a", "b"}, options, device);
    EXPECT_GT(known.nodes[1].stated.uncertainty_ns(), 90'000) << device;
    EXPECT_LT(known.nodes[1].stated.uncertainty_ns(), 130'000) << device;
  }
}

TEST(RunAlignmentTest, WhatHostsKnowIsNotDroppedSilently) {
  AlignmentOptions options;
  options.clock_prior_ps = kRunUs;
  options.end_agreement = false;
  EXPECT_THAT(AlignTwoNodes(900, 0, 0, {"a", "b"}, options).notes,
              Contains(StartsWith("--clock_prior is not used: --end_agreement=false")));
}

TEST(RunAlignmentTest, AJumpIsNamed) {
  const RunAlignment jumped = AlignTwoNodes(50, 0, 7'000, {"a", "b"}, {});
  EXPECT_THAT(jumped.after.violations, IsEmpty());
  EXPECT_THAT(jumped.notes, Contains(StartsWith("node 1: its clock was changed by +7.00")));
  EXPECT_THAT(jumped.notes, Contains(HasSubstr(" between 00:00:00.049")));
  // Two nodes do not tell which of them it was.
  EXPECT_THAT(jumped.notes, Contains(HasSubstr("or that of node 0 in its place")));
  // A single process of a host: not the host's.
  EXPECT_THAT(AlignTwoNodes(50, 0, 500, {"a", "a"}, {}).notes,
              Contains(StartsWith("node 1: its devices' clock was changed by +0.50")));
}

// By 100 s where a millisecond is left between two collectives: the map is that steep.
TEST(RunAlignmentTest, AClockThatWasSetByFarIsMapped) {
  RunBuilder builder(3);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}}, 1024);
  for (int64_t i = 0; i < 100; ++i) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      const int64_t start_ps = (i * 1000 + (rank == 1 && i >= 50 ? 100'000'000 : 0)) * kRunUs;
      builder.Add({op, i, rank, start_ps, start_ps + (50 + (i + rank) % 3) * kRunUs});
    }
  }
  const RunAlignment jumped = AlignNodes(std::move(builder), {"a", "b", "c"}, {}, "/device:GPU:0");
  EXPECT_THAT(jumped.after.violations, IsEmpty());
  // No clock is slewed so fast.
  EXPECT_THAT(jumped.notes,
              Contains(AllOf(StartsWith("node 1: its clock was changed by +"),
                             HasSubstr(" UTC by that clock: it was set; the times"))));
  ASSERT_TRUE(jumped.nodes[1].clock.host_to_reference.has_value());
  for (const int64_t time_us : {49'000, 50'000, 99'000}) {
    const int64_t ahead_us = time_us >= 50'000 ? 100'000'000 : 0;
    EXPECT_NEAR(static_cast<double>(jumped.nodes[1].clock.host_to_reference->Forward(
                    (time_us + ahead_us) * kRunUs)),
                static_cast<double>(time_us * kRunUs), 60.0 * kRunUs);
  }
}

// From the 50th collective on the reference is 7 ms ahead of what it was. All are put on its clock as
// it was before.
TEST(RunAlignmentTest, AJumpOfTheReferenceIsTakenOutOfIt) {
  RunBuilder builder(3);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}}, 1024);
  for (int64_t i = 0; i < 100; ++i) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      const int64_t start_ps = (i * 1000 + (rank == 0 && i >= 50 ? 7000 : 0)) * kRunUs;
      builder.Add({op, i, rank, start_ps, start_ps + (50 + (i + rank) % 3) * kRunUs});
    }
  }
  const RunAlignment jumped = AlignNodes(std::move(builder), {"a", "b", "c"}, {}, "/device:GPU:0");
  EXPECT_THAT(jumped.after.violations, IsEmpty());
  EXPECT_THAT(jumped.notes, Contains(AllOf(StartsWith("node 0: its clock was changed by +"),
                                           HasSubstr("on the clock that it had before"))));
  ASSERT_TRUE(jumped.nodes[0].clock.host_to_reference.has_value());
  for (const int64_t after_us : {60'000, 90'000}) {
    EXPECT_NEAR(static_cast<double>(
                    jumped.nodes[0].clock.host_to_reference->Forward((after_us + 7000) * kRunUs)),
                static_cast<double>(after_us * kRunUs), 100.0 * kRunUs);
  }
}

}  // namespace
}  // namespace meridian
