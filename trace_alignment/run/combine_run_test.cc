// The whole chain on made-up runs whose clocks are known.
#include "trace_alignment/run/combine_run.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Four nodes, milliseconds and tens of ppm apart.
ClusterOptions SkewedCluster() {
  ClusterOptions options;
  options.nodes = 4;
  options.steps = 40;
  options.collectives = OneOfEach(2);
  options.max_skew_ns = 20'000'000;
  options.max_drift_ppb = 40'000;
  options.max_tracer_drift_ppb = 5'000;
  return options;
}

int64_t ReadStartNs(const XPlaneProto& environment) {
  for (const XStatProto& stat : environment.stats()) {
    const std::string& name = environment.stat_metadata().at(stat.metadata_id()).name();
    if (name == StatTypeName(StatType::kProfileStartTime)) {
      return static_cast<int64_t>(stat.uint64_value());
    }
  }
  return 0;
}

class CombineRunTest : public ::testing::Test {
 protected:
  // Writes the cluster's files and asks for all that is in the folder.
  void WriteRun(const SyntheticCluster& cluster, const ClusterFilesOptions& files) {
    ASSERT_OK(WriteCluster(FileSystem::Posix(), cluster, files, directory_.PathOf("run")));
    ASSERT_OK_AND_ASSIGN(request_.files,
                         FindRunFiles(FileSystem::Posix(), directory_.PathOf("run")));
    request_.output = directory_.PathOf("combined.xplane.pb");
    request_.validate = true;
  }

  absl::StatusOr<CombineReport> Combine() { return CombineRun(FileSystem::Posix(), request_); }

  // Every node's stated offset is as far from the truth as it says at most, and no collective is
  // violated in the file that was written.
  static void ExpectTrue(const SyntheticCluster& cluster, const CombineReport& report,
                         int64_t rounding_ns) {
    EXPECT_EQ(report.happens_before().violations_after(), 0);
    EXPECT_EQ(report.happens_before().unmatched(), 0);
    EXPECT_EQ(report.happens_before().checked_on(), "written file");
    ASSERT_EQ(report.nodes_size(), cluster.options().nodes);
    for (const CombinedNode& node : report.nodes()) {
      SCOPED_TRACE(node.ShortDebugString());
      ASSERT_TRUE(node.has_offset_ns());
      ASSERT_TRUE(node.has_uncertainty_ns());
      const int64_t true_ps = (node.offset_at_ns() - cluster.options().start_ns) * 1000;
      const int64_t error_ns =
          std::abs(cluster.OffsetPs(node.node_id(), true_ps) / 1000 - node.offset_ns());
      EXPECT_LE(error_ns, node.uncertainty_ns() + rounding_ns);
    }
  }

  TemporaryDirectory directory_;
  CombineRequest request_;
};

TEST_F(CombineRunTest, CollectivesAloneFindTheClocks) {
  ClusterOptions options = SkewedCluster();
  // Nothing tells tracers from hosts here, so they must agree.
  options.max_tracer_drift_ppb = 0;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.method(), "collectives");
  EXPECT_GT(report.happens_before().violations_before(), 0);
  ExpectTrue(cluster, report, 1);
}

// All files of a run change together: one that cannot be written leaves the others as they were.
TEST_F(CombineRunTest, AnExportThatFailsReplacesNoOutput) {
  const SyntheticCluster cluster(SkewedCluster());
  WriteRun(cluster, {});
  request_.output_dir = directory_.PathOf("out");
  request_.trace_json = directory_.PathOf("trace.json");
  request_.perfetto = directory_.PathOf("trace.perfetto-trace");
  ASSERT_OK(Combine());
  directory_.Write("combined.xplane.pb", "old");
  directory_.Write("trace.json", "old");
  // The files are made in this order: four aligned ones, the combined one, the exports.
  for (int n = 1; n <= 7; ++n) {
    FaultyFileSystem files(FileSystem::Posix());
    files.Fail(Operation::kCreateFile, n, absl::ResourceExhaustedError("disk full"));
    EXPECT_FALSE(CombineRun(files, request_).ok()) << n;
    EXPECT_EQ(directory_.Read("combined.xplane.pb"), "old") << n;
    EXPECT_EQ(directory_.Read("trace.json"), "old") << n;
  }
  FaultyFileSystem files(FileSystem::Posix());
  files.Fail(Operation::kSync, 7, absl::ResourceExhaustedError("disk full"));
  EXPECT_FALSE(CombineRun(files, request_).ok());
  EXPECT_EQ(directory_.Read("combined.xplane.pb"), "old");
}

