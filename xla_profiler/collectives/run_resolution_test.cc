#include "xla_profiler/collectives/run_resolution.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Ran {
  uint32_t op;
  std::optional<int64_t> run_id;
  std::optional<int64_t> step;
};

// A profile with one device and the ops "a", "b", ... of one module.
ProfileCollectives Profile(const std::vector<Ran>& events) {
  ProfileCollectives profile;
  profile.devices.push_back({"dev"});
  for (char name : {'a', 'b', 'c'}) {
    CollectiveOp op;
    op.module = "jit_step";
    op.instruction = std::string(1, name);
    profile.ops.push_back(op);
  }
  int64_t time = 0;
  for (const Ran& ran : events) {
    CollectiveEvent event;
    event.op = ran.op;
    event.run_id = ran.run_id;
    event.step = ran.step;
    event.start_ps = ++time;
    profile.events.push_back(event);
  }
  return profile;
}

std::vector<int64_t> Runs(const std::vector<EventRun>& runs) {
  std::vector<int64_t> numbers;
  for (const EventRun& run : runs) numbers.push_back(run.run);
  return numbers;
}

TEST(RunResolutionTest, SharedRunIdsAreBelieved) {
  const std::vector<ProfileCollectives> profiles = {Profile({{0, 5, {}}, {0, 6, {}}, {0, 7, {}}}),
                                                    Profile({{0, 6, {}}, {0, 7, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kRunId);
  EXPECT_THAT(runs.notes, IsEmpty());
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(5, 6, 7));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(6, 7));
}

// Messages, which have no ids, beside collectives that have: in their order. An event of an op that
// has ids elsewhere has lost its own.
TEST(RunResolutionTest, WhatNeverHasIdsIsMatchedInOrder) {
  const std::vector<ProfileCollectives> profiles = {
      Profile({{1, {}, {}}, {0, 6, {}}, {1, {}, {}}, {0, 7, {}}, {0, {}, {}}}),
      Profile({{0, 6, {}}, {1, {}, {}}, {1, {}, {}}, {0, 7, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kRunId);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(0, 6, 1, 7, kUnknownId));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(6, 0, 1, 7));
}

// A profile that began later has fewer: which are the same, their order does not tell.
TEST(RunResolutionTest, DifferentNumbersWithoutIdsAreNotMatched) {
  const std::vector<ProfileCollectives> profiles = {
      Profile({{1, {}, {}}, {0, 6, {}}, {1, {}, {}}, {0, 7, {}}}),
      Profile({{0, 6, {}}, {1, {}, {}}, {0, 7, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(kUnknownId, 6, kUnknownId, 7));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(6, kUnknownId, 7));
  EXPECT_THAT(runs.notes, Contains(HasSubstr("began or ended at different times")));
}

// Marks the ops as ones of which nothing but the order tells the executions.
ProfileCollectives ByOrder(ProfileCollectives profile) {
  for (CollectiveOp& op : profile.ops) op.by_order = true;
  return profile;
}

TEST(RunResolutionTest, OpsByOrderAreMatchedWhereAllRanksHaveAsMany) {
  // The second profile lacks one of step 8, or ended too early; step 7 is complete.
  const std::vector<ProfileCollectives> profiles = {
      ByOrder(Profile({{0, {}, 7}, {0, {}, 7}, {0, {}, 8}, {0, {}, 8}, {1, {}, 8}})),
      ByOrder(Profile({{0, {}, 7}, {0, {}, 7}, {0, {}, 8}, {1, {}, 8}}))};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kOrder);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(7, 7, kUnknownId, kUnknownId, 8));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(7, 7, kUnknownId, 8));
  EXPECT_NE(runs.runs[0][0].occurrence, runs.runs[0][1].occurrence);
  EXPECT_EQ(runs.runs[0][1].occurrence, runs.runs[1][1].occurrence);
  EXPECT_THAT(runs.notes, Contains(HasSubstr("9 of 9 collectives carry no arguments")));
  EXPECT_THAT(runs.notes, Contains(HasSubstr("different numbers are not matched")));
  EXPECT_THAT(runs.notes, Contains(HasSubstr("group taken to be jit_step, executions")));
  std::vector<ProfileCollectives> two = profiles;
  for (ProfileCollectives& profile : two) profile.ops[1].module = "other";
  EXPECT_THAT(ResolveRuns(two).notes,
              Contains(HasSubstr("that of their kind (2 groups), executions")));
}

// The longest common subsequence would take the second rank's two for the first's first two.
TEST(RunResolutionTest, OpsByOrderAreNotMatchedWhereOneIsMissing) {
  const std::vector<ProfileCollectives> profiles = {
      ByOrder(Profile({{0, {}, {}}, {1, {}, {}}, {0, {}, {}}, {0, {}, {}}})),
      ByOrder(Profile({{0, {}, {}}, {1, {}, {}}, {0, {}, {}}}))};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(kUnknownId, 0, kUnknownId, kUnknownId));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(kUnknownId, 0, kUnknownId));
}

