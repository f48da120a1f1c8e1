#include "xla_profiler/table_traces/table_traces.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct ConvertedTable {
  absl::Status status;
  std::vector<std::string> notes;
  // By part: the trace.
  std::map<std::string, std::string> traces;
};

ConvertedTable Convert(const std::vector<std::string>& files) {
  ConvertedTable converted;
  const absl::StatusOr<std::vector<std::string>> notes = TableSource().Convert(
      files.size(),
      [&](size_t file) {
        return absl::StatusOr<InputFile>(
            InputFile::OfBytes(files[file], absl::StrCat("t", file, ".csv")));
      },
      {},
      [&](size_t file, const std::string& trace, absl::string_view part) {
        converted.traces[part.empty() ? absl::StrCat("file ", file) : std::string(part)] = trace;
        return absl::OkStatus();
      });
  converted.status = notes.status();
  if (notes.ok()) converted.notes = *notes;
  return converted;
}

// Returns "stream name start..end" of a trace's device work, in us of the table's times, which do not
// count from 1970; in order of the starts.
std::vector<std::string> WorkOf(const std::string& trace) {
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(trace, "t");
  EXPECT_OK(loaded.status());
  const EventTable& table = loaded->table;
  std::multimap<int64_t, std::string> work;
  const auto us = [&](int64_t ps) {
    return (table.base_ns() - 1'000'000'000'000'000'000 + ps / 1000) / 1000;
  };
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kKernel) continue;
    work.insert({table.start_ps(row),
                 absl::StrCat(table.track(table.track_id(row)).thread, " ", table.name(row), " ",
                              us(table.start_ps(row)), "..", us(table.end_ps(row)))});
  }
  std::vector<std::string> lines;
  for (auto& [start_ps, line] : work) lines.push_back(std::move(line));
  return lines;
}

ProfileCollectives CollectivesOf(const std::string& trace) {
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(trace, "t");
  EXPECT_OK(loaded.status());
  return ReadKinetoCollectives(*loaded, trace, "t");
}

std::string ErrorOf(const std::string& row) {
  const absl::Status status =
      Convert({absl::StrCat("rank,kind,start_ns,end_ns,group,peer,bytes,seq\n0,compute,1,2,,,,\n",
                            row, "\n")})
          .status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

constexpr char kTwoRanks[] =
    "rank,stream,name,kind,group,peer,seq,start_ns,end_ns,step,bytes\n"
    "0,compute,forward,compute,,,0,1794701451000000000,1794701451000600000,7,\n"
    "0,net,sum,all-reduce,0 1,,0,1794701451000600000,1794701451000900000,7,4096\n"
    "1,compute,forward,compute,,,0,1794701451000000000,1794701451000500000,7,\n"
    "1,net,sum,all-reduce,0 1,,0,1794701451000500000,1794701451000900000,7,\n"
    "1,net,x,send,,0,0,1794701451001000000,1794701451001200000,7,64\n"
    "0,net,y,recv,,1,0,1794701451001000000,1794701451001200000,7,\n";

TEST(TableTracesTest, EachRankIsATrace) {
  const ConvertedTable converted = Convert({kTwoRanks});
  ASSERT_OK(converted.status);
  EXPECT_THAT(converted.notes, ElementsAre(HasSubstr("does not tell what work waited for")));
  ASSERT_THAT(converted.traces, SizeIs(2));
  for (int64_t rank : {0, 1}) {
    const ProfileCollectives profile =
        CollectivesOf(converted.traces.at(absl::StrCat("rank ", rank)));
    EXPECT_EQ(profile.devices[0].global_id, rank);
    EXPECT_EQ(profile.stated_ranks, 2);
    EXPECT_THAT(profile.unresolved.entries(), IsEmpty());
    ASSERT_THAT(profile.events, SizeIs(2));
    const CollectiveEvent& reduce = profile.events[0];
    EXPECT_EQ(reduce.step, 7);
    const CollectiveOp& op = profile.ops[reduce.op];
    EXPECT_EQ(op.kind, CollectiveKind::kAllReduce);
    // Rank 1 has it of rank 0.
    EXPECT_EQ(op.operand_bytes, 4096);
    EXPECT_EQ(profile.base_ns + reduce.end_ps / 1000, 1794701451000900000);
    const CollectiveOp& message = profile.ops[profile.events[1].op];
    EXPECT_EQ(message.kind, rank == 1 ? CollectiveKind::kSend : CollectiveKind::kRecv);
    EXPECT_EQ(message.instruction, "transfer 1->0 Byte 64");
  }
}

TEST(TableTracesTest, JsonLinesSayTheSame) {
  std::string json;
  const std::vector<std::string> keys = {"rank", "stream",   "name",   "kind", "group", "peer",
                                         "seq",  "start_ns", "end_ns", "step", "bytes"};
  const std::string csv = kTwoRanks;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(csv).substr(csv.find('\n') + 1), '\n', absl::SkipEmpty())) {
    std::string members;
    size_t i = 0;
    for (absl::string_view field : absl::StrSplit(line, ',')) {
      const std::string key = keys[i++];
      const bool is_text = key == "stream" || key == "name" || key == "kind";
      const std::string value = field.empty()    ? "null"
                                : key == "group" ? "[0, 1]"
                                : is_text        ? absl::StrCat("\"", field, "\"")
                                                 : std::string(field);
      absl::StrAppend(&members, members.empty() ? "{\"" : ", \"", key, "\": ", value);
    }
    absl::StrAppend(&json, members, "}\n");
  }
  EXPECT_TRUE(TableSource().Detect(FileHead(json)));
  EXPECT_EQ(Convert({json}).traces, Convert({csv}).traces);
}

