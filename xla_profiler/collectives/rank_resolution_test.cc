#include "xla_profiler/collectives/rank_resolution.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A profile with one device, assigned programs and one all-reduce over {0,2048}.
ProfileCollectives Profile(const std::string& trace, int64_t device,
                           std::vector<int64_t> assigned) {
  ProfileCollectives profile;
  profile.trace = trace;
  profile.devices.push_back({"dev", device});
  profile.assigned_devices = std::move(assigned);
  CollectiveOp op;
  op.groups = IdGroups({{0, 2048}});
  profile.ops.push_back(op);
  CollectiveEvent event;
  event.device = device;
  profile.events.push_back(event);
  return profile;
}

TEST(RankResolutionTest, RanksArePositionsAmongAllAssignedDevices) {
  std::vector<ProfileCollectives> profiles = {Profile("b", 2048, {0, 2048, 4096}),
                                              Profile("a", 0, {0})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.device_of_rank, ElementsAre(0, 2048, 4096));
  EXPECT_THAT(ranks.ranks, ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(ranks.notes, IsEmpty());
  EXPECT_EQ(ranks.RankOf(4096), 2);
  EXPECT_EQ(ranks.RankOf(5), kUnknownId);
}

TEST(RankResolutionTest, UnknownDevicesTakeWhatIsLeftInFileOrderWithAWarning) {
  std::vector<ProfileCollectives> profiles = {Profile("a", kUnknownId, {0, 2048}),
                                              Profile("b", 0, {0, 2048})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.ranks, ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(ranks.notes,
              ElementsAre(AllOf(HasSubstr("warning: a:"), HasSubstr("order of the files"))));
  EXPECT_EQ(profiles[0].events[0].device, 2048);
  EXPECT_EQ(profiles[0].events[0].group, 0);
}

TEST(RankResolutionTest, RanksAreReadFromNamesBeforeTheOrderOfFilesCounts) {
  std::vector<ProfileCollectives> profiles = {Profile("run/worker1_step_12.json", kUnknownId, {}),
                                              Profile("run/worker0_step_12.json", kUnknownId, {})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.ranks, ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(ranks.notes, ElementsAre(HasSubstr("taken for rank 1 by its name"),
                                       HasSubstr("taken for rank 0 by its name")));

  // Two of one name: the order counts.
  profiles = {Profile("a/worker1.json", kUnknownId, {}), Profile("b/worker1.json", kUnknownId, {})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ordered, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ordered.ranks, ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(RankResolutionTest, OpsByOrderWithoutGroupAreOfAllRanks) {
  std::vector<ProfileCollectives> profiles = {Profile("a", 0, {0, 1, 2}), Profile("b", 1, {})};
  for (ProfileCollectives& profile : profiles) {
    profile.ops[0].groups = {};
    profile.ops[0].by_order = true;
  }
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(profiles[1].ops[0].groups[0], ElementsAre(0, 1, 2));
  EXPECT_EQ(profiles[1].events[0].group, 0);
}

TEST(RankResolutionTest, GivenRanksWinAndContradictionsAreNoted) {
  std::vector<ProfileCollectives> profiles = {Profile("a", 0, {0, 2048}),
                                              Profile("b", kUnknownId, {})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks,
                       ResolveRanks(absl::MakeSpan(profiles), {{1, 0}}));
  EXPECT_THAT(ranks.ranks, ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(ranks.notes, ElementsAre(HasSubstr("says it is device 0, rank 1 was given")));
}

TEST(RankResolutionTest, TwoFilesOfOneDeviceAreRefused) {
  std::vector<ProfileCollectives> profiles = {Profile("a", 0, {0}), Profile("b", 0, {0})};
  EXPECT_THAT(
      ResolveRanks(absl::MakeSpan(profiles)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("a and b both hold device 0"), HasSubstr("one file twice"))));
}

TEST(RankResolutionTest, WrongGivenRanksAreRefused) {
  std::vector<ProfileCollectives> profiles = {Profile("a", 0, {0, 2048})};
  EXPECT_THAT(ResolveRanks(absl::MakeSpan(profiles), {{0, 1}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 ranks given for 1")));
  EXPECT_THAT(ResolveRanks(absl::MakeSpan(profiles), {{2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 to 1")));
}

TEST(RankResolutionTest, MoreUnknownDevicesThanRanksAreRefused) {
  std::vector<ProfileCollectives> profiles = {Profile("a", 0, {0}), Profile("b", kUnknownId, {0})};
  EXPECT_THAT(ResolveRanks(absl::MakeSpan(profiles)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("all 1 devices")));
}

TEST(RankResolutionTest, WithoutAnyIdsFilesAreRanks) {
  std::vector<ProfileCollectives> profiles = {Profile("a", kUnknownId, {}),
                                              Profile("b", kUnknownId, {})};
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.ranks, ElementsAre(ElementsAre(0), ElementsAre(1)));
}

}  // namespace
}  // namespace meridian
