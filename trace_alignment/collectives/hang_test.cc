#include "trace_alignment/collectives/validation.h"

#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Ranks 0 to 2 in a group that called all_reduce 1 to 3, of which nobody has completed the last.
std::vector<FlightDump> Job() {
  std::vector<FlightDump> dumps(3);
  for (int64_t rank = 0; rank < 3; ++rank) {
    FlightDump& dump = dumps[rank];
    dump.rank = rank;
    dump.groups["0"] = {"0 (world)", {0, 1, 2}};
    for (int64_t number = 1; number <= 3; ++number) {
      FlightEntry entry;
      entry.group = "0";
      entry.name = "all_reduce";
      entry.number = number;
      entry.in_bytes = entry.out_bytes = 4096;
      entry.dtype = "Float";
      entry.state = number < 3 ? "completed" : "started";
      dump.entries.push_back(entry);
    }
  }
  return dumps;
}

FlightEntry Message(const char* name, int64_t peer, const char* state) {
  FlightEntry entry;
  entry.group = "0";
  entry.name = name;
  entry.peer = peer;
  entry.number = 5;
  entry.in_bytes = entry.out_bytes = 64;
  entry.state = state;
  return entry;
}

TEST(HangTest, AllFine) {
  std::vector<FlightDump> dumps = Job();
  for (FlightDump& dump : dumps) dump.entries[2].state = "completed";
  const ValidationReport report = FindHangs(dumps);
  EXPECT_THAT(report.hangs(), IsEmpty());
  EXPECT_THAT(report.notes(), IsEmpty());
  EXPECT_EQ(report.instances(), 3);
  EXPECT_EQ(report.checked(), 3);
}

TEST(HangTest, WhereAllWaitNobodyIsMissing) {
  const ValidationReport report = FindHangs(Job());
  EXPECT_THAT(report.hangs(), IsEmpty());
  EXPECT_THAT(report.notes(), ElementsAre("group 0 (world), call 3, all_reduce of 4KiB Float: "
                                          "ranks 0-2 had not completed it; of those with dumps "
                                          "all have come"));
}

TEST(HangTest, ARankThatHasNotComeIsMissing) {
  std::vector<FlightDump> dumps = Job();
  dumps[1].entries.pop_back();
  dumps[1].entries.back().where = "train.py:35";
  const ValidationReport report = FindHangs(dumps);
  ASSERT_THAT(report.hangs(), SizeIs(1));
  const HangReport& hang = report.hangs(0);
  EXPECT_EQ(hang.seq(), 3);
  ASSERT_THAT(hang.calls(), SizeIs(1));
  EXPECT_EQ(hang.calls(0).call(), "all_reduce of 4KiB Float");
  EXPECT_THAT(hang.calls(0).ranks(), ElementsAre(0, 2));
  EXPECT_THAT(hang.missing_ranks(), ElementsAre(1));
  EXPECT_THAT(hang.waiting_ranks(), ElementsAre(0, 2));
  ASSERT_THAT(hang.last_calls(), SizeIs(2));
  EXPECT_THAT(hang.last_calls(0).ranks(), ElementsAre(0, 2));
  EXPECT_THAT(hang.last_calls(1).ranks(), ElementsAre(1));
  EXPECT_EQ(hang.last_calls(1).call(),
            "2 all_reduce of 4KiB Float in group 0 (world) completed at train.py:35");
  EXPECT_THAT(
      FormatHangs(report),
      HasSubstr("group 0 (world), ranks 0-2, call 3: all_reduce of 4KiB Float by ranks 0, 2; "
                "missing: rank 1; waiting: ranks 0, 2\nLast calls:\n  ranks 0, 2: 3 "
                "all_reduce of 4KiB Float in group 0 (world) started\n"));
}

TEST(HangTest, ADumpThatWasTakenEarlierIsNoDisagreement) {
  std::vector<FlightDump> dumps = Job();
  dumps[1].entries.pop_back();
  dumps[0].entries[2].state = dumps[2].entries[2].state = "completed";
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
}

TEST(HangTest, OverwrittenCallsAreNoDisagreement) {
  std::vector<FlightDump> dumps = Job();
  dumps[1].entries.erase(dumps[1].entries.begin());
  dumps[1].is_overwritten = true;
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
  // Also while others wait for it: rank 1 has come further.
  dumps[0].entries[0].state = "started";
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
  // Other groups may have filled the buffer since.
  dumps[1].entries.clear();
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
}

TEST(HangTest, ADeviceThatHasNotBegunIsNamed) {
  std::vector<FlightDump> dumps = Job();
  dumps[2].entries[2].state = "scheduled";
  EXPECT_THAT(FindHangs(dumps).notes(),
              ElementsAre(HasSubstr("all have come, but the device of rank 2 had not begun it")));
}