TEST(TableTracesTest, FourColumnsSuffice) {
  const ConvertedTable converted =
      Convert({"kind,rank,start_ns,end_ns\nall_reduce,0,100,200\nAll-Reduce,1,100,200\nsend,1,300,"
               "400\nhost,0,1,90\n"});
  ASSERT_OK(converted.status);
  EXPECT_THAT(converted.notes,
              ElementsAre(HasSubstr("does not tell what work waited for"),
                          HasSubstr("3 collectives and messages have no seq"),
                          HasSubstr("do not count from 1970: its first, 1, is shown as 2001")));
  const ProfileCollectives profile = CollectivesOf(converted.traces.at("rank 1"));
  ASSERT_THAT(profile.events, SizeIs(2));
  EXPECT_EQ(profile.ops[profile.events[0].op].groups.ids().size(), 2);
  // That the bytes are not known, and the peer of the message is not.
  EXPECT_THAT(profile.unresolved.entries(), SizeIs(2));
}

// Rank 1 computes until 0.9 ms, rank 0 until 0.5 ms; the table has the all-reduce when data move.
TEST(TableTracesTest, WhoWaitedForOthersWaitedInTheCollective) {
  const std::string table =
      "rank,kind,start_ns,end_ns,stream\n0,compute,0,500000,a\n1,compute,0,900000,a\n0,all-reduce,"
      "910000,950000,b\n1,all-reduce,910020,950000,b\n";
  const ConvertedTable converted = Convert({table});
  ASSERT_OK(converted.status);
  EXPECT_THAT(WorkOf(converted.traces.at("rank 0")),
              ElementsAre("2 compute 0..500", "3 ncclDevKernel_AllReduce(all-reduce) 510..950"));
  EXPECT_THAT(WorkOf(converted.traces.at("rank 1")),
              ElementsAre("2 compute 0..900", "3 ncclDevKernel_AllReduce(all-reduce) 910..950"));
  // A table in which rank 1 is seen to wait says that rank 0 came late.
  const ConvertedTable blocking =
      Convert({absl::StrReplaceAll(table, {{"910000", "940000"}, {"910020", "900020"}})});
  EXPECT_THAT(WorkOf(blocking.traces.at("rank 0"))[1], HasSubstr("940..950"));
}

