#include "trace_alignment/testing/cluster_profile.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/testing/profile_events.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

ClusterOptions EightRanksOnFourNodes() {
  ClusterOptions options;
  options.nodes = 4;
  options.devices_per_node = 2;
  options.collectives = OneOfEach(4);
  return options;
}

enum class View { kRecorded, kTrue };

absl::StatusOr<CollectiveTable> ReadTable(const SyntheticCluster& cluster, View view) {
  std::vector<ProfileCollectives> profiles;
  for (int64_t n = 0; n < cluster.options().nodes; ++n) {
    const std::string bytes =
        (view == View::kTrue ? TrueProfile(cluster, n) : RecordedProfile(cluster, n))
            .SerializeAsString();
    ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "profile"));
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader));
    EXPECT_THAT(profile.unresolved.entries(), IsEmpty());
    profiles.push_back(std::move(profile));
  }
  ASSIGN_OR_RETURN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.notes, IsEmpty());
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kRunId);
  return BuildCollectiveTable(profiles, ranks, runs);
}

// By step: all-reduce 1, all-gather, reduce-scatter and all-to-all one for each group of the
// ranks, permute, broadcast and reduce 1 each.
int64_t InstancesOfOneOfEach(int64_t steps, int64_t ranks, int64_t group_size) {
  return steps * (4 + 3 * ranks / group_size);
}

TEST(ClusterProfileTest, TrueProfilesAreCompleteAndHaveNoViolation) {
  const SyntheticCluster cluster(EightRanksOnFourNodes());
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadTable(cluster, View::kTrue));
  const HappensBefore result = CheckHappensBefore(table);
  EXPECT_EQ(result.instances, InstancesOfOneOfEach(8, 8, 4));
  EXPECT_EQ(result.checked, result.instances);
  EXPECT_EQ(result.unmatched, 0);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(table.node_of_rank(), (std::vector<uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(ClusterProfileTest, ClocksThatAreOffViolate) {
  ClusterOptions options = EightRanksOnFourNodes();
  options.max_skew_ns = 50'000'000;
  const SyntheticCluster cluster(options);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadTable(cluster, View::kRecorded));
  const HappensBefore result = CheckHappensBefore(table);
  EXPECT_EQ(result.unmatched, 0);
  EXPECT_GT(result.violations.size(), 0u);
}

TEST(ClusterProfileTest, AThousandRanksAreMatched) {
  ClusterOptions options;
  options.nodes = 128;
  options.devices_per_node = 8;
  options.steps = 2;
  options.collectives = OneOfEach(32);
  const SyntheticCluster cluster(options);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadTable(cluster, View::kTrue));
  const HappensBefore result = CheckHappensBefore(table);
  EXPECT_EQ(result.instances, InstancesOfOneOfEach(2, 1024, 32));
  EXPECT_EQ(result.checked, result.instances);
  EXPECT_EQ(result.unmatched, 0);
  EXPECT_THAT(result.violations, IsEmpty());
}

TEST(ClusterProfileTest, RecordedTimesAreThoseOfTheNodesClocks) {
  ClusterOptions options = EightRanksOnFourNodes();
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  options.max_tracer_drift_ppb = 5'000;
  const SyntheticCluster cluster(options);
  const int64_t node = 3;
  ASSERT_OK_AND_ASSIGN(
      const std::vector<ProfileEvent> recorded,
      ListProfileEvents(RecordedProfile(cluster, node).SerializeAsString(), options.start_ns));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<ProfileEvent> truth,
      ListProfileEvents(TrueProfile(cluster, node).SerializeAsString(), options.start_ns));
  ASSERT_EQ(recorded.size(), truth.size());
  // Two devices, eight steps: Execute and the raw one, then for each of seven collectives two
  // thunks, launches, driver calls and kernels.
  EXPECT_EQ(recorded.size(), 2u * 8 * (2 + 7 * 2 * 4));
  for (size_t i = 0; i < recorded.size(); ++i) {
    const auto shown = [&](int64_t true_ps) {
      return recorded[i].domain == ClockDomain::kTracer ? cluster.FilePs(node, true_ps)
                                                        : cluster.HostPs(node, true_ps);
    };
    EXPECT_EQ(recorded[i].name, truth[i].name);
    EXPECT_EQ(recorded[i].start_ps, shown(truth[i].start_ps)) << recorded[i].name;
    EXPECT_EQ(recorded[i].end_ps, shown(truth[i].end_ps)) << recorded[i].name;
  }
}

TEST(ClusterProfileTest, ASessionThatBeginsMidStepLacksWhatCameBefore) {
  ClusterOptions options;
  options.session_spread_ns = 2'150'000;
  options.compute_jitter_ns = 0;
  // The first step computes from 2.0 ms on; its all-reduce starts at 2.1 ms, before the session of
  // node 1.
  const SyntheticCluster cluster(options);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadTable(cluster, View::kTrue));
  const HappensBefore result = CheckHappensBefore(table);
  EXPECT_EQ(result.instances, 8);
  EXPECT_EQ(result.checked, 7);
  EXPECT_EQ(result.unmatched, 1);
  EXPECT_THAT(result.violations, IsEmpty());
}

}  // namespace
}  // namespace meridian
