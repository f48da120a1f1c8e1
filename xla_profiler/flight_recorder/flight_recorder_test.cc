#include "xla_profiler/flight_recorder/flight_recorder.h"

#include <array>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/sources/trace_sources.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kStartNs = 1794889542000000000;

// An entry of group "0"; times in ms from the start, none if negative.
std::string Entry(int record, absl::string_view name, int seq, double created_ms,
                  double completed_ms, double took_ms, absl::string_view more = "") {
  const auto time = [](double ms) {
    return ms < 0 ? 0 : kStartNs + static_cast<int64_t>(ms * 1e6);
  };
  return absl::StrCat(
      R"({"record_id":)", record, R"(,"pg_id":0,"process_group":["0","default_pg"],)",
      R"("collective_seq_id":)", seq, R"(,"p2p_seq_id":)", seq, R"(,"profiling_name":"nccl:)", name,
      R"(","input_sizes":[[4,256]],"input_dtypes":["BFloat16"],"output_sizes":[[4,256]],)",
      R"("output_dtypes":["BFloat16"],"state":")", completed_ms < 0 ? "scheduled" : "completed",
      R"(","time_created_ns":)", time(created_ms), R"(,"time_discovered_completed_ns":)",
      time(completed_ms), took_ms < 0 ? "" : absl::StrCat(R"(,"duration_ms":)", took_ms), more,
      "}");
}

std::string Dump(absl::string_view entries, absl::string_view ranks = "[0, 1]") {
  return absl::StrCat(R"({"version":"2.10","entries":[)", entries,
                      R"(],"pg_config":{"0":{"name":"0","desc":"default_pg","ranks":")", ranks,
                      R"("}},"pg_status":{}})");
}

FlightDump Parse(absl::string_view entries) {
  const absl::StatusOr<FlightDump> dump = ParseFlightDump(Dump(entries), "fr_1.json");
  EXPECT_OK(dump.status());
  return dump.value_or(FlightDump());
}