// Events with ids stay as they are, those by order are matched beside them.
TEST(RunResolutionTest, OpsByOrderDoNotDisturbIds) {
  ProfileCollectives profile = Profile({{0, 6, {}}, {1, {}, 0}, {1, {}, {}}, {0, 7, {}}});
  profile.ops[1].by_order = true;
  const std::vector<ProfileCollectives> profiles = {profile, profile};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kRunId);
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(6, 0, 0, 7));
  // The event of step 0 and the one in no step are two executions.
  EXPECT_NE(runs.runs[1][1].occurrence, runs.runs[1][2].occurrence);
}

TEST(RunResolutionTest, AProfileThatBeganLateSharesWhatItHas) {
  // One of six ids is shared; all others are older than the second profile.
  const std::vector<ProfileCollectives> profiles = {
      Profile({{0, 5, {}}, {0, 6, {}}, {0, 7, {}}, {0, 8, {}}, {0, 9, {}}, {0, 10, {}}}),
      Profile({{0, 10, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kRunId);
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(10));
}

TEST(RunResolutionTest, IdsThatMissEachOtherAreNotBelieved) {
  // Among each other, but only one of six by chance in both.
  const std::vector<ProfileCollectives> profiles = {
      Profile({{0, 10, {}}, {0, 20, {}}, {0, 30, {}}, {0, 40, {}}}),
      Profile({{0, 15, {}}, {0, 20, {}}, {0, 33, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kSubsequence);
  EXPECT_THAT(runs.notes[0], HasSubstr("only 1 of 6 run ids"));
}

TEST(RunResolutionTest, IdsThatEachProcessMakesUpAreNotBelieved) {
  const std::vector<ProfileCollectives> profiles = {Profile({{0, 1, 10}, {0, 2, 10}, {0, 3, 11}}),
                                                    Profile({{0, 101, 10}, {0, 102, 11}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kStep);
  EXPECT_THAT(runs.notes, ElementsAre(HasSubstr("only 0 of 5 run ids")));
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(10, 10, 11));
  EXPECT_EQ(runs.runs[0][1].occurrence, 1u);
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(10, 11));
}

TEST(RunResolutionTest, WithoutIdsAndStepsTheOrderDecides) {
  // The second profile begins one collective later.
  const std::vector<ProfileCollectives> profiles = {
      Profile({{0, {}, {}}, {1, {}, {}}, {2, {}, {}}, {0, {}, {}}}),
      Profile({{1, {}, {}}, {2, {}, {}}, {0, {}, {}}, {1, {}, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kSubsequence);
  EXPECT_THAT(runs.notes,
              ElementsAre(HasSubstr("warning: "), "1 collective(s) have no counterpart"));
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(1, 2, 3, kUnknownId));
}

// A pipeline: the first device sends 0, the second receives it and sends 1, the third receives that
// one; it began later and misses the first.
TEST(RunResolutionTest, OpsThatTheFirstProfileDoesNotHaveAreMatchedWithTheFirstThatDoes) {
  const std::vector<ProfileCollectives> profiles = {
      Profile({{0, {}, {}}, {0, {}, {}}}),
      Profile({{0, {}, {}}, {1, {}, {}}, {2, {}, {}}, {0, {}, {}}, {1, {}, {}}}),
      Profile({{2, {}, {}}, {1, {}, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kSubsequence);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(0, 1));
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(0, 2, 3, 1, 4));
  EXPECT_THAT(Runs(runs.runs[2]), ElementsAre(3, 4));
}

TEST(RunResolutionTest, EventsBeforeTheFirstStepAreLeftOpen) {
  const std::vector<ProfileCollectives> profiles = {Profile({{0, {}, {}}, {0, {}, 7}, {0, {}, 8}}),
                                                    Profile({{0, {}, 7}, {0, {}, 8}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kStep);
  EXPECT_THAT(Runs(runs.runs[0]), ElementsAre(kUnknownId, 7, 8));
  EXPECT_THAT(runs.notes, ElementsAre(HasSubstr("matched by step"), HasSubstr("1 collective(s)")));
}

TEST(RunResolutionTest, ADeviceWithoutCollectivesIsNoReference) {
  ProfileCollectives idle;
  idle.devices.push_back({"idle"});
  const std::vector<ProfileCollectives> profiles = {idle, Profile({{0, {}, {}}, {1, {}, {}}}),
                                                    Profile({{0, {}, {}}, {1, {}, {}}})};
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_THAT(Runs(runs.runs[1]), ElementsAre(0, 1));
  EXPECT_THAT(Runs(runs.runs[2]), ElementsAre(0, 1));
}

TEST(RunResolutionTest, OneProfileNeedsNoWitness) {
  const std::vector<ProfileCollectives> profiles = {Profile({{0, 5, {}}})};
  EXPECT_EQ(ResolveRuns(profiles).method, RunMethod::kRunId);
}

TEST(RunResolutionTest, IdentityIsProgramAndInstruction) {
  CollectiveOp a, b;
  a.module = b.module = "m";
  a.instruction = b.instruction = "i";
  EXPECT_EQ(OpIdentity(a), OpIdentity(b));
  b.program_fingerprint = 1;
  EXPECT_NE(OpIdentity(a), OpIdentity(b));
}

}  // namespace
}  // namespace meridian
