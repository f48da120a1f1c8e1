#include "xla_profiler/collectives/xspace_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/testing/status_matchers.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<ProfileCollectives> ReadFile(const std::string& path) {
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::Open(FileSystem::Posix(), path);
  if (!reader.ok()) return reader.status();
  return ReadXSpaceCollectives(*reader);
}

// What a run's files hold, resolved together.
struct ReadRun {
  std::vector<ProfileCollectives> profiles;
  RankResolution ranks;
  RunResolution runs;
};

absl::StatusOr<ReadRun> ReadFiles(const std::vector<std::string>& paths) {
  ReadRun run;
  for (const std::string& path : paths) {
    absl::StatusOr<ProfileCollectives> profile = ReadFile(path);
    if (!profile.ok()) return profile.status();
    run.profiles.push_back(*std::move(profile));
  }
  absl::StatusOr<RankResolution> ranks = ResolveRanks(absl::MakeSpan(run.profiles));
  if (!ranks.ok()) return ranks.status();
  run.ranks = *std::move(ranks);
  run.runs = ResolveRuns(run.profiles);
  return run;
}

// An execution of an op by one group; a permute is one whatever its pairs.
using InstanceKey = std::tuple<int64_t, uint64_t, uint32_t, std::vector<int64_t>>;

// Ranks that took part in each instance, and how often.
std::map<InstanceKey, std::map<int64_t, int>> Instances(const ReadRun& run) {
  std::map<InstanceKey, std::map<int64_t, int>> instances;
  for (size_t p = 0; p < run.profiles.size(); ++p) {
    const ProfileCollectives& profile = run.profiles[p];
    for (size_t i = 0; i < profile.events.size(); ++i) {
      const CollectiveEvent& event = profile.events[i];
      const CollectiveOp& op = profile.ops[event.op];
      std::vector<int64_t> group;
      if (event.group != kUnknownId) {
        group.assign(op.groups[event.group].begin(), op.groups[event.group].end());
      }
      const EventRun& resolved = run.runs.runs[p][i];
      ++instances[{resolved.run, OpIdentity(op), resolved.occurrence, group}]
                 [run.ranks.ranks[p][event.local_device]];
    }
  }
  return instances;
}

// Checks that all members of every instance are there, once each.
void ExpectComplete(const ReadRun& run) {
  for (const auto& [key, members] : Instances(run)) {
    const std::vector<int64_t>& group = std::get<3>(key);
    EXPECT_EQ(members.size(), group.empty() ? run.profiles.size() : group.size());
    for (const auto& [rank, count] : members) EXPECT_EQ(count, 1);
  }
}

void ExpectNoFallback(const ReadRun& run) {
  EXPECT_EQ(run.runs.method, RunMethod::kRunId);
  EXPECT_THAT(run.runs.notes, IsEmpty());
  EXPECT_THAT(run.ranks.notes, IsEmpty());
  for (size_t p = 0; p < run.profiles.size(); ++p) {
    EXPECT_THAT(run.profiles[p].unresolved.entries(), IsEmpty());
    EXPECT_THAT(run.ranks.ranks[p], ElementsAre(static_cast<int64_t>(p)));
    for (const CollectiveEvent& event : run.profiles[p].events)
      EXPECT_TRUE(event.run_id.has_value());
  }
}

TEST(XSpaceCollectivesTest, TheExampleIsResolvedWithoutFallback) {
  ASSERT_OK_AND_ASSIGN(const ReadRun run, ReadFiles({"examples/jax_cuda2/rank0.xplane.pb",
                                                     "examples/jax_cuda2/rank1.xplane.pb"}));
  ExpectNoFallback(run);
  ExpectComplete(run);
  EXPECT_EQ(Instances(run).size(), 56u);
  std::map<CollectiveKind, int> kinds;
  for (const CollectiveEvent& event : run.profiles[0].events) {
    ++kinds[run.profiles[0].ops[event.op].kind];
  }
  EXPECT_THAT(kinds, UnorderedElementsAre(Pair(CollectiveKind::kAllReduce, 24),
                                          Pair(CollectiveKind::kAllGather, 8),
                                          Pair(CollectiveKind::kReduceScatter, 8),
                                          Pair(CollectiveKind::kAllToAll, 8),
                                          Pair(CollectiveKind::kCollectivePermute, 8)));
}

