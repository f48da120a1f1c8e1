// AlignmentStats of fixed inputs, compared whole with testdata/alignment_stats/*.textproto. After a
// change that is meant, copy what the failing test prints.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/testing/clock_readings.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/node_inputs.h"
#include "trace_alignment/testing/profile_events.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

std::string ReadTestFile(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_OK(file);
  return file.ok() ? std::string(file->bytes()) : "";
}

void ExpectGolden(const AlignmentStats& stats, const std::string& name) {
  const std::string path =
      absl::StrCat("trace_alignment/testdata/alignment_stats/", name, ".textproto");
  AlignmentStats golden;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadTestFile(path), &golden)) << path;
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  std::string text;
  google::protobuf::TextFormat::PrintToString(stats, &text);
  EXPECT_TRUE(differencer.Compare(golden, stats)) << path << ":\n"
                                                  << differences << "it is now:\n"
                                                  << text;
}

// Node 1 of two, 3 ms ahead and gaining 20 ppm: 8 steps of 18 events, the first 2 ms and the last
// 704.8 ms after the start, where it is 3,000,040 and 3,014,096 ns ahead. Offsets are sampled every
// 100 ms.
class AlignmentStatsGoldenTest : public ::testing::Test {
 protected:
  static ClusterOptions Options() {
    ClusterOptions options;
    options.collectives = {{}, {CollectiveKind::kCollectivePermute, 0, false}};
    options.rest_ns = 100'000'000;
    options.host_clocks = {{}, {3'000'000'000, 20'000, {}}};
    return options;
  }

  AlignmentStatsGoldenTest() : cluster_(Options()) {
    inputs_.node_id = 1;
    absl::StatusOr<SnapshotPairs> snapshots =
        ParseSnapshotPairs(SnapshotPairsJsonl(cluster_, 1), "snapshots");
    EXPECT_OK(snapshots);
    inputs_.snapshots = *std::move(snapshots);
    absl::StatusOr<SnapshotPairs> reference =
        ParseSnapshotPairs(SnapshotPairsJsonl(cluster_, 0), "snapshots");
    EXPECT_OK(reference);
    inputs_.reference_snapshots = *std::move(reference);
    absl::StatusOr<OffsetSamples> offsets =
        OffsetSamples::Parse(OffsetsJsonl(cluster_), "offsets", std::nullopt);
    EXPECT_OK(offsets);
    inputs_.offsets = *std::move(offsets);
  }

  AlignmentStats Align(ClockTarget target, const AlignOptions& options = {}) const {
    absl::StatusOr<AlignedProfile> aligned = AlignProfile(
        RecordedProfile(cluster_, 1).SerializeAsString(),
        [&](const RunClock& session) { return MakeNodeClock(inputs_, target, session); }, options);
    EXPECT_OK(aligned);
    return aligned.ok() ? aligned->stats : AlignmentStats();
  }

  // Leaves only these offsets, changed.
  void KeepOffsets(size_t begin, size_t end,
                   const std::function<void(size_t, OffsetSample*)>& change) {
    std::vector<OffsetSample> kept;
    for (size_t i = begin; i < end; ++i) {
      kept.push_back(inputs_.offsets->SamplesOf(1)[i]);
      change(i, &kept.back());
    }
    inputs_.offsets.emplace("offsets", 0, kept);
  }

  const SyntheticCluster cluster_;
  NodeInputs inputs_;
};

TEST_F(AlignmentStatsGoldenTest, ToTheReference) {
  ExpectGolden(Align(ClockTarget::kReference), "reference");
}

TEST_F(AlignmentStatsGoldenTest, ToTheOwnTracer) {
  ExpectGolden(Align(ClockTarget::kTracer), "tracer");
}

TEST_F(AlignmentStatsGoldenTest, OutsideTheOffsets) {
  // From 200 to 400 ms, which two of the steps are within.
  KeepOffsets(3, 6, [](size_t, OffsetSample*) {});
  ExpectGolden(Align(ClockTarget::kHost), "outside_offsets");
}

TEST_F(AlignmentStatsGoldenTest, AnOffsetThatRunsBackwards) {
  // The sample at 400 ms says what the node's clock shows at 700 ms: it is dropped, and the step
  // between 600 and 700 ms counted. The last step comes after the last sample.
  KeepOffsets(0, 9, [](size_t i, OffsetSample* sample) {
    if (i == 5) sample->offset_ps += 300'000'000'000;
  });
  ExpectGolden(Align(ClockTarget::kHost), "repaired_offsets");
}

TEST_F(AlignmentStatsGoldenTest, StrictlyIncreasing) {
  // In each step four launches start with their thunks.
  AlignOptions options;
  options.lines.strict_monotonic = true;
  ExpectGolden(Align(ClockTarget::kHost, options), "strictly_increasing");
}

TEST(AlignmentStatsExampleGoldenTest, ARecordedProfile) {
  NodeInputs inputs;
  inputs.node_id = 1;
  ASSERT_OK_AND_ASSIGN(inputs.offsets,
                       OffsetSamples::Parse(
                           R"({"node_id":0,"midpoint_sys_ns":1794701450000000000,"offset_ns":0}
{"node_id":1,"midpoint_sys_ns":1794701450000000000,"offset_ns":50000000}
{"node_id":1,"midpoint_sys_ns":1794701453000000000,"offset_ns":50000150.5}
)",
                           "offsets", std::nullopt));
  ASSERT_OK_AND_ASSIGN(const AlignedProfile aligned,
                       AlignProfile(ReadTestFile("examples/jax_cuda2/rank1.xplane.pb"),
                                    [&](const RunClock& session) {
                                      return MakeNodeClock(inputs, ClockTarget::kHost, session);
                                    }));
  ExpectGolden(aligned.stats, "jax_cuda2");
}

}  // namespace
}  // namespace meridian