// Rank 1 lacks one of three: which it is nobody knows, unless they are numbered.
TEST(TableTracesTest, RanksThatHaveNotAsManyAreNotMatchedByOrder) {
  const std::string table =
      "rank,kind,start_ns,end_ns,seq\n0,all-reduce,1000,2000,0\n0,all-reduce,5000,6000,1\n0,"
      "all-reduce,9000,9500,2\n1,all-reduce,5000,6000,1\n1,all-reduce,9000,9500,2\n";
  const auto numbers = [](const ConvertedTable& converted) {
    return converted.traces.at("rank 1").find("Comms Id") != std::string::npos;
  };
  EXPECT_TRUE(numbers(Convert({table})));
  const ConvertedTable converted = Convert({absl::StrReplaceAll(
      table, {{",seq\n", "\n"}, {",0\n", "\n"}, {",1\n", "\n"}, {",2\n", "\n"}})});
  ASSERT_OK(converted.status);
  EXPECT_FALSE(numbers(converted));
}

// Rank 1 gets them in the other order; of two with one number, order tells.
TEST(TableTracesTest, MessagesAreMatchedByTheirNumbers) {
  const auto run_ids = [](const std::string& rows) {
    std::vector<std::optional<int64_t>> ids;
    const ConvertedTable converted =
        Convert({absl::StrCat("rank,kind,start_ns,end_ns,peer,seq,bytes\n", rows)});
    EXPECT_OK(converted.status);
    for (const auto& [part, trace] : converted.traces) {
      for (const CollectiveEvent& event : CollectivesOf(trace).events) ids.push_back(event.run_id);
    }
    return ids;
  };
  const auto ids = run_ids(
      "0,send,1000,2000,1,7,64\n0,send,5000,6000,1,8,\n1,recv,1000,2000,0,8,\n1,recv,5000,6000,0,7,"
      "\n");
  ASSERT_THAT(ids, SizeIs(4));
  EXPECT_EQ(ids[0], ids[3]);
  EXPECT_EQ(ids[1], ids[2]);
  EXPECT_NE(ids[0], ids[1]);
  const auto twice =
      run_ids("0,send,1,2,1,7,\n0,send,5,6,1,7,\n1,recv,1,2,0,7,\n1,recv,5,6,0,7,\n");
  EXPECT_EQ(twice[0], twice[2]);
  EXPECT_NE(twice[0], twice[1]);
  // One of them is lacking: none is taken for another.
  const auto lacking = run_ids("0,send,1,2,1,,\n0,send,5,6,1,,\n1,recv,5,6,0,,\n");
  EXPECT_NE(lacking[0], lacking[2]);
  EXPECT_NE(lacking[1], lacking[2]);
}

TEST(TableTracesTest, AllRanksAreThoseOfTheTable) {
  const ConvertedTable converted =
      Convert({"rank,kind,start_ns,end_ns\n0,all-reduce,100,200\n5,all-reduce,100,200\n"});
  ASSERT_OK(converted.status);
  EXPECT_THAT(converted.notes, Contains(HasSubstr("names 2 ranks, the highest of them 5: these are "
                                                  "taken for all of the job, and counted without "
                                                  "gaps, 5 as rank 1")));
  const ProfileCollectives profile = CollectivesOf(converted.traces.at("rank 5"));
  EXPECT_EQ(profile.stated_ranks, std::nullopt);
  EXPECT_THAT(profile.ops[0].groups.ids(), ElementsAre(0, 5));
}

// Between the end of the work before, 500, and the launch of the work after.
TEST(TableTracesTest, TheHostsWorkFillsThePauses) {
  const ConvertedTable converted = Convert(
      {"rank,kind,start_ns,end_ns,name\n0,compute,0,500,a\n0,host,500,90000,load\n0,compute,"
       "90000,95000,b\n"});
  ASSERT_OK(converted.status);
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(converted.traces.at("file 0"), "t");
  ASSERT_OK(loaded.status());
  const EventTable& table = loaded->table;
  std::map<std::string, std::pair<int64_t, int64_t>> last;
  for (EventRow row = 0; row < table.size(); ++row) {
    auto& span = last[std::string(table.name(row))];
    if (table.name(row) == "cudaDeviceSynchronize" && span.second > 0) continue;
    span = {table.start_ps(row), table.end_ps(row)};
  }
  EXPECT_GE(last["load"].first, last["cudaDeviceSynchronize"].second);
  EXPECT_LT(last["load"].second, last["cudaLaunchKernel"].first);
}