TEST(FlightRecorderTest, EntriesAreRead) {
  const FlightDump dump = Parse(Entry(
      3, "_all_gather_base", 7, 1, 2, 0.5,
      R"(,"frames":[{"name":"f","filename":"/x/torch/distributed/c.py","line":3},{"name":"g","filename":"/a/train.py","line":35}])"));
  EXPECT_EQ(dump.rank, 1);
  EXPECT_TRUE(dump.is_overwritten);
  EXPECT_EQ(dump.groups.at("0").name, "0 (default_pg)");
  EXPECT_THAT(dump.groups.at("0").ranks, ElementsAre(0, 1));
  ASSERT_THAT(dump.entries, SizeIs(1));
  const FlightEntry& entry = dump.entries[0];
  EXPECT_EQ(entry.name, "_all_gather_base");
  EXPECT_EQ(entry.number, 7);
  EXPECT_EQ(entry.in_bytes, 2048);
  EXPECT_EQ(entry.dtype, "BFloat16");
  EXPECT_EQ(entry.where, "train.py:35");
  EXPECT_EQ(entry.start_ns, kStartNs + 1'000'000);
  EXPECT_EQ(entry.end_ns, kStartNs + 2'000'000);
  EXPECT_EQ(entry.ran_ns, 500'000);
  EXPECT_TRUE(entry.is_completed());
}

// The calls of a batch have no times of their own.
TEST(FlightRecorderTest, BatchesEndWithTheEntryBehindThem) {
  const FlightDump dump =
      Parse(absl::StrCat(Entry(0, "send 1->0", 4, 1, -1, -1, R"(,"is_p2p":true)"), ",",
                         Entry(1, "recv 1<-0", 4, 1, -1, -1, R"(,"is_p2p":true)"), ",",
                         Entry(2, "coalesced", 4, 1, 9, 3, R"(,"is_p2p":true)")));
  ASSERT_THAT(dump.entries, SizeIs(2));
  for (const FlightEntry& entry : dump.entries) {
    EXPECT_EQ(entry.ran_ns, std::nullopt);
    EXPECT_EQ(entry.peer, 0);
    EXPECT_TRUE(entry.is_completed());
    EXPECT_EQ(entry.end_ns, kStartNs + 9'000'000);
  }
  EXPECT_EQ(dump.entries[1].name, "recv");
}

// Another call may come between.
TEST(FlightRecorderTest, CollectivesOfABatchAreOne) {
  const FlightDump dump = Parse(
      absl::StrCat(Entry(0, "all_reduce", 4, 1, -1, -1), ",", Entry(1, "all_reduce", 5, 1, 2, 1),
                   ",", Entry(2, "all_reduce", 4, 1, -1, -1), ",",
                   Entry(3, "coalesced", 4, 1, 9, 3, R"(,"input_sizes":[],"output_sizes":[])")));
  ASSERT_THAT(dump.entries, SizeIs(2));
  const FlightEntry& batch = dump.entries[0];
  EXPECT_EQ(batch.name, "all_reduce");
  EXPECT_EQ(batch.in_bytes, 2 * 2048);
  EXPECT_EQ(batch.out_bytes, 2 * 2048);
  EXPECT_EQ(batch.end_ns, kStartNs + 9'000'000);
  EXPECT_EQ(batch.ran_ns, 3'000'000);
  EXPECT_TRUE(batch.is_completed());
}

TEST(FlightRecorderTest, WhatIsMissingIsNamed) {
  const std::string entry = Entry(0, "all_reduce", 1, 1, 2, 1);
  for (const auto& [from, to, message] : std::vector<std::array<const char*, 3>>{
           {"\"profiling_name\"", "\"x\"", "fr_1.json: entry 1: no profiling_name"},
           {"\"collective_seq_id\":1", "\"collective_seq_id\":-1",
            "no profiling_name, collective_seq"},
           {"\"time_created_ns\":1", "\"time_created_ns\":", "entry 1: no profiling_name"},
           {"\"completed\"", "\"bogus\"", "fr_1.json: entry 1: state 'bogus'; expected scheduled"},
           {"[\"0\",", "[\"5\",", "entry 1: its process_group is not in pg_config"}}) {
    const std::string dump =
        Dump(absl::StrCat(entry, ",", absl::StrReplaceAll(entry, {{from, to}})));
    EXPECT_THAT(ParseFlightDump(dump, "fr_1.json").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  EXPECT_THAT(ParseFlightDump(Dump(entry), "fr_7.json").status().message(),
              HasSubstr("fr_7.json: pg_config: no group with rank 7, the last number in"));
  EXPECT_THAT(ParseFlightDump(Dump(entry, "[0, 2, -1]"), "fr_0").status().message(),
              HasSubstr("pg_config: no ranks of group '0'"));
  EXPECT_THAT(ParseFlightDump(Dump(entry, "[0, 1, 1]"), "fr_1").status().message(),
              HasSubstr("pg_config: no ranks of group '0', each once"));
  EXPECT_THAT(ParseFlightDump(R"({"pg_config":{"0":{"ranks":"[0]"}},"entries":5})", "fr_0")
                  .status()
                  .message(),
              HasSubstr("fr_0: entries is no list"));
  EXPECT_THAT(ParseFlightDump("", "fr_0").status().message(),
              HasSubstr("fr_0: the file is empty; expected a flight recorder dump"));
  EXPECT_THAT(ParseFlightDump("(dp0\nVentries\n", "fr_0").status().message(),
              HasSubstr("fr_0: offset 0: a pickle of protocol 0 or 1; expected"));
  EXPECT_EQ(ParseFlightDump(Dump(entry), "rank1_try7.json")->rank, 1);
  EXPECT_THAT(ParseFlightDump(Dump(entry), "fr.json").status().message(),
              HasSubstr("fr.json: whose dump is it?"));
}

TEST(FlightRecorderTest, CutOrDamagedIsAnErrorOrAnotherDump) {
  const std::string dump = Dump(Entry(0, "all_reduce", 1, 1, 2, 1));
  for (size_t size = 0; size < dump.size(); ++size) {
    EXPECT_THAT(ParseFlightDump(dump.substr(0, size), "fr_1.json").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fr_1.json: ")));
  }
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    refused += ParseFlightDump(Damage(dump, random), "fr_1.json").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 500);
}

std::vector<ProfileCollectives> CollectivesOf(const std::vector<std::string>& dumps,
                                              bool durations_suffice,
                                              std::vector<std::string>* notes) {
  const TemporaryDirectory directory;
  std::vector<std::string> paths;
  for (size_t i = 0; i < dumps.size(); ++i) {
    paths.push_back(directory.Write(absl::StrCat("nccl_trace_rank_", i), dumps[i]));
  }
  TraceFilesOptions options;
  options.conversion.durations_suffice = durations_suffice;
  const absl::StatusOr<TraceFiles> files = TraceFiles::Create(FileSystem::Posix(), paths, options);
  EXPECT_OK(files.status());
  std::vector<ProfileCollectives> profiles;
  for (size_t i = 0; files.ok() && i < files->size(); ++i) {
    profiles.push_back(*ReadKinetoCollectives(*files->Open(i)));
  }
  if (files.ok()) *notes = files->notes();
  return profiles;
}

TEST(FlightRecorderTest, CollectivesAreShownFromTheirEnqueueingToTheirSeenEnds) {
  std::vector<std::string> dumps;
  for (int rank = 0; rank < 2; ++rank) {
    dumps.push_back(Dump(absl::StrCat(Entry(0, "all_reduce", 1, 1, 40 + rank, 10), ",",
                                      Entry(1, "all_reduce", 2, 2, 40 + rank, 5), ",",
                                      Entry(2, "all_reduce", 3, 30, -1, -1))));
  }
  std::vector<std::string> notes;
  const std::vector<ProfileCollectives> shown = CollectivesOf(dumps, false, &notes);
  ASSERT_THAT(shown, SizeIs(2));
  ASSERT_THAT(shown[1].events, SizeIs(2));
  const auto time_ns = [&](int64_t ps) { return shown[1].base_ns + ps / 1000 - kStartNs; };
  EXPECT_EQ(time_ns(shown[1].events[0].start_ps), 1'000'000);
  EXPECT_EQ(time_ns(shown[1].events[1].start_ps), 2'000'000);
  EXPECT_EQ(time_ns(shown[1].events[1].end_ps), 41'000'000);
  EXPECT_EQ(shown[1].events[0].run_id, shown[0].events[0].run_id);
  EXPECT_NE(shown[1].events[0].run_id, shown[1].events[1].run_id);
  EXPECT_EQ(shown[1].devices[0].global_id, 1);
  EXPECT_EQ(shown[1].events[0].ran_ps, 10'000'000'000);
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("2 calls of rank(s) 0-1 were not seen to end"),
                                       HasSubstr("validate_collectives --traces=")),
                                 HasSubstr("100 ms late")));
}

// Rank 1's first two are paired, what follows the one that has not ended is not.
TEST(FlightRecorderTest, MessagesArePairedInOrderOnlyWhereNoneIsLost) {
  const auto message = [](int record, const char* name, double ended_ms) {
    return Entry(record, name, record, 1, ended_ms, 1, R"(,"is_p2p":true)");
  };
  for (const bool is_lost : {false, true}) {
    std::vector<std::string> dumps(2);
    for (int i = is_lost ? 1 : 0; i < 4; ++i) {
      absl::StrAppend(&dumps[0], dumps[0].empty() ? "" : ",", message(i, "send 0->1", 9));
    }
    for (int i = 0; i < 4; ++i) {
      absl::StrAppend(&dumps[1], i == 0 ? "" : ",", message(i, "recv 1<-0", i == 2 ? -1 : 9));
    }
    for (std::string& dump : dumps) {
      dump = Dump(absl::StrCat(dump, ",", Entry(9, "all_reduce", 1, 1, 2, 1)));
    }
    std::vector<std::string> notes;
    const std::vector<ProfileCollectives> shown = CollectivesOf(dumps, false, &notes);
    ASSERT_THAT(shown, SizeIs(2));
    EXPECT_THAT(shown[0].events, SizeIs(is_lost ? 1 : 5));
    EXPECT_THAT(shown[1].events, SizeIs(is_lost ? 1 : 3));
    EXPECT_THAT(notes, Contains(HasSubstr(is_lost ? "6 calls of rank(s) 0-1 are messages that"
                                                  : "1 calls of rank(s) 1 are messages that")));
  }
}

TEST(FlightRecorderTest, DumpsThatCannotBeReadAreLeftOut) {
  const std::string dump = Dump(Entry(0, "all_reduce", 1, 1, 2, 1), "[0, 1, 2, 3]");
  std::vector<std::string> notes;
  const std::vector<ProfileCollectives> shown =
      CollectivesOf({"", dump, dump.substr(0, 90), "\x80\x02}q"}, false, &notes);
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0].devices[0].global_id, 1);
  EXPECT_THAT(
      notes,
      ElementsAre(HasSubstr("rank_0: the file is empty"), HasSubstr("rank_2: offset"),
                  HasSubstr("rank_3: offset 3: the pickle is cut off"), HasSubstr("100 ms late")));
}

