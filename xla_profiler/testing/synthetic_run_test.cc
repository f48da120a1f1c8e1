#include "xla_profiler/testing/synthetic_run.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

// Unix times of the kernels of all-reduce.2 in a profile, read back through the visitors.
std::vector<TrueCollective> AllReduces(const XSpaceProto& space) {
  std::vector<TrueCollective> found;
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "synthetic");
  EXPECT_OK(reader);
  absl::StatusOr<SessionInfo> info = ReadSessionInfo(*reader);
  EXPECT_OK(info);
  const absl::StatusOr<SessionClock> clock = SessionClock::Create("synthetic", *info, std::nullopt);
  EXPECT_OK(clock);
  EXPECT_OK(reader->ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) {
      const int64_t base_ns = *clock->LineBaseNs(line.Header());
      return line.ForEachEvent([&](const XEventVisitor& event) {
        const XStatVisitor* op = event.GetStat(StatType::kHloOp);
        if (op == nullptr || op->StrOrRefValue() != "all-reduce.2") return;
        const int64_t start_ns = base_ns + event.OffsetPs() / 1000;
        found.push_back({start_ns, start_ns + event.DurationPs() / 1000});
      });
    });
  }));
  return found;
}

TEST(SyntheticRunTest, TheFilesHoldTheTrueTimes) {
  SyntheticRunOptions options;
  options.ranks = 3;
  const std::vector<XSpaceProto> spaces = SyntheticRun(options);
  ASSERT_EQ(spaces.size(), 3u);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::vector<TrueCollective> found = AllReduces(spaces[rank]);
    ASSERT_EQ(found.size(), static_cast<size_t>(options.steps));
    for (int step = 0; step < options.steps; ++step) {
      const TrueCollective wanted = TrueAllReduce(options, rank, step);
      EXPECT_EQ(found[step].start_ns, wanted.start_ns);
      EXPECT_EQ(found[step].end_ns, wanted.end_ns);
    }
  }
}

TEST(SyntheticRunTest, NobodyEndsBeforeEverybodyStarted) {
  SyntheticRunOptions options;
  options.ranks = 4;
  for (int step = 0; step < options.steps; ++step) {
    for (int i = 0; i < options.ranks; ++i) {
      for (int j = 0; j < options.ranks; ++j) {
        EXPECT_LT(TrueAllReduce(options, i, step).start_ns, TrueAllReduce(options, j, step).end_ns);
      }
    }
  }
}

}  // namespace
}  // namespace meridian