// Steps without a pause between them; the ranks put in different amounts.
TEST(TableTracesTest, NothingBeginsBeforeItIsLaunched) {
  const ConvertedTable converted = Convert(
      {"rank,kind,start_ns,end_ns,step,bytes\n0,compute,1000,2000,0,\n0,all-to-all,2000,3000,0,64\n"
       "0,compute,3000,4000,1,\n0,all-to-all,4000,5000,1,64\n1,compute,1000,2000,0,\n"
       "1,all-to-all,2000,3000,0,96\n1,compute,3000,4000,1,\n1,all-to-all,4000,5000,1,64\n"});
  ASSERT_OK(converted.status);
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(converted.traces.at("rank 0"), "t");
  ASSERT_OK(loaded.status());
  const EventTable& table = loaded->table;
  std::map<uint64_t, int64_t> launched_ps;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) == EventCategory::kRuntimeApi && table.correlation(row)) {
      launched_ps[*table.correlation(row)] = table.start_ps(row);
    }
  }
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kKernel) continue;
    EXPECT_LE(launched_ps.at(*table.correlation(row)), table.start_ps(row)) << table.name(row);
  }
  const ProfileCollectives profile = CollectivesOf(converted.traces.at("rank 0"));
  ASSERT_THAT(profile.events, SizeIs(2));
  EXPECT_EQ(profile.ops[profile.events[0].op].operand_bytes, 96);
}

TEST(TableTracesTest, WorkThatBeginsALittleEarlyBeginsWithTheEnd) {
  const ConvertedTable converted =
      Convert({"rank,kind,start_ns,end_ns,stream\n0,compute,0,500000,a\n0,compute,490000,900000,"
               "b\n0,compute,910000,915000,a\n0,compute,912000,917000,b\n"});
  ASSERT_OK(converted.status);
  // The second pair may well have run at once.
  EXPECT_THAT(WorkOf(converted.traces.at("file 0")),
              ElementsAre("2 compute 0..500", "3 compute 500..900", "2 compute 910..915",
                          "3 compute 912..917"));
}

TEST(TableTracesTest, MessagesOfOneMomentAreOneExchange) {
  const ConvertedTable converted = Convert(
      {"rank,kind,start_ns,end_ns,peer,step\n0,send,1000,9000,1,3\n0,recv,1000,9000,1,3\n1,send,"
       "1000,9000,0,3\n1,recv,1000,9000,0,3\n0,send,9100,9200,1,3\n1,recv,9100,9200,0,3\n"});
  ASSERT_OK(converted.status);
  // Of different streams: send and recv.
  const std::string& apart = converted.traces.at("rank 0");
  EXPECT_THAT(WorkOf(apart), SizeIs(3));
  const ConvertedTable together =
      Convert({"rank,kind,start_ns,end_ns,peer,step,stream\n0,send,1000,9000,1,3,s\n0,recv,1000,"
               "9000,1,3,s\n1,send,1000,9000,0,3,s\n1,recv,1000,9000,0,3,s\n0,send,9100,9200,1,3,"
               "s\n1,recv,9100,9200,0,3,s\n"});
  ASSERT_OK(together.status);
  EXPECT_THAT(WorkOf(together.traces.at("rank 0")), SizeIs(2));
  for (const std::string* trace : {&apart, &together.traces.at("rank 0")}) {
    const ProfileCollectives profile = CollectivesOf(*trace);
    EXPECT_THAT(profile.events, SizeIs(3));
    for (const CollectiveEvent& event : profile.events) EXPECT_EQ(event.step, 3);
  }
}

