#include "xla_profiler/xplane/session_clock.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::tensorflow::profiler::XPlane;
using ::tensorflow::profiler::XSpace;
using ::tensorflow::profiler::XStat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kStartNs = 1794701340994277835;

XStat* AddPlaneStat(const std::string& name, XPlane* plane) {
  const int64_t id = plane->stat_metadata_size() + 1;
  (*plane->mutable_stat_metadata())[id].set_name(name);
  XStat* stat = plane->add_stats();
  stat->set_metadata_id(id);
  return stat;
}

XSpace SpaceWithSession() {
  XSpace space;
  space.add_hostnames("vm");
  XPlane* host = space.add_planes();
  host->set_name("/host:CPU");
  XPlane* environment = space.add_planes();
  environment->set_name("Task Environment");
  AddPlaneStat("profile_start_time", environment)->set_uint64_value(kStartNs);
  AddPlaneStat("profile_stop_time", environment)->set_uint64_value(kStartNs + 5);
  return space;
}

absl::StatusOr<SessionInfo> InfoOf(const XSpace& space) {
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "a.pb");
  if (!reader.ok()) return reader.status();
  return ReadSessionInfo(*reader);
}

TEST(SessionClockTest, ReadsWhatTheFileSays) {
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, InfoOf(SpaceWithSession()));
  EXPECT_EQ(info.profile_start_ns, kStartNs);
  EXPECT_EQ(info.profile_stop_ns, kStartNs + 5);
  EXPECT_THAT(info.hostnames, ElementsAre("vm"));
}

TEST(SessionClockTest, WhatTheFileDoesNotSayIsAbsent) {
  XSpace space;
  space.add_planes()->set_name("/host:CPU");
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, InfoOf(space));
  EXPECT_EQ(info.profile_start_ns, std::nullopt);
  EXPECT_THAT(SessionClock::Create("a.pb", info, std::nullopt).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--profile_start_ns, a flag of combine")));
  ASSERT_OK_AND_ASSIGN(const SessionClock clock, SessionClock::Create("a.pb", info, 77));
  EXPECT_EQ(clock.start_ns(), 77);
}

TEST(SessionClockTest, AStartThatIsNoTimeIsNone) {
  XSpace space;
  XPlane* environment = space.add_planes();
  environment->set_name("Task Environment");
  AddPlaneStat("profile_start_time", environment)->set_str_value("yesterday");
  ASSERT_OK_AND_ASSIGN(SessionInfo info, InfoOf(space));
  EXPECT_EQ(info.profile_start_ns, std::nullopt);
  environment->mutable_stats(0)->set_int64_value(-1);
  ASSERT_OK_AND_ASSIGN(info, InfoOf(space));
  EXPECT_EQ(info.profile_start_ns, std::nullopt);
}

TEST(SessionClockTest, LineBaseAddsStartAndTimestamp) {
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, InfoOf(SpaceWithSession()));
  ASSERT_OK_AND_ASSIGN(const SessionClock clock, SessionClock::Create("a.pb", info, std::nullopt));
  XLineHeader line;
  line.timestamp_ns = 225537523;
  EXPECT_THAT(clock.LineBaseNs(line), IsOkAndHolds(kStartNs + 225537523));
  line.timestamp_ns = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(clock.LineBaseNs(line), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a.pb")));
}

TEST(RunClockTest, KeepsPicosecondsAtTodaysEpoch) {
  const RunClock clock(kStartNs);
  EXPECT_THAT(clock.ToRunPs(kStartNs + 2, 1), IsOkAndHolds(2001));
  EXPECT_THAT(clock.ToRunPs(kStartNs - 2, 1), IsOkAndHolds(-1999));
  EXPECT_EQ(clock.ToUnixNs(2001), kStartNs + 2);
  EXPECT_EQ(clock.ToUnixNs(-1999), kStartNs - 2);
  EXPECT_EQ(clock.ToUnixNs(-2000), kStartNs - 2);
}

TEST(RunClockTest, TimesFarFromTheBaseAreRefused) {
  const RunClock clock(kStartNs);
  EXPECT_THAT(clock.ToRunPs(0, 0), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("106 days")));
  EXPECT_THAT(clock.ToRunPs(kStartNs + 9223372036854775, 807),
              IsOkAndHolds(std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(clock.ToRunPs(kStartNs + 9223372036854775, 808),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("106 days")));
}

}  // namespace
}  // namespace meridian