// Rank 1 misses the later group's call first; what follows from that was called later.
TEST(HangTest, OfEffectsTheFirstCallComesFirst) {
  std::vector<FlightDump> dumps = Job();
  for (FlightDump& dump : dumps) {
    dump.groups["1"] = {"1 (later)", {0, 1, 2}};
    for (FlightEntry& entry : dump.entries) entry.start_ns = 2000;
    FlightEntry first = dump.entries[2];
    first.group = "1";
    first.number = 1;
    first.start_ns = 1000;
    if (dump.rank != 1) dump.entries.push_back(first);
  }
  // Rank 0 misses the call in which rank 1 waits.
  dumps[0].entries.erase(dumps[0].entries.begin() + 2);
  const ValidationReport report = FindHangs(dumps);
  ASSERT_THAT(report.hangs(), SizeIs(2));
  EXPECT_EQ(report.hangs(0).group(), "1 (later)");
  EXPECT_EQ(report.hangs(1).group(), "0 (world)");
}

TEST(HangTest, TheFirstCallOfAnotherKindSizeOrTypeIsNamed) {
  const auto mismatch = [](void (*change)(FlightEntry&)) {
    std::vector<FlightDump> dumps = Job();
    change(dumps[1].entries[1]);
    change(dumps[1].entries[2]);
    const ValidationReport report = FindHangs(dumps);
    EXPECT_THAT(report.hangs(), SizeIs(1));
    EXPECT_EQ(report.hangs(0).seq(), 2);
    EXPECT_THAT(report.hangs(0).calls(), SizeIs(2));
    EXPECT_EQ(report.hangs(0).calls(0).call(), "all_reduce of 4KiB Float");
    EXPECT_THAT(report.hangs(0).calls(0).ranks(), ElementsAre(0, 2));
    EXPECT_THAT(report.hangs(0).calls(1).ranks(), ElementsAre(1));
    EXPECT_THAT(FormatHangs(report),
                HasSubstr("1 disagreement(s) in 3 calls of 3 rank(s), 3 of which could"));
    EXPECT_THAT(FormatHangs(report), HasSubstr(" by rank 1; missing: none; waiting: none\n"));
    return report.hangs(0).calls(1).call();
  };
  EXPECT_EQ(mismatch([](FlightEntry& entry) { entry.name = "broadcast"; }),
            "broadcast of 4KiB Float");
  EXPECT_EQ(mismatch([](FlightEntry& entry) { entry.in_bytes = 8; }),
            "all_reduce of 8B to 4KiB Float");
  EXPECT_EQ(mismatch([](FlightEntry& entry) { entry.dtype = "Half"; }), "all_reduce of 4KiB Half");
  // Ranks may give each other different amounts.
  std::vector<FlightDump> dumps = Job();
  for (FlightDump& dump : dumps) dump.entries[1].name = "all_to_all";
  dumps[1].entries[1].in_bytes = 8;
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
}

// Rank 0 waits for rank 1, which waits for rank 2 in another group: that comes first.
TEST(HangTest, WhatOthersWaitForComesFirst) {
  std::vector<FlightDump> dumps = Job();
  for (int rank : {0, 1}) dumps[rank].groups["0"].ranks = {0, 1};
  dumps[1].entries.pop_back();
  dumps[2].entries.clear();
  dumps[2].groups.clear();
  for (int rank : {1, 2}) dumps[rank].groups["1@1"] = {"1 (pair)", {1, 2}};
  FlightEntry entry = dumps[1].entries[0];
  entry.group = "1@1";
  entry.state = "scheduled";
  dumps[1].entries.push_back(entry);
  const ValidationReport report = FindHangs(dumps);
  ASSERT_THAT(report.hangs(), SizeIs(2));
  EXPECT_EQ(report.hangs(0).group(), "1 (pair)");
  EXPECT_THAT(report.hangs(0).missing_ranks(), ElementsAre(2));
  EXPECT_EQ(report.hangs(1).group(), "0 (world)");
  EXPECT_THAT(report.hangs(1).missing_ranks(), ElementsAre(1));
  EXPECT_EQ(report.hangs(1).last_calls(1).call(),
            "1 all_reduce of 4KiB Float in group 1 (pair) scheduled");
}

