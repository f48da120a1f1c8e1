#include "trace_alignment/combine/combiner.h"

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/testing/naive_merge.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int64_t kSecondPs = 1000000000000;

ClockMap Shift(int64_t shift_ps) {
  absl::StatusOr<ClockMap> map =
      ClockMap::Create({{0, shift_ps}, {kSecondPs, kSecondPs + shift_ps}});
  EXPECT_OK(map);
  return *std::move(map);
}

std::set<std::string> PlaneNamesOf(const XSpaceProto& space) {
  std::set<std::string> names;
  for (const XPlaneProto& plane : space.planes()) {
    EXPECT_TRUE(names.insert(plane.name()).second) << plane.name();
  }
  return names;
}

// Nodes 0, 1, ... of a made-up run, each with the clock that it is given.
class CombinerTest : public ::testing::Test {
 protected:
  CombinerTest() { SetRun({}); }

  void SetRun(const SyntheticRunOptions& options) {
    run_options_ = options;
    spaces_ = SyntheticRun(options);
    clocks_.assign(spaces_.size(), NodeClock(RunClock(options.start_ns)));
  }

  // Combines into bytes_ and combined_.
  absl::StatusOr<std::vector<AlignmentStats>> Combine(const CombineOptions& options = {}) {
    std::vector<std::string> bytes;
    for (const XSpaceProto& space : spaces_) bytes.push_back(space.SerializeAsString());
    std::vector<XSpaceReader> readers;
    std::vector<SessionClock> sessions;
    for (const std::string& profile : bytes) {
      absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(profile, "node.pb");
      if (!reader.ok()) return reader.status();
      readers.push_back(*std::move(reader));
      absl::StatusOr<SessionInfo> info = ReadSessionInfo(readers.back());
      if (!info.ok()) return info.status();
      absl::StatusOr<SessionClock> clock = SessionClock::Create("node.pb", *info, std::nullopt);
      if (!clock.ok()) return clock.status();
      sessions.push_back(*std::move(clock));
    }
    std::vector<CombineInput> inputs;
    for (size_t i = 0; i < readers.size(); ++i) {
      CombineInput input = {&readers[i], &sessions[i], &clocks_[i], {}};
      input.record.node_id = node_ids_.empty() ? static_cast<int64_t>(i) : node_ids_[i];
      input.record.method = "offsets";
      inputs.push_back(input);
    }
    bytes_.clear();
    StringSink sink(&bytes_);
    absl::StatusOr<std::vector<AlignmentStats>> stats = CombineXSpaces(inputs, options, sink);
    EXPECT_TRUE(!stats.ok() || combined_.ParseFromString(bytes_));
    return stats;
  }

  // Reads the collectives back from the combined profile.
  CollectiveRun ReadBack() {
    const std::string path = directory_.path() + "/combined.xplane.pb";
    EXPECT_OK(WriteOutput(FileSystem::Posix(), path, bytes_));
    absl::StatusOr<CollectiveRun> run = ReadCollectiveRun(FileSystem::Posix(), {path});
    EXPECT_OK(run);
    return run.ok() ? *std::move(run) : CollectiveRun();
  }

  TemporaryDirectory directory_;
  SyntheticRunOptions run_options_;
  std::vector<XSpaceProto> spaces_;
  std::vector<NodeClock> clocks_;
  std::vector<int64_t> node_ids_;
  std::string bytes_;
  XSpaceProto combined_;
};

TEST_F(CombinerTest, ViewersSeeOneHostAndDevicesNumberedThrough) {
  ASSERT_OK(Combine());
  EXPECT_THAT(PlaneNamesOf(combined_),
              UnorderedElementsAre("Task Environment", "/host:metadata", "/host:CPU",
                                   "/device:GPU:0", "/device:GPU:1", "/node:0/Task Environment",
                                   "/node:1/Task Environment"));
  const XPlaneProto& host = *FindPlaneWithName(combined_, "/host:CPU");
  ASSERT_EQ(host.lines_size(), 2);
  EXPECT_EQ(host.lines(0).display_name(), "Node 0: python3");
  EXPECT_EQ(host.lines(1).display_name(), "Node 1: python3");
  EXPECT_NE(host.lines(0).id(), host.lines(1).id());
}

TEST_F(CombinerTest, NodesCanBeToldApartByName) {
  CombineOptions options;
  options.naming = PlaneNaming::kNodePrefix;
  ASSERT_OK(Combine(options));
  EXPECT_THAT(
      PlaneNamesOf(combined_),
      UnorderedElementsAre("Task Environment", "/host:metadata", "/node:0/host:CPU",
                           "/node:1/host:CPU", "/node:0/device:GPU:0", "/node:1/device:GPU:0",
                           "/node:0/Task Environment", "/node:1/Task Environment"));
  EXPECT_EQ(CheckHappensBefore(ReadBack().table).checked, run_options_.steps);
}