TEST_F(CombineRunTest, TheJsonOfVeryManyEventsIsLeftOut) {
  WriteRun(SyntheticCluster(SkewedCluster()), {});
  request_.trace_json = directory_.PathOf("trace.json");
  request_.perfetto = directory_.PathOf("trace.perfetto-trace");
  ASSERT_OK_AND_ASSIGN(CombineReport report, Combine());
  int64_t events = 0;
  for (const CombinedNode& node : report.nodes()) events += node.events();
  const auto has_json = [&] {
    return std::any_of(report.outputs().begin(), report.outputs().end(),
                       [](const CombinedOutput& output) { return output.kind() == "trace_json"; });
  };
  request_.most_json_events = events;
  ASSERT_OK_AND_ASSIGN(report, Combine());
  EXPECT_TRUE(has_json());
  request_.most_json_events = events - 1;
  ASSERT_OK_AND_ASSIGN(report, Combine());
  EXPECT_FALSE(has_json());
  EXPECT_THAT(report.notes(), testing::Contains(testing::HasSubstr("no trace JSON")));
}

TEST_F(CombineRunTest, OffsetsAndSnapshotsFindTheClocks) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.offsets.emplace();
  WriteRun(cluster, files);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.method(), "offsets");
  ExpectTrue(cluster, report, 1);
}

TEST_F(CombineRunTest, BracketsOfSnapshotsAreStated) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.snapshots->max_bracket_ns = 3'000;
  files.offsets.emplace();
  WriteRun(cluster, files);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  for (const CombinedNode& node : report.nodes()) {
    EXPECT_GT(node.tracer_uncertainty_ns(), 0);
    EXPECT_LE(node.tracer_uncertainty_ns(), 3'000);
  }
}

// Without the plane that says so, but with the user's word.
TEST_F(CombineRunTest, AProfileThatDoesNotSayWhenItBeganNeedsTheFlag) {
  const SyntheticCluster cluster(SkewedCluster());
  WriteRun(cluster, {});
  ASSERT_OK_AND_ASSIGN(const CombineReport whole, Combine());
  XSpaceProto profile = RecordedProfile(cluster, 1);
  XPlaneProto* environment = FindMutablePlaneWithName(&profile, kTaskEnvPlaneName);
  const int64_t start_ns = ReadStartNs(*environment);
  environment->Clear();
  ASSERT_OK(
      WriteOutput(FileSystem::Posix(), request_.files.traces[1], profile.SerializeAsString()));
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  AllOf(HasSubstr("node1"), HasSubstr("--profile_start_ns"))));
  request_.profile_start_ns = {std::nullopt, start_ns};
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 traces")));
  request_.profile_start_ns.resize(4);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.nodes(1).offset_ns(), whole.nodes(1).offset_ns());
}

TEST_F(CombineRunTest, ProbeWindowsFindTheClocks) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.probe_windows.emplace();
  WriteRun(cluster, files);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.method(), "probes");
  ExpectTrue(cluster, report, 1000);
}

TEST_F(CombineRunTest, RawProbesFindTheClocksAndSayHowWell) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.probes.emplace();
  files.probes->max_asymmetry_ns = 5000;
  WriteRun(cluster, files);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.method(), "probes");
  ExpectTrue(cluster, report, 1);
}

// Probes that queue on the way are off by more than a short collective allows.
TEST_F(CombineRunTest, BadProbesAreMovedToWhatCollectivesAllow) {
  ClusterOptions options = SkewedCluster();
  options.transfer_ns = 5'000;
  options.compute_jitter_ns = 0;
  const SyntheticCluster cluster(options);
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.probe_windows.emplace();
  files.probe_windows->max_asymmetry_ns = 200'000;
  WriteRun(cluster, files);
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_THAT(report.notes(), Contains(HasSubstr("clocks were moved by up to")));
  ExpectTrue(cluster, report, 1);
}

TEST_F(CombineRunTest, TrueClocksStayAsTheyAre) {
  ClusterOptions options = SkewedCluster();
  options.max_skew_ns = 0;
  options.max_drift_ppb = 0;
  options.max_tracer_drift_ppb = 0;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.method(), "none");
  for (const CombinedNode& node : report.nodes()) EXPECT_EQ(node.max_correction_ns(), 0);
  ExpectTrue(cluster, report, 0);
}

TEST_F(CombineRunTest, AlignedFilesAreAsGoodAsOneCombined) {
  ClusterOptions options = SkewedCluster();
  options.max_tracer_drift_ppb = 0;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  request_.output.clear();
  request_.output_dir = directory_.PathOf("out");
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  ExpectTrue(cluster, report, 1);
  ASSERT_EQ(report.outputs_size(), 4);
  EXPECT_EQ(report.outputs(3).path(), directory_.PathOf("out/plugins/profile/run/node3.xplane.pb"));
}

