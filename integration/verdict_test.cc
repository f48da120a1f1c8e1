// Whether a damaged profile is taken or refused: all commands that read it agree.
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::tensorflow::profiler::XPlane;
using ::tensorflow::profiler::XSpace;
using ::testing::Each;
using ::testing::Pair;

constexpr int kRefused = 2;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the exit codes of the commands that read a run of XSpaces, by command.
std::map<std::string, int> Verdicts(const TemporaryDirectory& directory, const std::string& run) {
  const std::string run_dir = "--run_dir=" + run;
  const std::vector<std::vector<std::string>> calls = {
      {"combine", run_dir, "--output=" + directory.PathOf("c.xplane.pb"),
       "--trace_json=" + directory.PathOf("c.json")},
      {"critical_path", run_dir},
      {"chakra_export", run_dir, "--output=" + directory.PathOf("et")},
      {"validate_collectives", run_dir}};
  std::map<std::string, int> verdicts;
  for (const std::vector<std::string>& call : calls) {
    verdicts[call[0]] = RunCommandLine("tools/meridian", call).exit_code;
  }
  return verdicts;
}

// The run of the example, with the second profile changed.
std::map<std::string, int> WithDamage(const std::function<void(XSpace*)>& damage) {
  const TemporaryDirectory directory;
  directory.Write("run/rank0.xplane.pb", Contents("examples/jax_cuda2/rank0.xplane.pb"));
  XSpace space;
  EXPECT_TRUE(space.ParseFromString(Contents("examples/jax_cuda2/rank1.xplane.pb")));
  damage(&space);
  directory.Write("run/rank1.xplane.pb", space.SerializeAsString());
  return Verdicts(directory, directory.PathOf("run"));
}

XPlane* PlaneOf(const std::string& name, XSpace* space) {
  for (XPlane& plane : *space->mutable_planes()) {
    if (plane.name() == name) return &plane;
  }
  return nullptr;
}

TEST(VerdictTest, ASoundRunIsTaken) {
  EXPECT_THAT(WithDamage([](XSpace*) {}), Each(Pair(testing::_, 0)));
}

TEST(VerdictTest, AnEventAtNoTimeIsTakenForNothingByAll) {
  for (const int64_t duration_ps : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(WithDamage([&](XSpace* space) {
                  PlaneOf("/host:CPU", space)
                      ->mutable_lines(0)
                      ->mutable_events(0)
                      ->set_duration_ps(duration_ps);
                }),
                Each(Pair(testing::_, 0)))
        << duration_ps;
  }
}

// Times between which more than 106 days lie do not fit into one graph.
TEST(VerdictTest, AnEventMonthsAwayIsTakenForNothingByAll) {
  EXPECT_THAT(WithDamage([](XSpace* space) {
                PlaneOf("/device:GPU:0", space)
                    ->mutable_lines(0)
                    ->mutable_events(0)
                    ->set_offset_ps(INT64_MIN);
              }),
              Each(Pair(testing::_, 0)));
}

TEST(VerdictTest, ALineAtNoTimeIsTakenForNothingByAll) {
  EXPECT_THAT(WithDamage([](XSpace* space) {
                PlaneOf("/host:CPU", space)->mutable_lines(0)->set_timestamp_ns(INT64_MAX / 2);
              }),
              Each(Pair(testing::_, 0)));
}

TEST(VerdictTest, AStopThatIsNoTimeOfTheRunSaysNothingToAll) {
  EXPECT_THAT(
      WithDamage([](XSpace* space) {
        XPlane* environment = PlaneOf("Task Environment", space);
        for (auto& stat : *environment->mutable_stats()) {
          if (environment->stat_metadata().at(stat.metadata_id()).name() == "profile_stop_time") {
            stat.set_uint64_value(64170);
          }
        }
      }),
      Each(Pair(testing::_, 0)));
}

// One of the kernels in the middle of the run, as a profiler drops them: what lacks it is no collective.
TEST(VerdictTest, AProfileThatLostAKernelIsTakenByAll) {
  EXPECT_THAT(WithDamage([](XSpace* space) {
                XPlane* device = PlaneOf("/device:GPU:0", space);
                for (auto& line : *device->mutable_lines()) {
                  std::vector<int> gathers;
                  for (int i = 0; i < line.events_size(); ++i) {
                    const auto& event = device->event_metadata().at(line.events(i).metadata_id());
                    if (absl::StrContains(event.name(), "AllGather")) gathers.push_back(i);
                  }
                  if (gathers.empty()) continue;
                  line.mutable_events()->DeleteSubrange(gathers[gathers.size() / 2], 1);
                }
              }),
              Each(Pair(testing::_, 0)));
}

// Its device ran none of the collectives that the other one's ran with it.
TEST(VerdictTest, AProfileWithoutItsCollectivesIsRefusedByAll) {
  EXPECT_THAT(WithDamage([](XSpace* space) {
                XPlane* device = PlaneOf("/device:GPU:0", space);
                for (auto& [id, metadata] : *device->mutable_stat_metadata()) {
                  if (metadata.name() == "hlo_op") metadata.set_name("damaged");
                }
              }),
              Each(Pair(testing::_, kRefused)));
}

}  // namespace
}  // namespace meridian