// Of a node with devices 0 and 1 the stride is 2.
TEST_F(CombinerTest, DevicesCanBeCalledByTheirNode) {
  CombineOptions options;
  options.naming = PlaneNaming::kHostNode;
  ASSERT_OK(Combine(options));
  EXPECT_THAT(PlaneNamesOf(combined_),
              IsSupersetOf({"/device:GPU:Host_Node_0", "/device:GPU:Host_Node_1",
                            "/node:0/host:CPU", "/node:1/host:CPU"}));
  spaces_[0].add_planes()->set_name("/device:GPU:1");
  node_ids_ = {3, 5};
  ASSERT_OK(Combine(options));
  EXPECT_THAT(PlaneNamesOf(combined_),
              IsSupersetOf({"/device:GPU:Host_Node_6", "/device:GPU:Host_Node_7",
                            "/device:GPU:Host_Node_10"}));
  for (const int64_t node_id : {int64_t{1} << 62, int64_t{-3}}) {
    node_ids_ = {3, node_id};
    EXPECT_THAT(Combine(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(absl::StrCat("by the node id ", node_id))));
  }
}

// Node 1 is moved by 5 us.
TEST_F(CombinerTest, EventsKeepTheirOriginalTimes) {
  clocks_[1].host_to_reference = Shift(5000000);
  CombineOptions options;
  options.keep_original = true;
  ASSERT_OK(Combine(options));
  for (const char* name : {"/host:CPU", "/device:GPU:1"}) {
    const XPlaneProto& plane = *FindPlaneWithName(combined_, name);
    const XLineProto& line = plane.lines(plane.lines_size() - 1);
    ASSERT_GT(line.events_size(), 0) << name;
    std::map<std::string, int64_t> values;
    for (const XStatProto& stat : line.events(0).stats()) {
      values[plane.stat_metadata().at(stat.metadata_id()).name()] = stat.int64_value();
    }
    EXPECT_EQ(values.count("original_start_ps"), 1u) << name;
    EXPECT_EQ(values["original_duration_ps"], line.events(0).duration_ps()) << name;
    EXPECT_EQ(values["timestamp_correction_ns"], 5000) << name;
  }
}

TEST_F(CombinerTest, DevicesAreNumberedThroughPerKind) {
  for (const char* name : {"/device:GPU:1", "/device:TPU:0"}) {
    spaces_[0].add_planes()->set_name(name);
  }
  // A TPU and its SparseCores share a number; what is no numbered device is named by its node.
  for (const char* name : {"/device:TPU:0", "/device:TPU:0 SparseCore 1", "/host:snapshots",
                           "Megascale Trace", "/device:CUSTOM:Megascale"}) {
    spaces_[1].add_planes()->set_name(name);
  }
  ASSERT_OK(Combine());
  EXPECT_THAT(PlaneNamesOf(combined_),
              IsSupersetOf({"/device:GPU:0", "/device:GPU:1", "/device:GPU:2", "/device:TPU:0",
                            "/device:TPU:1", "/device:TPU:1 SparseCore 1", "/node:1/host:snapshots",
                            "/node:1/Megascale Trace", "/node:1/device:CUSTOM:Megascale"}));
}

TEST_F(CombinerTest, MoreDevicesThanViewersShowAreRefusedWithAWayOut) {
  // Each of the two nodes has a device already.
  for (int i = 1; i < 498; ++i) spaces_[0].add_planes()->set_name(absl::StrCat("/device:GPU:", i));
  ASSERT_OK(Combine());
  spaces_[0].add_planes()->set_name("/device:GPU:498");
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--output_dir")));
  CombineOptions by_node;
  by_node.naming = PlaneNaming::kNodePrefix;
  EXPECT_OK(Combine(by_node));
}

// The reader finds every collective of every node, at its true time.
TEST_F(CombinerTest, TheCombinedFileHoldsTheTrueTimes) {
  SyntheticRunOptions options;
  options.ranks = 4;
  SetRun(options);
  ASSERT_OK(Combine());
  const CollectiveRun run = ReadBack();
  ASSERT_THAT(run.profiles, SizeIs(4));
  ASSERT_THAT(run.table.instances(), SizeIs(options.steps));
  for (int step = 0; step < options.steps; ++step) {
    const auto members = run.table.MembersOf(run.table.instances()[step]);
    ASSERT_THAT(members, SizeIs(4));
    for (const CollectiveMember& member : members) {
      const TrueCollective truth = TrueAllReduce(options, member.rank, step);
      EXPECT_EQ(run.table.base_ns() + member.start_ps / 1000, truth.start_ns);
      EXPECT_EQ(run.table.base_ns() + member.end_ps / 1000, truth.end_ns);
    }
  }
  EXPECT_TRUE(CheckHappensBefore(run.table).violations.empty());
}