TEST(TableTracesTest, WhatIsWrongIsNamedByLineAndColumn) {
  EXPECT_EQ(ErrorOf("0,compute,9,5,,,,"),
            "t0.csv:3: end_ns: '5'; expected no less than start_ns, 9");
  EXPECT_THAT(ErrorOf("-1,compute,1,2,,,,"),
              HasSubstr("t0.csv:3: rank: '-1'; expected a whole number from 0 to 16383"));
  EXPECT_THAT(ErrorOf("1000000,compute,1,2,,,,"), HasSubstr("rank: '1000000'"));
  EXPECT_THAT(ErrorOf("0,compute,1.5,2,,,,"), HasSubstr("start_ns: '1.5'"));
  EXPECT_THAT(ErrorOf("0,compute,1,99999999999999999999,,,,"), HasSubstr("end_ns"));
  EXPECT_THAT(ErrorOf("0,,1,2,,,,"), HasSubstr("kind: ''; expected compute, host"));
  EXPECT_THAT(ErrorOf("0,sum,1,2,,,,"), HasSubstr("kind: 'sum'; expected compute, host"));
  EXPECT_THAT(ErrorOf("0,compute,,2,,,,"),
              HasSubstr("t0.csv:3: start_ns: ''; expected a whole number"));
  for (const absl::string_view group : {"0 0", "1 2", "0 x", "0 16384", "0 -1"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("0,all-reduce,1,2,", group, ",,,")),
                HasSubstr(absl::StrCat("t0.csv:3: group: '", group,
                                       "'; expected different ranks up to 16383 with the row's "
                                       "own, 0")));
  }
  EXPECT_THAT(ErrorOf("0,send,1,2,,0,,"), HasSubstr("peer: '0'; expected another rank"));
  EXPECT_THAT(ErrorOf("0,send,1,2,,x,,"), HasSubstr("peer: 'x'"));
  EXPECT_THAT(ErrorOf("0,all-reduce,1,2,,,-4,"), HasSubstr("bytes: '-4'"));
  EXPECT_THAT(ErrorOf("0,compute,1,2"),
              HasSubstr("t0.csv:3: the row: '0,compute,1,2'; expected 8 fields"));
  EXPECT_THAT(ErrorOf(absl::StrCat("0,", std::string(kMaxTableFieldBytes + 1, 'k'), ",1,2,,,,")),
              HasSubstr("expected at most 131072 bytes"));
  EXPECT_THAT(ErrorOf("0,compute,1,9000000000000000,,,,"),
              HasSubstr("t0.csv:3: end_ns: '9000000000000000'; expected times of one run"));
  EXPECT_THAT(Convert({"rank,start_ns,end_ns\n0,1,2\n"}).status.message(),
              HasSubstr("t0.csv:2: kind: ''; expected compute"));
  EXPECT_THAT(Convert({"rank,kind,start_ns,end_ns\n"}).status.message(), HasSubstr("has no rows"));
  EXPECT_THAT(Convert({"{\"rank\": 0, \"kind\": \"host\", \"start_ns\": 1, \"end_ns\": 0}\n"})
                  .status.message(),
              HasSubstr("t0.csv:1: end_ns"));
  EXPECT_THAT(Convert({"rank,kind,kind,start_ns,end_ns\n0,compute,host,1,2\n"}).status.message(),
              HasSubstr("t0.csv:1: has several columns kind; keep one"));
  EXPECT_THAT(
      Convert({R"({"rank":0,"rank":1,"kind":"host","start_ns":1,"end_ns":2})"}).status.message(),
      HasSubstr("t0.csv:1: has several columns rank; keep one"));
  const std::string object = R"({"rank": 0, "kind": "host", "start_ns": 1, "end_ns": 2})";
  EXPECT_OK(Convert({object}).status);
  for (const absl::string_view damage : {"x", ",", "{}"}) {
    EXPECT_THAT(Convert({absl::StrCat(object, "\n", object, damage)}).status.message(),
                HasSubstr("t0.csv:2: the row: '{"));
  }
}

TEST(TableTracesTest, SpreadsheetsMayWriteIt) {
  const ConvertedTable converted = Convert(
      {"\xef\xbb\xbf\"rank\", kind "
       ",start_ns,end_ns,peer,\"note\"\r\n0.0,\"send\",1.0,2.0,1.0,\"a, \"\"b\"\"\"\r\n\r\n"});
  ASSERT_OK(converted.status);
  EXPECT_THAT(converted.notes, Contains("t0.csv: columns that are not known are left out: note"));
  EXPECT_EQ(CollectivesOf(converted.traces.at("file 0")).ops[0].pairs[0].target, 1);
}

