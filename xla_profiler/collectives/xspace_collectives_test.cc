#include "xla_profiler/collectives/xspace_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
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
using InstanceKey = std::tuple<int64_t, absl::uint128, uint32_t, std::vector<int64_t>>;

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

// Of a profile without GPUs nothing else looks at all events of the host.
TEST(XSpaceCollectivesTest, DamageOfTheHostIsToldWithTheProfile) {
  XSpaceProto space = SyntheticRun({})[0];
  for (XPlaneProto& plane : *space.mutable_planes()) {
    if (plane.name() == "/device:GPU:0") plane.set_name("/nobody");
    if (plane.name() == "/host:CPU") plane.mutable_lines(0)->add_events()->set_metadata_id(127);
  }
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader,
                       XSpaceReader::FromBytes(bytes, "second.xplane.pb"));
  EXPECT_THAT(std::string(ReadXSpaceCollectives(reader).status().message()),
              AllOf(StartsWith("second.xplane.pb: offset "), HasSubstr("metadata id 127")));
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

TEST(XSpaceCollectivesTest, ExecutionsInALoopAreNumbered) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() == "/device:GPU:0") {
      // The second kernel of step 0 again, launched by a thunk of its own in the same run.
      XPlaneBuilder builder(plane);
      XEventProto again = *NcclKernel(plane, 0);
      again.set_offset_ps(again.offset_ps() + 100000000);
      XEventProto* added = plane->mutable_lines(0)->add_events();
      *added = again;
      XEventBuilder(added, &builder)
          .SetOrAddStatValue(*builder.GetOrCreateStatMetadata(StatType::kCorrelationId),
                             uint64_t{99});
    }
    if (plane->name() == "/host:CPU") {
      XPlaneBuilder builder(plane);
      XLineBuilder line(plane->mutable_lines(0), &builder);
      // Execute is the first event; nothing else is at its end.
      const XEventProto& execute = plane->lines(0).events(0);
      const int64_t end_ps = execute.offset_ps() + execute.duration_ps();
      XEventBuilder thunk = line.AddEvent(*builder.GetOrCreateEventMetadata("all-reduce.2"));
      thunk.SetTimespan(Timespan(end_ps - 2000000, 1000000));
      XEventBuilder launch = line.AddEvent(*builder.GetOrCreateEventMetadata("nccl"));
      launch.SetTimespan(Timespan(end_ps - 1900000, 10));
      launch.AddStatValue(*builder.GetOrCreateStatMetadata(StatType::kCorrelationId), uint64_t{99});
    }
  });
  ASSERT_EQ(profile.events.size(), 4u);
  EXPECT_EQ(profile.events[0].run_id, SyntheticRunId(0));
  EXPECT_EQ(profile.events[1].run_id, SyntheticRunId(0));
  EXPECT_EQ(profile.events[0].occurrence, 0u);
  EXPECT_EQ(profile.events[1].occurrence, 1u);
  EXPECT_EQ(profile.events[2].occurrence, 0u);
}

// A metadata plane with one module: all-reduce-start.1, all-reduce-done.1 over {0,1}, and
// all-gather.2.
void AddModule(XSpaceProto* space) {
  xla::HloProto proto;
  xla::HloModuleProto* module = proto.mutable_hlo_module();
  module->set_name("jit_f");
  module->set_entry_computation_id(1);
  xla::HloComputationProto* main = module->add_computations();
  main->set_id(1);
  main->set_root_id(4);
  const auto add = [&](int64_t id, const char* name, const char* opcode, int64_t operand) {
    xla::HloInstructionProto* instruction = main->add_instructions();
    instruction->set_id(id);
    instruction->set_name(name);
    instruction->set_opcode(opcode);
    instruction->mutable_shape()->set_element_type(xla::F32);
    instruction->mutable_shape()->add_dimensions(8);
    if (operand != 0) instruction->add_operand_ids(operand);
    return instruction;
  };
  const auto add_group = [](xla::HloInstructionProto* instruction) {
    instruction->set_channel_id(1);
    instruction->set_use_global_device_ids(true);
    xla::ReplicaGroup* group = instruction->add_replica_groups();
    group->add_replica_ids(0);
    group->add_replica_ids(1);
  };
  add(1, "param", "parameter", 0);
  add_group(add(2, "all-reduce-start.1", "all-reduce-start", 1));
  add(3, "all-reduce-done.1", "all-reduce-done", 2);
  add_group(add(4, "all-gather.2", "all-gather", 3));
  xla::DeviceAssignmentProto* devices = module->mutable_device_assignment();
  devices->set_replica_count(1);
  devices->set_computation_count(2);
  for (int64_t id : {0, 2048}) devices->add_computation_devices()->add_replica_device_ids(id);

  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(space, kMetadataPlaneName));
  XEventMetadataProto* entry = plane.GetOrCreateEventMetadata("jit_f(7)");
  XStatsBuilder<XEventMetadataProto>(entry, &plane)
      .AddBytesValue(*plane.GetOrCreateStatMetadata(StatType::kHloProto),
                     proto.SerializeAsString());
  XPlaneBuilder environment(FindOrAddMutablePlaneWithName(space, kTaskEnvPlaneName));
  environment.AddStatValue(*environment.GetOrCreateStatMetadata(StatType::kProfileStartTime),
                           uint64_t{1794701451406144825});
}

