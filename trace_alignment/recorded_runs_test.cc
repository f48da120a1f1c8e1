// What must hold on recorded runs and profiles, from files to files: those of examples/ and, where
// they are, those beside the checkout (shared_data.h).
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/testing/order_check.h"
#include "trace_alignment/testing/profile_events.h"
#include "trace_alignment/testing/trace_verdict.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kHourPs = 3'600'000'000'000'000;

// All nodes of a run share one clock.
struct RecordedRun {
  std::string name;
  std::vector<std::string> paths;
  int64_t instances = 0;
};

RecordedRun MakeRun(const std::string& folder, const std::string& name, int ranks,
                    const std::string& suffix, int64_t instances) {
  RecordedRun run = {name, {}, instances};
  for (int rank = 0; rank < ranks; ++rank) {
    run.paths.push_back(absl::StrCat(folder, "/", name, "/rank", rank, ".xplane.pb", suffix));
  }
  return run;
}

std::vector<RecordedRun> Runs() {
  std::vector<RecordedRun> runs = {MakeRun("examples", "jax_cuda2", 2, "", 56),
                                   MakeRun("examples", "jax_tp_cuda4", 4, ".gz", 528),
                                   MakeRun("examples", "jax_cpu4", 4, ".gz", 48)};
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) return runs;
  for (const auto& [name, ranks] :
       {std::make_pair("sweep_cuda2", 2), {"sweep_cuda4", 4}, {"sweep_cpu4", 4}}) {
    runs.push_back(MakeRun(*shared + "/traces", name, ranks, ".gz", 2400));
  }
  return runs;
}

std::string ReadProfile(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_OK(file);
  return file.ok() ? std::string(file->bytes()) : "";
}

// Unix time; absent when the profile does not say.
std::optional<int64_t> SessionStartNs(const std::string& path) {
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::Open(FileSystem::Posix(), path);
  EXPECT_OK(reader);
  absl::StatusOr<SessionInfo> info = ReadSessionInfo(*reader);
  EXPECT_OK(info);
  return info->profile_start_ns;
}

TEST(RecordedRunsTest, TrueClocksHaveNoViolationAndNothingIsUnmatched) {
  for (const RecordedRun& recorded : Runs()) {
    SCOPED_TRACE(recorded.name);
    ASSERT_OK_AND_ASSIGN(const CollectiveRun run,
                         ReadCollectiveRun(FileSystem::Posix(), recorded.paths));
    const HappensBefore result = CheckHappensBefore(run.table);
    EXPECT_EQ(result.instances, recorded.instances);
    EXPECT_EQ(result.checked, recorded.instances);
    EXPECT_EQ(result.unmatched, 0);
    EXPECT_THAT(result.violations, IsEmpty());
  }
}

// From the profiles alone.
absl::StatusOr<RunAlignment> AlignFiles(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const CollectiveRun run, ReadCollectiveRun(FileSystem::Posix(), paths));
  AlignmentInputs inputs;
  for (size_t n = 0; n < paths.size(); ++n) {
    SessionInfo info;
    info.profile_start_ns = SessionStartNs(paths[n]);
    ASSIGN_OR_RETURN(const SessionClock clock, SessionClock::Create(paths[n], info, std::nullopt));
    inputs.nodes.push_back({static_cast<int64_t>(n), clock, std::nullopt, std::nullopt});
  }
  return AlignRun(inputs, run, {});
}

TEST(RecordedRunsTest, TrueClocksAreLeftAlone) {
  for (const RecordedRun& recorded : Runs()) {
    SCOPED_TRACE(recorded.name);
    ASSERT_OK_AND_ASSIGN(const CollectiveRun run,
                         ReadCollectiveRun(FileSystem::Posix(), recorded.paths));
    ASSERT_OK_AND_ASSIGN(const RunAlignment alignment, AlignFiles(recorded.paths));
    EXPECT_EQ(alignment.method, AlignmentMethod::kNone);
    for (const AlignedNode& node : alignment.nodes) {
      EXPECT_TRUE(node.stated.has_offset_ns());
      EXPECT_EQ(node.stated.offset_ns(), 0);
    }
    ASSERT_EQ(alignment.table.members().size(), run.table.members().size());
    for (size_t i = 0; i < run.table.members().size(); ++i) {
      ASSERT_EQ(alignment.table.members()[i].start_ps, run.table.members()[i].start_ps);
      ASSERT_EQ(alignment.table.members()[i].end_ps, run.table.members()[i].end_ps);
    }
  }
}

// A run whose nodes' clocks were put off, as files.
class SkewedRun {
 public:
  SkewedRun(const RecordedRun& recorded, const std::vector<TrueClock>& clocks)
      : clocks_(clocks), start_ns_(SessionStartNs(recorded.paths[0]).value_or(0)) {
    for (size_t n = 0; n < recorded.paths.size(); ++n) {
      absl::StatusOr<AlignedProfile> skewed =
          AlignProfile(ReadProfile(recorded.paths[n]),
                       [&](const RunClock& session) { return PutOff(clocks[n], session); });
      EXPECT_OK(skewed);
      paths_.push_back(directory_.Write(absl::StrCat("node", n, ".xplane.pb"), skewed->bytes));
    }
  }

  const std::vector<std::string>& paths() const { return paths_; }

  // Writes the aligned profiles and judges them.
  absl::StatusOr<TraceVerdict> WriteAligned(const RunAlignment& alignment) const {
    std::vector<std::string> aligned_paths;
    for (size_t n = 0; n < paths_.size(); ++n) {
      ASSIGN_OR_RETURN(
          const AlignedProfile aligned,
          AlignProfile(ReadProfile(paths_[n]), [&](const RunClock&) -> absl::StatusOr<NodeClock> {
            return alignment.nodes[n].clock;
          }));
      aligned_paths.push_back(
          directory_.Write(absl::StrCat("aligned", n, ".xplane.pb"), aligned.bytes));
    }
    return CheckTraces(aligned_paths);
  }

