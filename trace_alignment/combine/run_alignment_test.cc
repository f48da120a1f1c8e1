#include "trace_alignment/combine/run_alignment.h"

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

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

}  // namespace
}  // namespace meridian