TEST(TableTracesTest, FieldsMayBePartedBySemicolonsAndTabs) {
  for (const char* delimiter : {";", "\t"}) {
    const std::string table = absl::StrReplaceAll(kTwoRanks, {{",", delimiter}});
    EXPECT_TRUE(TableSource().Detect(FileHead(table)));
    EXPECT_EQ(Convert({table}).traces, Convert({kTwoRanks}).traces);
  }
}

TEST(TableTracesTest, IsKnownByItsColumns) {
  const TableSource source;
  EXPECT_TRUE(source.Detect(FileHead(kTwoRanks)));
  EXPECT_TRUE(source.Detect(FileHead("end_ns,start_ns,rank\n")));
  EXPECT_FALSE(source.Detect(FileHead("rank,start_us,end_us,kind\n")));
  EXPECT_FALSE(source.Detect(FileHead("")));
  EXPECT_FALSE(source.Detect(FileHead("{\"rank\": 0, \"kind\": \"host\"}")));
}

TEST(TableTracesTest, AFileOpensAsSeveralTraces) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("run.csv.gz", GzipText(kTwoRanks));
  ASSERT_OK_AND_ASSIGN(const TraceFiles files, TraceFiles::Create(FileSystem::Posix(), {path}));
  EXPECT_THAT(files.paths(), ElementsAre(path + " (rank 0)", path + " (rank 1)"));
  EXPECT_EQ(files.FileOf(1), path);
  EXPECT_EQ(files.PartOf(1), "rank 1");
  ASSERT_OK_AND_ASSIGN(const InputFile second, files.Open(1));
  EXPECT_EQ(second.path(), path + " (rank 1)");
  EXPECT_THAT(std::string(second.bytes()), HasSubstr("\"rank\":1,"));
}

TEST(TableTracesTest, RanksMayBeInFilesOfTheirOwn) {
  const std::vector<std::string> lines = absl::StrSplit(kTwoRanks, '\n');
  std::vector<std::string> files(2, lines[0]);
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    absl::StrAppend(&files[lines[i][0] == '1'], "\n", lines[i]);
  }
  const ConvertedTable apart = Convert(files), together = Convert({kTwoRanks});
  ASSERT_OK(apart.status);
  EXPECT_EQ(apart.traces.at("file 0"), together.traces.at("rank 0"));
  EXPECT_EQ(apart.traces.at("file 1"), together.traces.at("rank 1"));
}

TEST(TableTracesTest, DamagedTablesAreRefusedOrRead) {
  std::mt19937_64 random(7);
  const std::string table = kTwoRanks;
  for (size_t cut = 0; cut < table.size(); ++cut) {
    const ConvertedTable converted = Convert({table.substr(0, cut)});
    EXPECT_EQ(converted.status.ok(), !converted.traces.empty()) << cut;
    const bool is_whole = cut > table.find('\n') + 1 && table[cut - 1] == '\n';
    EXPECT_TRUE(converted.status.ok() || !is_whole) << cut;
    if (converted.status.ok()) continue;
    EXPECT_THAT(std::string(converted.status.message()), StartsWith("t0.csv:")) << cut;
  }
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const ConvertedTable converted = Convert({Damage(table, random)});
    refused += !converted.status.ok();
    for (const auto& [part, trace] : converted.traces) CollectivesOf(trace);
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 2000);
}

TEST(TableTracesTest, ReadsAPublishedRun) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const TraceFiles files,
                       TraceFiles::Create(FileSystem::Posix(),
                                          {*shared + "/traces/public/stage_partition8.csv.gz"}));
  ASSERT_EQ(files.size(), 8);
  size_t events = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const InputFile file, files.Open(i));
    events += CollectivesOf(std::string(file.bytes())).events.size();
  }
  // 40 collectives of two ranks each, and both ends of 192 messages.
  EXPECT_EQ(events, 2 * 40 + 2 * 192);
}

}  // namespace
}  // namespace meridian
