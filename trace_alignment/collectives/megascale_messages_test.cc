// Messages of Megascale tie the hosts of slices of TPUs: planes made to the form that xprof reads.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

constexpr int64_t kMegascaleUs = 1'000'000;

// The profile of the host of a slice.
class SliceHost {
 public:
  SliceHost() : plane_(FindOrAddMutablePlaneWithName(&space_, kHostThreadsPlaneName)) {
    XPlaneBuilder environment(FindOrAddMutablePlaneWithName(&space_, kTaskEnvPlaneName));
    environment.AddStatValue(*environment.GetOrCreateStatMetadata(StatType::kProfileStartTime),
                             uint64_t{1794701451406144825});
  }

  // One end of a message from a slice to the other, from the third device to the third.
  void Add(const std::string& name, const std::string& label, int64_t from, int64_t to,
           int64_t start_us, int64_t duration_us) {
    XLineBuilder line = plane_.GetOrCreateLine(1);
    XEventBuilder event = line.AddEvent(
        *plane_.GetOrCreateEventMetadata("MegaScale: Communication Transport " + name));
    event.SetTimespan(Timespan(start_us * kMegascaleUs, duration_us * kMegascaleUs));
    event.AddStatValue(*plane_.GetOrCreateStatMetadata(StatType::kDcnLabel), label);
    for (const auto& [type, value] : {std::make_pair(StatType::kDcnSourceSliceId, from),
                                      {StatType::kDcnSourceDeviceId, 3},
                                      {StatType::kDcnDestinationSliceId, to},
                                      {StatType::kDcnDestinationDeviceId, 3},
                                      {StatType::kDcnChunk, 0},
                                      {StatType::kDcnLoopIndex, 24},
                                      {StatType::kPayloadSizeBytes, 32768}}) {
      event.AddStatValue(*plane_.GetOrCreateStatMetadata(type), value);
    }
  }

  ProfileCollectives Read(const std::string& name) const {
    const std::string bytes = space_.SerializeAsString();
    absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, name);
    EXPECT_OK(reader);
    absl::StatusOr<ProfileCollectives> profile = ReadXSpaceCollectives(*reader);
    EXPECT_OK(profile);
    return *std::move(profile);
  }

 private:
  XSpaceProto space_;
  XPlaneBuilder plane_;
};

// Slice 1 is 30 ms ahead; messages take 200 us there and 300 us back.
TEST(MegascaleMessagesTest, TieTheHostsOfSlices) {
  SliceHost hosts[2];
  for (int64_t i = 0; i < 5; ++i) {
    const std::string label = "all-reduce.273_" + std::to_string(312 + i);
    const int64_t at_us = 10'000 * i;
    hosts[0].Add("Send", label, 0, 1, at_us, 20);
    hosts[1].Add("Receive", label, 0, 1, at_us + 200 + 30'000, 5);
    hosts[1].Add("Send", label, 1, 0, at_us + 100 + 30'000, 20);
    hosts[0].Add("Receive", label, 1, 0, at_us + 400, 5);
    // Within a slice, and without its slices.
    hosts[0].Add("Send", label, 0, 0, at_us, 20);
    hosts[0].Add("Send", "", 0, 1, at_us, 20);
  }
  std::vector<ProfileCollectives> profiles = {hosts[0].Read("a"), hosts[1].Read("b")};
  EXPECT_EQ(profiles[0].events.size(), 10u);
  EXPECT_EQ(profiles[0].unresolved.entries().size(), 1u);
  ASSERT_OK_AND_ASSIGN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const HappensBefore check = CheckHappensBefore(run.table);
  EXPECT_EQ(check.instances, 10);
  EXPECT_EQ(check.checked, 10);
  EXPECT_EQ(check.unmatched, 0);
  EXPECT_EQ(check.violations.size(), 5u);
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(run.table, {}));
  ASSERT_TRUE(found.nodes[1].reachable);
  // [30,000 - 300, 30,000 + 200] us.
  EXPECT_NEAR(static_cast<double>(found.nodes[1].offset_ps), 29'950e6, 10e6);
  EXPECT_NEAR(static_cast<double>(found.nodes[1].certified_uncertainty_ps), 250e6, 20e6);
}

}  // namespace
}  // namespace meridian