  // How far the stated offset of a node is from the truth.
  int64_t ErrorNs(const CombinedNode& node, size_t n) const {
    const int64_t true_ps = (node.offset_at_ns() - start_ns_) * kPsPerNs;
    const int64_t offset_ps = clocks_[n].ShowsPs(true_ps) - true_ps;
    return std::abs(node.offset_ns() - offset_ps / kPsPerNs);
  }

 private:
  // From true time to what the clock shows.
  absl::StatusOr<NodeClock> PutOff(const TrueClock& clock, const RunClock& session) const {
    ASSIGN_OR_RETURN(const int64_t zero_ps, session.ToRunPs(start_ns_, 0));
    NodeClock node(session);
    ASSIGN_OR_RETURN(node.host_to_reference,
                     ClockMap::Create({{zero_ps - kHourPs, zero_ps + clock.ShowsPs(-kHourPs)},
                                       {zero_ps + kHourPs, zero_ps + clock.ShowsPs(kHourPs)}}));
    return node;
  }

  const std::vector<TrueClock> clocks_;
  const int64_t start_ns_;
  const TemporaryDirectory directory_;
  std::vector<std::string> paths_;
};

TEST(RecordedRunsTest, ClocksPutOffAreFoundWithinTheStatedIntervals) {
  std::mt19937_64 random(11);
  for (const RecordedRun& recorded : Runs()) {
    SCOPED_TRACE(recorded.name);
    const SkewedRun run(recorded, RandomClocks(recorded.paths.size(), &random));
    ASSERT_OK_AND_ASSIGN(const RunAlignment alignment, AlignFiles(run.paths()));
    EXPECT_EQ(alignment.method, AlignmentMethod::kCollectives);
    EXPECT_GT(alignment.before.violations.size(), 0u);
    EXPECT_THAT(alignment.after.violations, IsEmpty());
    EXPECT_EQ(alignment.nodes[0].stated.certified_uncertainty_ns(), 0);
    for (size_t n = 0; n < recorded.paths.size(); ++n) {
      const CombinedNode& node = alignment.nodes[n].stated;
      ASSERT_TRUE(node.has_offset_ns());
      // Stated to the nanosecond, rounded down, as is the time that it is stated for.
      EXPECT_LE(run.ErrorNs(node, n), node.certified_uncertainty_ns() + 2);
      EXPECT_LE(run.ErrorNs(node, n), node.uncertainty_ns() + 2);
      const std::string name = absl::StrCat(recorded.name, "_node", n);
      RecordProperty(name + "_error_ns", run.ErrorNs(node, n));
      RecordProperty(name + "_uncertainty_ns", node.uncertainty_ns());
      RecordProperty(name + "_certified_ns", node.certified_uncertainty_ns());
    }
    ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, run.WriteAligned(alignment));
    EXPECT_TRUE(verdict.holds) << verdict.report;
  }
}

// A clock with kinks: the tracer at 12 ppm, then 15; the node 3 ms ahead, at -40 ppm, then 50.
absl::StatusOr<NodeClock> KinkedClock(const RunClock& session) {
  constexpr int64_t kMs = 1'000'000'000;
  NodeClock clock(session);
  ASSIGN_OR_RETURN(clock.tracer_to_host,
                   ClockMap::Create({{-kHourPs, -kHourPs + kHourPs / 1'000'000 * 12},
                                     {500 * kMs, 500 * kMs - 6'000'000},
                                     {kHourPs, kHourPs - kHourPs / 1'000'000 * 15}}));
  ASSIGN_OR_RETURN(clock.host_to_reference,
                   ClockMap::Create({{-kHourPs, -kHourPs - 3 * kMs - kHourPs / 1'000'000 * 40},
                                     {300 * kMs, 297 * kMs},
                                     {kHourPs, kHourPs - 3 * kMs - kHourPs / 1'000'000 * 50}}));
  clock.reference_to_target = clock.tracer_to_host->Inverted();
  return clock;
}

TEST(RecordedRunsTest, OrderAndNestingAreKeptInEveryProfile) {
  std::vector<std::string> paths = SharedXSpaceFiles();
  for (const RecordedRun& run : Runs()) {
    paths.insert(paths.end(), run.paths.begin(), run.paths.end());
  }
  OrderCheck total;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const std::string profile = ReadProfile(path);
    ASSERT_OK_AND_ASSIGN(const AlignedProfile aligned, AlignProfile(profile, KinkedClock));
    EXPECT_EQ(aligned.stats.events_clamped_monotonic(), 0);
    const int64_t base_ns = SessionStartNs(path).value_or(1'700'000'000'000'000'000);
    ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> before,
                         ListProfileEvents(profile, base_ns));
    ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> after,
                         ListProfileEvents(aligned.bytes, base_ns));
    ASSERT_OK_AND_ASSIGN(const OrderCheck check, CheckOrderAndNesting(before, after));
    total.equal_starts += check.equal_starts;
    total.children += check.children;
  }
  EXPECT_GT(total.children, 1000);
  // Those of a demo of TensorFlow and of a TPU.
  const bool has_all = SharedDataDirectory().has_value();
  EXPECT_GE(total.equal_starts, has_all ? 3562 + 185 : 0);
  RecordProperty("equal_starts", total.equal_starts);
  RecordProperty("children", total.children);
}

}  // namespace
}  // namespace meridian