TEST(FlightRecorderTest, WhereDurationsCountTheRestIsLeftOut) {
  std::vector<std::string> dumps;
  for (int rank = 0; rank < 2; ++rank) {
    dumps.push_back(Dump(absl::StrCat(Entry(0, "all_reduce", 1, 1, 40, rank == 0 ? 7 : 3), ",",
                                      Entry(1, "all_reduce", 2, 2, 140, 5), ",",
                                      Entry(2, "all_reduce", 3, 30, 150, -1))));
  }
  std::vector<std::string> notes;
  const std::vector<ProfileCollectives> shown = CollectivesOf(dumps, true, &notes);
  ASSERT_THAT(shown, SizeIs(2));
  ASSERT_THAT(shown[0].events, SizeIs(2));
  EXPECT_EQ(shown[0].events[0].ran_ps, 7'000'000'000);
  EXPECT_EQ(shown[1].events[0].ran_ps, 3'000'000'000);
  EXPECT_THAT(notes[0], HasSubstr("2 calls of rank(s) 0-1 do not say how long they took"));
}

TEST(FlightRecorderTest, TwoDumpsOfOneRankAreRefused) {
  const TemporaryDirectory directory;
  const std::string dump = Dump(Entry(0, "all_reduce", 1, 1, 2, 1));
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(),
                                 {directory.Write("a_1", dump), directory.Write("b_1", dump)})
                  .status()
                  .message(),
              HasSubstr("b_1 are both of rank 1"));
}