// The instances that each real run is known to hold.
TEST(XSpaceCollectivesTest, RealRunsAreResolvedWithoutFallback) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  struct Known {
    const char* folder;
    int ranks;
    const char* suffix;
    size_t instances;
  };
  for (const Known& known :
       {Known{"jax_cuda2", 2, "", 56}, Known{"jax_tp_cuda4", 4, "", 528},
        Known{"jax_cpu4", 4, "", 48}, Known{"sweep_cuda2", 2, ".gz", 2400},
        Known{"sweep_cuda4", 4, ".gz", 2400}, Known{"sweep_cpu4", 4, ".gz", 2400}}) {
    SCOPED_TRACE(known.folder);
    std::vector<std::string> paths;
    for (int rank = 0; rank < known.ranks; ++rank) {
      paths.push_back(*shared + "/traces/" + known.folder + "/rank" + std::to_string(rank) +
                      ".xplane.pb" + known.suffix);
    }
    ASSERT_OK_AND_ASSIGN(const ReadRun run, ReadFiles(paths));
    ExpectNoFallback(run);
    ExpectComplete(run);
    EXPECT_EQ(Instances(run).size(), known.instances);
  }
}

TEST(XSpaceCollectivesTest, TheMeshRunHasPermutesAndGroupsOfTwoAlongBothAxes) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  std::vector<std::string> paths;
  for (int rank = 0; rank < 4; ++rank) {
    paths.push_back(*shared + "/traces/jax_tp_cuda4/rank" + std::to_string(rank) + ".xplane.pb");
  }
  ASSERT_OK_AND_ASSIGN(const ReadRun run, ReadFiles(paths));
  std::map<std::vector<int64_t>, int> groups;
  for (const auto& [key, members] : Instances(run)) ++groups[std::get<3>(key)];
  EXPECT_EQ(groups[{}], 48);
  const int along_axes = groups[{0, 1}] + groups[{2, 3}] + groups[{0, 2}] + groups[{1, 3}];
  EXPECT_EQ(along_axes, 480);
  EXPECT_GT((groups[{0, 1}]), 0);
  EXPECT_GT((groups[{0, 2}]), 0);
}

TEST(XSpaceCollectivesTest, TheTpuSampleHasThreeAllReducesPerChip) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const ProfileCollectives profile,
                       ReadFile(*shared + "/samples/xplane/tpu_inference_2.xplane.pb"));
  std::map<int64_t, int> per_device;
  for (const CollectiveEvent& event : profile.events) {
    ++per_device[event.device];
    const CollectiveOp& op = profile.ops[event.op];
    EXPECT_EQ(op.kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(op.groups, IdGroups({{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(event.group, event.device - 4);
    EXPECT_TRUE(event.run_id.has_value());
  }
  EXPECT_THAT(per_device, UnorderedElementsAre(Pair(4, 3), Pair(5, 3), Pair(6, 3), Pair(7, 3)));
}

TEST(XSpaceCollectivesTest, TimesAreThoseOfTheKernels) {
  SyntheticRunOptions options;
  const std::vector<XSpaceProto> spaces = SyntheticRun(options);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::string bytes = spaces[rank].SerializeAsString();
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "x"));
    ASSERT_OK_AND_ASSIGN(const ProfileCollectives profile, ReadXSpaceCollectives(reader));
    ASSERT_EQ(profile.events.size(), static_cast<size_t>(options.steps));
    for (int step = 0; step < options.steps; ++step) {
      const CollectiveEvent& event = profile.events[step];
      const TrueCollective wanted = TrueAllReduce(options, rank, step);
      EXPECT_EQ(profile.base_ns + event.start_ps / 1000, wanted.start_ns);
      EXPECT_EQ(profile.base_ns + event.end_ps / 1000, wanted.end_ns);
      EXPECT_EQ(event.run_id, SyntheticRunId(step));
      EXPECT_EQ(event.device, rank);
      EXPECT_EQ(event.group, 0);
      EXPECT_EQ(event.kernels, 1u);
      EXPECT_EQ(profile.ops[event.op].operand_bytes, 4 * options.elements);
    }
    EXPECT_THAT(profile.unresolved.entries(), IsEmpty());
  }
}

// The synthetic run of one rank, changed by fn, and read.
template <typename Fn>
ProfileCollectives ReadChanged(Fn fn) {
  XSpaceProto space = SyntheticRun({})[0];
  for (auto& plane : *space.mutable_planes()) fn(&plane);
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "x");
  EXPECT_OK(reader);
  absl::StatusOr<ProfileCollectives> profile = ReadXSpaceCollectives(*reader);
  EXPECT_OK(profile);
  return *std::move(profile);
}