TEST_F(CombinerTest, EveryNodeIsMovedByItsOwnClock) {
  clocks_[1].host_to_reference = Shift(-2'000'000'500'000);
  ASSERT_OK_AND_ASSIGN(const std::vector<AlignmentStats> stats, Combine());
  EXPECT_EQ(stats[0].events_corrected(), 0);
  EXPECT_EQ(stats[1].max_correction_ns(), -2'000'000'500);
  const CollectiveRun run = ReadBack();
  const auto members = run.table.MembersOf(run.table.instances()[0]);
  ASSERT_THAT(members, SizeIs(2));
  for (const CollectiveMember& member : members) {
    const int64_t move_ns = member.rank == 1 ? -2'000'000'500 : 0;
    EXPECT_EQ(run.table.base_ns() + member.start_ps / 1000,
              TrueAllReduce(run_options_, member.rank, 0).start_ns + move_ns);
  }
}

TEST_F(CombinerTest, NoTimeIsNegative) {
  // Far before everything else.
  clocks_[1].host_to_reference = Shift(-50'000'000'000'000);
  ASSERT_OK(Combine());
  for (const XPlaneProto& plane : combined_.planes()) {
    for (const XLineProto& line : plane.lines()) {
      EXPECT_GE(line.timestamp_ns(), 0) << plane.name();
      for (const XEventProto& event : line.events()) EXPECT_GE(event.offset_ps(), 0);
    }
  }
}

TEST_F(CombinerTest, NothingOfTheNodesIsLost) {
  for (XSpaceProto& space : spaces_) {
    space.add_warnings("dropped events");
    XPlaneBuilder host(FindMutablePlaneWithName(&space, "/host:CPU"));
    host.AddStatValue(*host.GetOrCreateStatMetadata("process_id"), int64_t{42});
    XPlaneBuilder programs(FindMutablePlaneWithName(&space, "/host:metadata"));
    programs.AddStatValue(*programs.GetOrCreateStatMetadata("jax_version"), "0.11");
  }
  ASSERT_OK(Combine());
  EXPECT_THAT(combined_.hostnames(), ElementsAre("host-0", "host-1"));
  EXPECT_THAT(combined_.warnings(),
              ElementsAre("node 0: dropped events", "node 1: dropped events"));
  const XPlaneProto& host = *FindPlaneWithName(combined_, "/host:CPU");
  std::map<std::string, int64_t> stats;
  for (const XStatProto& stat : host.stats()) {
    stats[host.stat_metadata().at(stat.metadata_id()).name()] = stat.int64_value();
  }
  EXPECT_EQ(stats["node:0/process_id"], 42);
  EXPECT_EQ(stats["node:1/process_id"], 42);
  EXPECT_EQ(stats["node:1/alignment_node_id"], 1);
  EXPECT_EQ(stats.count("node:1/line_ids"), 1u);
  const XPlaneProto& programs = *FindPlaneWithName(combined_, "/host:metadata");
  std::set<std::string> versions;
  for (const XStatProto& stat : programs.stats()) {
    if (stat.str_value() == "0.11") {
      versions.insert(programs.stat_metadata().at(stat.metadata_id()).name());
    }
  }
  EXPECT_THAT(versions, UnorderedElementsAre("node:0/jax_version", "node:1/jax_version"));
  int events_before = 0, events_after = 0;
  for (const XSpaceProto& space : spaces_) {
    for (const XPlaneProto& plane : space.planes()) {
      for (const XLineProto& line : plane.lines()) events_before += line.events_size();
    }
  }
  for (const XPlaneProto& plane : combined_.planes()) {
    for (const XLineProto& line : plane.lines()) events_after += line.events_size();
  }
  EXPECT_EQ(events_after, events_before);
}

TEST_F(CombinerTest, EqualsANaiveMergeOfDamagedProfiles) {
  const std::string whole = spaces_[0].SerializeAsString();
  std::mt19937_64 random(20261116);
  int merged = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = i < 2 ? whole : Damage(whole, random);
    MergeVerdict verdict;
    ASSERT_OK(CompareWithNaiveMerge(
        bytes, i % 2 == 0 ? PlaneNaming::kViewer : PlaneNaming::kNodePrefix, &verdict))
        << i;
    if (verdict == MergeVerdict::kMerged) ++merged;
  }
  EXPECT_GT(merged, 200);
}

// Node 1's program has node 0's id but is another: its collectives are still found.
TEST_F(CombinerTest, ProgramsThatShareAnIdAreToldApart) {
  XPlaneProto* programs = FindMutablePlaneWithName(&spaces_[1], "/host:metadata");
  ASSERT_EQ(programs->event_metadata().size(), 1u);
  XStatProto* hlo = programs->mutable_event_metadata()->begin()->second.mutable_stats(0);
  // An unknown field more.
  hlo->set_bytes_value(hlo->bytes_value() + std::string("\xf8\x7f\x01", 3));
  ASSERT_OK(Combine());
  EXPECT_EQ(FindPlaneWithName(combined_, "/host:metadata")->event_metadata().size(), 2u);
  const HappensBefore check = CheckHappensBefore(ReadBack().table);
  EXPECT_EQ(check.checked, run_options_.steps);
  EXPECT_EQ(check.unmatched, 0);
}

TEST_F(CombinerTest, TwoNodesOfOneIdAreRefused) {
  node_ids_ = {4, 4};
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node 4")));
}

TEST_F(CombinerTest, DamageIsReportedWithItsFile) {
  FindMutablePlaneWithName(&spaces_[1], "/host:CPU")->mutable_event_metadata()->clear();
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("node.pb"), HasSubstr("metadata id"))));
}

}  // namespace
}  // namespace meridian