TEST(FlightRecorderTest, ProfilesBesideDumpsCount) {
  const TemporaryDirectory directory;
  const std::string dump = Dump(Entry(0, "all_reduce", 1, 1, 2, 1));
  const std::string json = directory.Write("fr_1.json", dump);
  const std::string pickle = directory.Write("fr_1.pickle", "\x80\x02}.");
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {json, pickle}), ElementsAre(json, pickle));
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {json, kineto, pickle}), ElementsAre(kineto));
}

// Pickle and JSON of a rank were dumped one after the other: the calls are the same.
TEST(FlightRecorderTest, RealDumpsAreReadAlike) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<FlightDump> dumps;
    for (const char* suffix : {".json.gz", ".pickle"}) {
      const std::string path = absl::StrCat(*shared, "/traces/graph_nccl4/fr_", rank, suffix);
      ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
      ASSERT_OK_AND_ASSIGN(FlightDump dump, ParseFlightDump(file.bytes(), path));
      dumps.push_back(std::move(dump));
    }
    ASSERT_THAT(dumps[0].entries, SizeIs(28));
    ASSERT_THAT(dumps[1].entries, SizeIs(28));
    for (int i = 0; i < 28; ++i) {
      const FlightEntry &json = dumps[0].entries[i], &pickle = dumps[1].entries[i];
      EXPECT_EQ(json.name, pickle.name);
      EXPECT_EQ(json.number, pickle.number);
      EXPECT_EQ(json.in_bytes, pickle.in_bytes);
      EXPECT_EQ(json.start_ns, pickle.start_ns);
      EXPECT_EQ(json.ran_ns, pickle.ran_ns);
    }
    EXPECT_EQ(dumps[1].entries[0].where, "torch_graph.py:20");
    EXPECT_EQ(dumps[1].entries[27].in_bytes, 16 << 20);
    EXPECT_FALSE(dumps[0].is_overwritten);
  }
}

}  // namespace
}  // namespace meridian