XEventProto* NcclKernel(XPlaneProto* plane, int n) {
  return plane->mutable_lines(0)->mutable_events(2 * n + 1);
}

TEST(XSpaceCollectivesTest, SeveralKernelsOfOneThunkAreOneEvent) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() != "/device:GPU:0") return;
    XPlaneBuilder builder(plane);
    XEventProto second = *NcclKernel(plane, 0);
    second.set_offset_ps(second.offset_ps() + second.duration_ps());
    *plane->mutable_lines(0)->add_events() = second;
  });
  ASSERT_EQ(profile.events.size(), 3u);
  EXPECT_EQ(profile.events[0].kernels, 2u);
  EXPECT_EQ(profile.events[1].kernels, 1u);
  EXPECT_EQ(profile.events[0].occurrence, 0u);
}

TEST(XSpaceCollectivesTest, CopiesThatShareTheOpDoNotCount) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() != "/device:GPU:0") return;
    XPlaneBuilder builder(plane);
    XEventProto copy = *NcclKernel(plane, 0);
    copy.set_offset_ps(0);
    copy.set_duration_ps(1);
    XEventProto* added = plane->mutable_lines(0)->add_events();
    *added = copy;
    XEventBuilder(added, &builder)
        .AddStatValue(*builder.GetOrCreateStatMetadata(StatType::kMemcpyDetails), "kind:D2D");
  });
  ASSERT_EQ(profile.events.size(), 3u);
  EXPECT_EQ(profile.events[0].kernels, 1u);
  EXPECT_GT(profile.events[0].start_ps, 0);
}

TEST(XSpaceCollectivesTest, ACollectiveInACommandBufferIsUnresolved) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() != "/device:GPU:0") return;
    XPlaneBuilder builder(plane);
    const XStatMetadataProto& hidden = *builder.GetOrCreateStatMetadata("command_buffer_1");
    for (int n = 0; n < 3; ++n) {
      XEventBuilder event(NcclKernel(plane, n), &builder);
      event.SetOrAddStatValue(*builder.GetOrCreateStatMetadata(StatType::kHloOp), hidden);
      event.AddStatValue(*builder.GetOrCreateStatMetadata(StatType::kCudaGraphId), uint64_t{2});
    }
  });
  EXPECT_THAT(profile.events, IsEmpty());
  ASSERT_EQ(profile.unresolved.entries().count("collective hidden in a command buffer"), 1u);
  EXPECT_EQ(profile.unresolved.entries().at("collective hidden in a command buffer").count, 3);
}

TEST(XSpaceCollectivesTest, WithoutHloAnnotationsServe) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() == "/host:metadata") plane->clear_event_metadata();
    if (plane->name() != "/device:GPU:0") return;
    XPlaneBuilder builder(plane);
    for (int n = 0; n < 3; ++n) {
      XEventBuilder event(NcclKernel(plane, n), &builder);
      event.AddStatValue(*builder.GetOrCreateStatMetadata(StatType::kReplicaGroups), "{{0;1}}");
      event.AddStatValue(*builder.GetOrCreateStatMetadata(StatType::kShape), "f32[1024]");
    }
  });
  ASSERT_EQ(profile.events.size(), 3u);
  const CollectiveOp& op = profile.ops[profile.events[0].op];
  EXPECT_EQ(op.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(op.instruction, "all-reduce.2");
  EXPECT_EQ(op.operand_bytes, 4096);
  EXPECT_EQ(op.groups, IdGroups({{0, 1}}));
  EXPECT_EQ(profile.events[0].run_id, SyntheticRunId(0));
}

TEST(XSpaceCollectivesTest, WithoutHloAndAnnotationsTheKernelsAreCounted) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() == "/host:metadata") plane->clear_event_metadata();
  });
  EXPECT_THAT(profile.events, IsEmpty());
  EXPECT_EQ(profile.unresolved.entries().at("communication kernel without HLO or annotation").count,
            3);
}

TEST(XSpaceCollectivesTest, AMissingHostPlaneLeavesRunAndDeviceOpen) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() == "/host:CPU") plane->clear_lines();
  });
  ASSERT_EQ(profile.events.size(), 3u);
  EXPECT_EQ(profile.events[0].run_id, std::nullopt);
  EXPECT_EQ(profile.events[0].device, kUnknownId);
  EXPECT_EQ(profile.unresolved.entries().at("launch of a collective is not in the profile").count,
            3);
}

}  // namespace
}  // namespace meridian