TEST_F(CombineRunTest, NodesCanBeToldApartByName) {
  ClusterOptions options = SkewedCluster();
  options.max_tracer_drift_ppb = 0;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  request_.naming = PlaneNaming::kNodePrefix;
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  ExpectTrue(cluster, report, 1);
}

TEST_F(CombineRunTest, AnyNodeCanBeTheReference) {
  ClusterOptions options = SkewedCluster();
  options.max_tracer_drift_ppb = 0;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  request_.reference_node = 2;
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.reference_node(), 2);
  EXPECT_EQ(report.nodes(2).offset_ns(), 0);
  EXPECT_EQ(report.nodes(2).max_correction_ns(), 0);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
}

TEST_F(CombineRunTest, WithoutOutputsItOnlySays) {
  const SyntheticCluster cluster(SkewedCluster());
  WriteRun(cluster, {});
  request_.output.clear();
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_THAT(report.outputs(), IsEmpty());
  EXPECT_GT(report.nodes(0).events(), 0);
  EXPECT_EQ(report.happens_before().checked_on(), "computed");
}

TEST_F(CombineRunTest, SixHundredDevicesAreRefusedOnlyWhereAViewerWouldShowThem) {
  ClusterOptions options;
  options.nodes = 6;
  options.devices_per_node = 100;
  options.steps = 2;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("499 devices, which viewers cannot show")));
  const std::string output = request_.output;
  request_.output.clear();
  EXPECT_OK(Combine());
  // Beside profiles that viewers show one by one it is a note.
  request_.output = output;
  request_.output_dir = directory_.PathOf("out");
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_THAT(report.notes(), Contains(HasSubstr("more than 499 devices viewers show no file")));
}

TEST_F(CombineRunTest, OffsetsOfTheWrongSignAreDiagnosed) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.offsets.emplace();
  WriteRun(cluster, files);
  const std::string negated = absl::StrReplaceAll(
      directory_.Read("run/offsets.jsonl"),
      {{"\"offset_ns\":-", "\"offset_ns\":"}, {"\"offset_ns\":", "\"offset_ns\":-"}});
  directory_.Write("run/offsets.jsonl", negated);
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("wrong sign"), HasSubstr("negate them"))));
  EXPECT_THAT(directory_.List(), testing::ElementsAre("run"));
}

TEST_F(CombineRunTest, ANodeThatTheOffsetsLackIsNamed) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.snapshots.emplace();
  files.offsets.emplace();
  WriteRun(cluster, files);
  request_.node_ids = {0, 1, 2, 7};
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("node 7")));
}

TEST_F(CombineRunTest, AProfileOfAnotherRunIsNamed) {
  ClusterOptions options = SkewedCluster();
  options.max_tracer_drift_ppb = 0;
  WriteRun(SyntheticCluster(options), {});
  // The same program, a month later.
  options.seed = 2;
  options.start_ns += int64_t{30} * 24 * 3600 * 1'000'000'000;
  ASSERT_OK(
      WriteCluster(FileSystem::Posix(), SyntheticCluster(options), {}, directory_.PathOf("other")));
  request_.files.traces[3] = directory_.PathOf("other/node3.xplane.pb");
  EXPECT_FALSE(Combine().ok());
}

// One host began to trace when half of the run was over: its ids are all shared, most others' not.
TEST_F(CombineRunTest, AProfileThatBeganLateIsMatchedByItsRuns) {
  ClusterOptions options = SkewedCluster();
  options.nodes = 2;
  options.max_tracer_drift_ppb = 0;
  options.session_spread_ns = 35'000'000;
  const SyntheticCluster cluster(options);
  WriteRun(cluster, {});
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.run_method(), "run_id");
  EXPECT_GT(report.happens_before().unmatched(), report.happens_before().checked() / 2);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
  for (const CombinedNode& node : report.nodes()) {
    const int64_t true_ps = (node.offset_at_ns() - options.start_ns) * 1000;
    EXPECT_LE(std::abs(cluster.OffsetPs(node.node_id(), true_ps) / 1000 - node.offset_ns()),
              node.uncertainty_ns() + 1);
  }
}