TEST(HangTest, MessagesNeedTheirOtherEnds) {
  std::vector<FlightDump> dumps = Job();
  for (FlightDump& dump : dumps) dump.entries.pop_back();
  dumps[0].entries.push_back(Message("send", 1, "completed"));
  dumps[1].entries.push_back(Message("recv", 0, "completed"));
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
  for (const bool is_overwritten : {false, true}) {
    std::vector<FlightDump> hung = dumps;
    hung[1].is_overwritten = is_overwritten;
    hung[0].entries.push_back(Message("send", 1, "started"));
    const ValidationReport report = FindHangs(hung);
    ASSERT_THAT(report.hangs(), SizeIs(1));
    EXPECT_EQ(report.hangs(0).calls(0).call(), "message of 64B");
    EXPECT_EQ(report.hangs(0).seq(), 5);
    EXPECT_EQ(report.hangs(0).group(), "0 (world), messages from rank 0 to rank 1");
    EXPECT_THAT(report.hangs(0).waiting_ranks(), ElementsAre(0));
    EXPECT_THAT(report.hangs(0).missing_ranks(), ElementsAre(1));
    hung[1].entries.push_back(Message("recv", 0, "started"));
    EXPECT_THAT(FindHangs(hung).hangs(), IsEmpty());
    hung[1].entries.back().in_bytes = hung[1].entries.back().out_bytes = 128;
    EXPECT_THAT(FindHangs(hung).hangs(0).calls(), SizeIs(2));
  }
}

TEST(HangTest, RanksWithoutDumpsAreNamed) {
  std::vector<FlightDump> dumps = Job();
  dumps.erase(dumps.begin() + 1);
  const ValidationReport report = FindHangs(dumps);
  EXPECT_THAT(report.hangs(), IsEmpty());
  EXPECT_THAT(report.ranks_without_dump(), ElementsAre(1));
  EXPECT_THAT(FormatHangs(report), HasSubstr("no dump that can be read of rank 1: what"));
  // Ranks are numbered from 0.
  for (FlightDump& dump : dumps) dump.groups["0"].ranks = {0, 2, 5};
  EXPECT_THAT(FindHangs(dumps).ranks_without_dump(), ElementsAre(1, 3, 4, 5));
  dumps[0].entries.clear();
  dumps[0].path = "fr_0";
  EXPECT_THAT(FindHangs(dumps).notes(), Contains("fr_0: it has no calls"));
}

TEST(HangTest, OneGroupHasTheSameMembersInAllDumps) {
  std::vector<FlightDump> dumps = Job();
  dumps[1].path = "fr_1";
  dumps[1].groups["0"].ranks = {0, 1};
  EXPECT_THAT(FindHangs(dumps).notes(),
              Contains(HasSubstr("fr_1: group 0 (world) has ranks 0-1,")));
  // A group that begins elsewhere is another, unless they share a rank.
  dumps[1].groups = {{"0@1", {"0 (world)", {1, 2}}}};
  for (FlightEntry& entry : dumps[1].entries) entry.group = "0@1";
  EXPECT_THAT(FindHangs(dumps).notes(),
              Contains(HasSubstr("fr_1: group 0 (world) has ranks 1-2,")));
}

// Were the group walked for each call, this would take minutes.
TEST(HangTest, LargeGroupsAreWalkedOnce) {
  std::vector<FlightDump> dumps = Job();
  dumps.pop_back();
  for (FlightDump& dump : dumps) {
    std::vector<int64_t>& ranks = dump.groups["0"].ranks;
    ranks.resize(1 << 20);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (int64_t number = 4; number < 20000; ++number) {
      dump.entries.push_back(dump.entries.back());
      dump.entries.back().number = number;
    }
  }
  EXPECT_THAT(FindHangs(dumps).hangs(), IsEmpty());
}

TEST(HangTest, RealDumpsAgreeUntilOneIsDamaged) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const char* suffix : {".json.gz", ".pickle"}) {
    std::vector<FlightDump> dumps;
    for (int rank = 0; rank < 4; ++rank) {
      const std::string path = absl::StrCat(*shared, "/traces/graph_nccl4/fr_", rank, suffix);
      ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
      ASSERT_OK_AND_ASSIGN(FlightDump dump, ParseFlightDump(file.bytes(), path));
      dumps.push_back(std::move(dump));
    }
    const ValidationReport fine = FindHangs(dumps);
    EXPECT_THAT(fine.hangs(), IsEmpty());
    EXPECT_EQ(fine.checked(), 28);
    std::vector<FlightDump> cut = dumps;
    for (FlightDump& dump : cut) dump.entries.back().state = "started";
    cut[2].entries.pop_back();
    EXPECT_EQ(FindHangs(cut).hangs(0).seq(), 31);
    EXPECT_THAT(FindHangs(cut).hangs(0).missing_ranks(), ElementsAre(2));
    dumps[3].entries[5].name = "broadcast";
    EXPECT_EQ(FindHangs(dumps).hangs(0).seq(), 6);
    EXPECT_THAT(FindHangs(dumps).hangs(0).calls(1).ranks(), ElementsAre(3));
  }
}

}  // namespace
}  // namespace meridian