absl::StatusOr<ProfileCollectives> ReadSpace(const XSpaceProto& space) {
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "x");
  if (!reader.ok()) return reader.status();
  return ReadXSpaceCollectives(*reader);
}

TEST(XSpaceCollectivesTest, ATpuStartAndItsDoneAreOneEventEvenAfterALostStart) {
  XSpaceProto space;
  AddModule(&space);
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space, "/device:TPU:0"));
  const auto add = [&](const char* line, int64_t id, const std::string& name, int64_t begin,
                       int64_t end) {
    XLineBuilder builder = plane.GetOrCreateLine(id);
    builder.SetNameIfEmpty(line);
    XEventBuilder event = builder.AddEvent(*plane.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan::FromEndPoints(begin, end));
    return event;
  };
  const auto add_op = [&](const std::string& name, int64_t begin, int64_t end) {
    add("XLA Ops", 2, "%" + name + " = f32[8] x()", begin, end)
        .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProgramId), uint64_t{7});
  };
  for (int run = 0; run < 3; ++run) {
    add("XLA Modules", 1, "jit_f(7)", 1000 * run, 1000 * run + 900)
        .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRunId), int64_t{run});
    // The profile began after the first start.
    if (run > 0) add_op("all-reduce-start.1", 1000 * run + 100, 1000 * run + 110);
    add_op("all-reduce-done.1", 1000 * run + 300, 1000 * run + 310);
  }
  ASSERT_OK_AND_ASSIGN(const ProfileCollectives profile, ReadSpace(space));
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.events[0].run_id, 1);
  EXPECT_EQ(profile.events[0].start_ps, 1100);
  EXPECT_EQ(profile.events[0].end_ps, 1310);
  EXPECT_EQ(profile.events[1].run_id, 2);
  EXPECT_EQ(profile.unresolved.entries().at("done of a collective without its start").count, 1);
}

TEST(XSpaceCollectivesTest, CpuThunksOfSeveralDevicesInOneProcess) {
  XSpaceProto space;
  AddModule(&space);
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space, kHostThreadsPlaneName));
  for (int64_t device : {2048, 0}) {
    XEventBuilder event =
        plane.GetOrCreateLine(device + 1).AddEvent(*plane.GetOrCreateEventMetadata("all-gather.2"));
    event.SetTimespan(Timespan(device, 10));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kHloOp), "all-gather.2");
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kHloModule), "jit_f");
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRunId), int64_t{5});
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kDeviceOrdinal), device);
    // The marker at its end is no second collective.
    plane.GetOrCreateLine(device + 1)
        .AddEvent(*plane.GetOrCreateEventMetadata("end: all-gather.2"));
  }
  ASSERT_OK_AND_ASSIGN(ProfileCollectives profile, ReadSpace(space));
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.ops[profile.events[0].op].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(profile.ops[profile.events[0].op].operand_bytes, 32);
  for (const CollectiveEvent& event : profile.events) {
    EXPECT_EQ(event.run_id, 5);
    EXPECT_EQ(event.occurrence, 0u);
    EXPECT_EQ(event.group, 0);
  }
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(&profile, 1)));
  EXPECT_THAT(ranks.ranks[0], ElementsAre(1, 0));
}

// The first thunk begins within step 12, the second between that and step 13.
TEST(XSpaceCollectivesTest, CpuThunksHaveTheStepThatWasUnderWay) {
  XSpaceProto space;
  AddModule(&space);
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space, kHostThreadsPlaneName));
  for (const int64_t step : {12, 13}) {
    XEventBuilder event =
        plane.GetOrCreateLine(1).AddEvent(*plane.GetOrCreateEventMetadata("train"));
    event.SetTimespan(Timespan((step - 12) * 1000, 500));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kStepNum), step);
  }
  for (const int64_t start_ps : {400, 600}) {
    XEventBuilder event =
        plane.GetOrCreateLine(2).AddEvent(*plane.GetOrCreateEventMetadata("all-gather.2"));
    event.SetTimespan(Timespan(start_ps, 300));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kHloOp), "all-gather.2");
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kHloModule), "jit_f");
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRunId), start_ps);
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kDeviceOrdinal), int64_t{0});
  }
  ASSERT_OK_AND_ASSIGN(const ProfileCollectives profile, ReadSpace(space));
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.events[0].step, 12);
  EXPECT_EQ(profile.events[1].step, std::nullopt);
}

TEST(XSpaceCollectivesTest, AnIdleDeviceClaimsNoRank) {
  XSpaceProto space = SyntheticRun({})[1];
  XPlaneBuilder idle(FindOrAddMutablePlaneWithName(&space, "/device:GPU:1"));
  idle.GetOrCreateLine(1).AddEvent(*idle.GetOrCreateEventMetadata("other_kernel"));
  ASSERT_OK_AND_ASSIGN(ProfileCollectives profile, ReadSpace(space));
  ASSERT_EQ(profile.devices.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(&profile, 1)));
  EXPECT_THAT(ranks.ranks[0], ElementsAre(1));
}

TEST(XSpaceCollectivesTest, AnAbsurdTimeCostsOneEvent) {
  const ProfileCollectives profile = ReadChanged([](XPlaneProto* plane) {
    if (plane->name() != "/device:GPU:0") return;
    NcclKernel(plane, 1)->set_duration_ps(-1);
  });
  EXPECT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.unresolved.entries().at("collective whose times cannot be true").count, 1);
}

}  // namespace
}  // namespace meridian