TEST_F(CombineRunTest, OffsetsOfTheReferenceMustBeZero) {
  const SyntheticCluster cluster(SkewedCluster());
  ClusterFilesOptions files;
  files.offsets.emplace();
  files.offsets->legacy = true;
  WriteRun(cluster, files);
  // Relative to a clock that is none of the nodes'.
  directory_.Write("run/offsets.jsonl",
                   absl::StrReplaceAll(directory_.Read("run/offsets.jsonl"),
                                       {{"\"offset_ns\":0", "\"offset_ns\":5000"}}));
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("subtract its offsets from all")));
}

TEST_F(CombineRunTest, InputsAreNotOverwritten) {
  WriteRun(SyntheticCluster(SkewedCluster()), {});
  const std::string before = directory_.Read("run/node1.xplane.pb");
  CombineRequest request = request_;
  request.output = directory_.PathOf("run/./node1.xplane.pb");
  EXPECT_THAT(CombineRun(FileSystem::Posix(), request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overwritten")));
  request = request_;
  request.trace_json = directory_.PathOf("run/node1.xplane.pb");
  EXPECT_THAT(CombineRun(FileSystem::Posix(), request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overwritten")));
  // Aligned files would be put where the originals are.
  ASSERT_OK(WriteCluster(FileSystem::Posix(), SyntheticCluster(SkewedCluster()), {},
                         directory_.PathOf("log/plugins/profile/r")));
  ASSERT_OK_AND_ASSIGN(request.files, FindRunFiles(FileSystem::Posix(), directory_.PathOf("log")));
  request.trace_json.clear();
  request.output.clear();
  request.output_dir = directory_.PathOf("log");
  EXPECT_THAT(CombineRun(FileSystem::Posix(), request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overwritten")));
  EXPECT_EQ(directory_.Read("run/node1.xplane.pb"), before);
}

TEST_F(CombineRunTest, AnOutputThatCannotBeMadeLeavesNone) {
  WriteRun(SyntheticCluster(SkewedCluster()), {});
  request_.other_outputs = {"/dev/null"};
  EXPECT_FALSE(Combine().ok());
  EXPECT_THAT(directory_.List(), testing::ElementsAre("run"));
}

TEST_F(CombineRunTest, RanksThatWereGivenAreThoseOfTheWrittenFileToo) {
  ClusterOptions options = SkewedCluster();
  options.nodes = 2;
  options.max_tracer_drift_ppb = 0;
  WriteRun(SyntheticCluster(options), {});
  request_.node_ids = {1, 0};
  request_.ranks = {0, 1};
  ASSERT_OK_AND_ASSIGN(const CombineReport report, Combine());
  EXPECT_EQ(report.happens_before().violations_after(), 0);
}

TEST_F(CombineRunTest, MethodsWithoutTheirMeasurementsAreRefused) {
  WriteRun(SyntheticCluster(SkewedCluster()), {});
  request_.alignment.method = AlignmentMethod::kOffsets;
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--offsets")));
  request_.alignment.method = AlignmentMethod::kProbes;
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--probes")));
}

TEST_F(CombineRunTest, MethodsThatUseNoProbesDoNotReadThem) {
  WriteRun(SyntheticCluster(SkewedCluster()), {});
  request_.files.probes = {directory_.Write("run/probes.jsonl", "this is no probe\n")};
  for (const AlignmentMethod method : {AlignmentMethod::kNone, AlignmentMethod::kCollectives}) {
    request_.alignment.method = method;
    request_.validate = method != AlignmentMethod::kNone;
    EXPECT_OK(Combine());
  }
  request_.alignment.method = AlignmentMethod::kAuto;
  EXPECT_THAT(Combine(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("probes.jsonl:1")));
}

TEST_F(CombineRunTest, CombinedAndAlignedProfilesAreNotCombinedAgain) {
  ClusterOptions options = SkewedCluster();
  options.max_tracer_drift_ppb = 0;
  WriteRun(SyntheticCluster(options), {});
  request_.output_dir = directory_.PathOf("out");
  ASSERT_OK(Combine());
  CombineRequest again;
  again.files.traces = {request_.output};
  EXPECT_THAT(CombineRun(FileSystem::Posix(), again),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("combined profile")));
  again.files.traces = {directory_.PathOf("out/plugins/profile/run/node0.xplane.pb"),
                        directory_.PathOf("out/plugins/profile/run/node1.xplane.pb")};
  EXPECT_THAT(CombineRun(FileSystem::Posix(), again),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("aligned already")));
  again.alignment.method = AlignmentMethod::kNone;
  ASSERT_OK_AND_ASSIGN(const CombineReport report, CombineRun(FileSystem::Posix(), again));
  EXPECT_EQ(report.happens_before().violations_after(), 0);
}

}  // namespace
}  // namespace meridian
