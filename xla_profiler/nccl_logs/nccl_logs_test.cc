#include "xla_profiler/nccl_logs/nccl_logs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kEpochUs = 1776150229000000;

// A line in the form of the plugin of NCCL 2.28 to 2.30. Times are in us; without them it is not
// verbose.
std::string Line(const std::string& communicator, int rank, int ranks, const std::string& kind,
                 int number, int64_t bytes, int64_t took, std::optional<int64_t> end,
                 std::optional<int> peer = std::nullopt) {
  const std::string prefix = peer.has_value() ? "p2p" : "coll";
  std::string perf =
      absl::StrCat("{\"", prefix, "\":\"", kind, "\",\"", prefix, "_sn\":", number,
                   peer.has_value() ? absl::StrCat(",\"p2p_peer\":", *peer) : "", ",\"", prefix,
                   "_msg_size_bytes\":", bytes, ",\"", prefix, "_exec_time_us\":", took, ",\"",
                   prefix, "_timing_source\":\"kernel_gpu\",\"", prefix, "_algobw_gbs\":10.18");
  if (end.has_value()) {
    absl::StrAppend(
        &perf, ",\"event_trace_ts\":{\"", prefix, "_start_ts\":", kEpochUs + *end - took - 20,
        ",\"kernel_events\":[{\"channel_id\":0,\"kernel_start_ts\":", kEpochUs + *end - took + 3,
        ",\"kernel_stop_ts\":", kEpochUs + *end + 2, ",\"kernel_record_ts\":", kEpochUs + *end + 1,
        "},{\"channel_id\":1,\"kernel_start_ts\":0,\"kernel_stop_ts\":0,"
        "\"kernel_record_ts\":0}]}");
  }
  return absl::StrCat("{\"header\":{\"id\":\"", communicator, "\",\"rank\":", rank,
                      ",\"n_ranks\":", ranks,
                      ",\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
                      "\"dump_timestamp_us\":",
                      kEpochUs + number, ",\"hostname\":\"node\\/a\",\"pid\":", 1000 + rank, "},\"",
                      prefix, "_perf\":", perf, "}}\n");
}

InspectorLog Parse(const std::string& text, const std::string& path = "a.log") {
  absl::StatusOr<InspectorLog> log = ParseInspectorLog(text, path);
  EXPECT_TRUE(log.ok()) << log.status();
  return log.ok() ? *std::move(log) : InspectorLog();
}

struct Converted {
  absl::Status status;
  std::vector<ProfileCollectives> profiles;
  std::vector<std::string> notes;
};

Converted Convert(const std::vector<InspectorLog>& logs, ConversionOptions times = {}) {
  Converted converted;
  converted.profiles.resize(logs.size());
  const absl::StatusOr<std::vector<std::string>> notes = InspectorToKineto(
      logs, times, [&](size_t log, const std::string& trace, absl::string_view) -> absl::Status {
        absl::StatusOr<TraceJsonTable> table = LoadTraceJson(trace, logs[log].path);
        if (!table.ok()) return table.status();
        converted.profiles[log] = ReadKinetoCollectives(*table, trace, logs[log].path);
        return absl::OkStatus();
      });
  converted.status = notes.status();
  if (notes.ok()) converted.notes = *notes;
  return converted;
}

std::vector<ProfileCollectives> CollectivesOf(const std::vector<InspectorLog>& logs,
                                              ConversionOptions times = {},
                                              std::vector<std::string>* notes = nullptr) {
  Converted converted = Convert(logs, times);
  EXPECT_OK(converted.status);
  if (notes != nullptr) *notes = converted.notes;
  return std::move(converted.profiles);
}

TEST(InspectorLogTest, ReadsWhatAnOperationWas) {
  const InspectorLog log = Parse(Line("0x7f", 2, 8, "AllReduce", 1407, 4194304, 412, 1000));
  EXPECT_EQ(log.pid, 1002);
  ASSERT_THAT(log.ops, SizeIs(1));
  const InspectorOp& op = log.ops[0];
  EXPECT_EQ(op.communicator, "0x7f");
  EXPECT_EQ(op.rank, 2);
  EXPECT_EQ(op.ranks, 8);
  EXPECT_EQ(op.name, "AllReduce");
  EXPECT_EQ(op.number, 1407);
  EXPECT_EQ(op.bytes, 4194304);
  EXPECT_EQ(op.took_us, 412);
  // The end was seen 1 us late, the start 3.
  EXPECT_EQ(op.ended_us, kEpochUs + 1001);
}

// A thread that was busy when the operation ended saw its start in time.
TEST(InspectorLogTest, TheEndIsTheEarlierOfTwo) {
  const InspectorLog log =
      Parse(absl::StrReplaceAll(Line("0x7f", 0, 2, "AllReduce", 0, 8, 100, 1000),
                                {{absl::StrCat("kernel_record_ts\":", kEpochUs + 1001),
                                  absl::StrCat("kernel_record_ts\":", kEpochUs + 5000)}}));
  EXPECT_EQ(log.ops[0].ended_us, kEpochUs + 1003);
}

// From version 4.3 on, one line says for many whose they are.
TEST(InspectorLogTest, LaterLinesInheritTheHeader) {
  const InspectorLog log = Parse(
      "{\"header\":{\"id\":\"0xe6\",\"comm_name\":\"unknown\",\"rank\":4,\"n_ranks\":8,"
      "\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":\"v4.3\","
      "\"dump_timestamp_us\":1776150229255059,\"hostname\":\"a\",\"pid\":438776},\"dump_stats\":{"
      "\"coll_records\":1,\"coll_dropped_total\":9,\"coll_dropped_since_last_dump\":7,"
      "\"p2p_records\":0,\"p2p_dropped_since_last_dump\":0}}\n"
      "{\"coll_perf\":{\"coll\":\"AllGather\",\"coll_algo\":\"RING\",\"coll_proto\":\"SIMPLE\","
      "\"coll_sn\":88,\"coll_msg_size_bytes\":8388608,\"coll_exec_time_us\":911.0}}\n");
  ASSERT_THAT(log.ops, SizeIs(1));
  EXPECT_EQ(log.ops[0].rank, 4);
  EXPECT_EQ(log.ops[0].protocol, "RING_SIMPLE");
  EXPECT_EQ(log.ops[0].took_us, 911);
  EXPECT_EQ(log.dropped, 7);
  EXPECT_EQ(log.unread_lines, 0);
}

// A marker that was cut off leaves records whose writer is not known.
TEST(InspectorLogTest, RecordsBehindABrokenLineInheritNothing) {
  const std::string marker =
      "{\"header\":{\"id\":\"0xe6\",\"rank\":0,\"n_ranks\":2},\"metadata\":{\"pid\":1},"
      "\"dump_stats\":{\"coll_records\":2}}\n";
  const auto record = [](int number) {
    return absl::StrCat("{\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":", number,
                        ",\"coll_msg_size_bytes\":8,\"coll_exec_time_us\":5}}\n");
  };
  EXPECT_THAT(Parse(absl::StrCat(marker, record(0), record(1))).ops, SizeIs(2));
  // One more than the marker counts.
  const InspectorLog many = Parse(absl::StrCat(marker, record(0), record(1), record(2)));
  EXPECT_THAT(many.ops, SizeIs(2));
  EXPECT_EQ(many.unread_lines, 1);
  const InspectorLog torn =
      Parse(absl::StrCat(marker, record(0), "{\"header\":{\"id\":\"0xf\n", record(1)));
  EXPECT_THAT(torn.ops, SizeIs(1));
  EXPECT_EQ(torn.unread_lines, 2);
}

TEST(InspectorLogTest, ARecordThatWasWrittenTwiceCountsOnce) {
  const std::string line = Line("0x7f", 0, 2, "AllReduce", 0, 77, 5, 100);
  EXPECT_THAT(Parse(absl::StrCat(line, line)).ops, SizeIs(1));
  EXPECT_FALSE(ParseInspectorLog(Line("0x7f", 0, 2, "AllReduce", -1, 77, 5, 100), "x").ok());
}

TEST(InspectorToKinetoTest, OperationsThatRepeatANumberAreNoted) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += Line("0x7f", 0, 1, "AllReduce", i % 10, 4096, 100, 1000 + 200 * i);
  }
  const InspectorLog log = Parse(text + Line("0x7f", 0, 1, "AllReduce", 0, 4096, 100, 1000));
  EXPECT_THAT(log.ops, SizeIs(10));
  EXPECT_EQ(log.repeated, 50);
  std::vector<std::string> notes;
  CollectivesOf({log}, {}, &notes);
  EXPECT_THAT(notes, Contains(HasSubstr("a.log: 50 operations have the number (coll_sn) of")));
}

TEST(InspectorToKinetoTest, KernelsThatStopBeforeTheyStartTellNoTime) {
  const std::string sound = Line("0x7f", 0, 1, "AllReduce", 0, 8, 100, 1000);
  std::string inverted = Line("0x7f", 0, 1, "AllReduce", 1, 8, 100, 2000);
  for (const int64_t end : {2001, 2002}) {
    inverted = absl::StrReplaceAll(inverted,
                                   {{absl::StrCat(kEpochUs + end), absl::StrCat(kEpochUs + 1500)}});
  }
  const InspectorLog log = Parse(sound + inverted);
  ASSERT_THAT(log.ops, SizeIs(2));
  EXPECT_EQ(log.ops[1].ended_us, std::nullopt);
  std::vector<std::string> notes;
  EXPECT_THAT(CollectivesOf({log}, {}, &notes)[0].events, SizeIs(1));
  EXPECT_THAT(notes, Contains(HasSubstr("1 operations have kernels that stop before they start")));
}

TEST(InspectorLogTest, BytesOfUnsignedBytesAreWrittenNegative) {
  const std::string line = Line("0x7f", 0, 2, "AllReduce", 0, 77, 5, 100);
  const InspectorLog log =
      Parse(absl::StrReplaceAll(line, {{"size_bytes\":77", "size_bytes\":18446744073709550592"}}));
  EXPECT_EQ(log.ops[0].bytes, 1024);
}

TEST(InspectorLogTest, TornLinesAreCounted) {
  const std::string line = Line("0x7f", 0, 2, "AllReduce", 0, 77, 5, 100);
  const InspectorLog log = Parse(absl::StrCat(line, line.substr(0, line.size() / 2)));
  EXPECT_THAT(log.ops, SizeIs(1));
  EXPECT_EQ(log.unread_lines, 1);
  EXPECT_THAT(ParseInspectorLog(line.substr(0, 90), "torn.log").status().message(),
              HasSubstr("torn.log: holds no operation"));
  // Ranks that a communicator cannot have.
  for (const auto& [rank, ranks] : {std::pair<int, int>{2, 2}, {-1, 2}, {0, 2000000000}}) {
    EXPECT_FALSE(ParseInspectorLog(Line("0x7f", rank, ranks, "AllReduce", 0, 1, 5, 1), "x").ok());
  }
}

// Ranks 0 to 3 in the communicator of all; {1,3} are 0 and 1 in one of their own.
TEST(InspectorToKinetoTest, RanksAreThoseOfTheLargestCommunicator) {
  std::vector<InspectorLog> logs;
  for (int rank = 0; rank < 4; ++rank) {
    std::string text = Line("0xaa", rank, 4, "AllReduce", 0, 64, 10, 1000);
    if (rank % 2 == 1) {
      absl::StrAppend(&text, Line("0xbb", rank / 2, 2, "AllGather", 5, 100, 10, 2000));
    }
    logs.push_back(Parse(text, absl::StrCat(rank, ".log")));
  }
  const std::vector<ProfileCollectives> profiles = CollectivesOf(logs);
  ASSERT_THAT(profiles, SizeIs(4));
  const ProfileCollectives& last = profiles[3];
  EXPECT_EQ(last.devices[0].global_id, 3);
  ASSERT_THAT(last.events, SizeIs(2));
  EXPECT_EQ(last.base_ns + last.events[0].end_ps / 1000, (kEpochUs + 1001) * 1000);
  const CollectiveOp& gather = last.ops[last.events[1].op];
  EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather.operand_bytes, 100);
  EXPECT_EQ(gather.output_bytes, 200);
  EXPECT_THAT(gather.groups.ids(), ElementsAre(1, 3));
  // The same execution on both of its ranks, another one than the all-reduce.
  EXPECT_EQ(last.events[1].run_id, profiles[1].events[1].run_id);
  EXPECT_NE(last.events[1].run_id, last.events[0].run_id);
  EXPECT_TRUE(last.unresolved.entries().empty());
}

// Numbers count each kind for itself.
TEST(InspectorToKinetoTest, NumbersOfKindsAreDifferentExecutions) {
  const std::vector<ProfileCollectives> profiles =
      CollectivesOf({Parse(absl::StrCat(Line("0xaa", 0, 2, "AllReduce", 3, 64, 10, 1000),
                                        Line("0xaa", 0, 2, "ReduceScatter", 3, 64, 10, 2000)))});
  ASSERT_THAT(profiles[0].events, SizeIs(2));
  EXPECT_NE(profiles[0].events[0].run_id, profiles[0].events[1].run_id);
  EXPECT_EQ(profiles[0].ops[profiles[0].events[1].op].operand_bytes, 128);
}

TEST(InspectorToKinetoTest, MessagesNameBothEnds) {
  std::vector<InspectorLog> logs;
  logs.push_back(Parse(Line("0xaa", 0, 2, "Send", 17, 4096, 10, 1000, 1), "0.log"));
  logs.push_back(Parse(Line("0xaa", 1, 2, "Recv", 3, 4096, 10, 1000, 0), "1.log"));
  const std::vector<ProfileCollectives> profiles = CollectivesOf(logs);
  for (const ProfileCollectives& profile : profiles) {
    ASSERT_THAT(profile.events, SizeIs(1));
    ASSERT_THAT(profile.ops[0].pairs, SizeIs(1));
    EXPECT_EQ(profile.ops[0].pairs[0].source, 0);
    EXPECT_EQ(profile.ops[0].pairs[0].target, 1);
  }
}

TEST(InspectorToKinetoTest, LogsWithoutTimesSayHowToGetThem) {
  const InspectorLog log = Parse(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, std::nullopt), "q.log");
  EXPECT_THAT(Convert({log}).status.message(),
              HasSubstr("q.log: says how long operations took, not when; record with "
                        "NCCL_INSPECTOR_DUMP_VERBOSE=1"));
}

TEST(InspectorToKinetoTest, LogsWithImpossibleTimesAloneSaySo) {
  const InspectorLog log =
      Parse(absl::StrReplaceAll(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, 1000),
                                {{absl::StrCat("kernel_record_ts\":", kEpochUs + 1001),
                                  absl::StrCat("kernel_record_ts\":", kEpochUs)}}),
            "q.log");
  EXPECT_THAT(Convert({log}).status.message(),
              HasSubstr("q.log: kernels of 1 operation(s) stop before they start, and of no "
                        "operation is it known when it ran"));
}

// Rank 1 is the last to come: it takes the 10 us that the transfer takes.
TEST(InspectorToKinetoTest, DurationsAloneFollowEachOther) {
  std::vector<InspectorLog> logs;
  for (int rank = 0; rank < 2; ++rank) {
    std::string text;
    for (int number = 0; number < 3; ++number) {
      absl::StrAppend(
          &text, Line("0xaa", rank, 2, "AllReduce", number, 64, rank == 0 ? 50 : 10, std::nullopt));
    }
    logs.push_back(Parse(text, absl::StrCat(rank, ".log")));
  }
  const std::vector<ProfileCollectives> profiles =
      CollectivesOf(logs, ConversionOptions{/*durations_suffice=*/true});
  ASSERT_THAT(profiles[0].events, SizeIs(3));
  ASSERT_THAT(profiles[1].events, SizeIs(3));
  int64_t last_end_ps = 0;
  for (size_t i = 0; i < 3; ++i) {
    const CollectiveEvent &early = profiles[0].events[i], &late = profiles[1].events[i];
    EXPECT_EQ(early.run_id, late.run_id);
    EXPECT_EQ(early.ran_ps, 50'000'000);
    EXPECT_EQ(late.ran_ps, 10'000'000);
    EXPECT_GE(early.start_ps, last_end_ps);
    last_end_ps = early.end_ps;
  }
}

TEST(InspectorToKinetoTest, RunsAreToldByTheirCommunicators) {
  std::vector<InspectorLog> logs;
  for (const char* communicator : {"0xaa", "0xbb"}) {
    for (int rank = 0; rank < 2; ++rank) {
      logs.push_back(Parse(Line(communicator, rank, 2, "AllReduce", 0, 64, 10, 1000)));
    }
  }
  const std::vector<ProfileCollectives> profiles = CollectivesOf(logs);
  EXPECT_EQ(profiles[1].devices[0].global_id, 1);
  EXPECT_EQ(profiles[2].devices[0].global_id, 0);
  EXPECT_EQ(profiles[3].devices[0].global_id, 1);
}

// Two communicators of two, in a chain: none has all three.
TEST(InspectorToKinetoTest, WithoutACommunicatorOfAllRanksArePositions) {
  std::vector<InspectorLog> logs;
  logs.push_back(Parse(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, 1000), "0.log"));
  logs.push_back(Parse(absl::StrCat(Line("0xaa", 1, 2, "AllReduce", 0, 64, 10, 1000),
                                    Line("0xbb", 0, 2, "AllReduce", 0, 64, 10, 2000)),
                       "1.log"));
  logs.push_back(Parse(Line("0xbb", 1, 2, "AllReduce", 0, 64, 10, 2000), "2.log"));
  std::vector<std::string> notes;
  const std::vector<ProfileCollectives> profiles = CollectivesOf(logs, {}, &notes);
  EXPECT_THAT(profiles[2].ops[0].groups.ids(), ElementsAre(1, 2));
  EXPECT_THAT(notes, SizeIs(3));
}

// Rank 1's log has lost what all did together: it is the rank that is left.
TEST(InspectorToKinetoTest, ALogWithoutTheLargestCommunicatorIsTheRankThatIsLeft) {
  std::vector<InspectorLog> logs;
  for (int rank : {0, 2}) {
    logs.push_back(Parse(Line("0xaa", rank, 3, "AllReduce", 0, 64, 10, 1000)));
  }
  logs[0].ops.push_back(Parse(Line("0xbb", 0, 2, "AllReduce", 0, 64, 10, 2000)).ops[0]);
  logs.push_back(Parse(Line("0xbb", 1, 2, "AllReduce", 0, 64, 10, 2000), "lost.log"));
  std::vector<std::string> notes;
  const std::vector<ProfileCollectives> profiles = CollectivesOf(logs, {}, &notes);
  EXPECT_EQ(profiles[2].devices[0].global_id, 1);
  EXPECT_THAT(profiles[2].ops[0].groups.ids(), ElementsAre(0, 1));
  EXPECT_THAT(profiles[0].ops[0].groups.ids(), ElementsAre(0, 1, 2));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("lost.log: has no operation of all ranks")));
}

TEST(InspectorToKinetoTest, LogsThatContradictEachOtherAreRefused) {
  const InspectorLog two = Parse(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, 1000), "a");
  const InspectorLog three = Parse(Line("0xaa", 1, 3, "AllReduce", 0, 64, 10, 1000), "b");
  EXPECT_THAT(Convert({two, three}).status.message(), HasSubstr("has 3 ranks here and 2 before"));
  EXPECT_THAT(Convert({two, two}).status.message(), HasSubstr("a and a are both of rank 0"));
}

// What no buffer holds is no operation; a communicator of 65,536 ranks is listed once.
TEST(InspectorToKinetoTest, LargeNumbersAreBounded) {
  std::string text = Line("0xaa", 0, 65536, "AllGather", 0, int64_t{1} << 53, 10, 1000);
  std::vector<std::string> notes;
  for (int number = 1; number < 100; ++number) {
    absl::StrAppend(&text, Line("0xaa", 0, 65536, "AllReduce", number, 8, 10, 1000 + number));
  }
  absl::StrAppend(&text, Line("0xaa", 0, 65536, "AllGather", 100, int64_t{1} << 60, 10, 3000));
  const std::vector<ProfileCollectives> profiles = CollectivesOf({Parse(text)}, {}, &notes);
  EXPECT_THAT(profiles[0].events, SizeIs(99));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("2 operations of kind 'AllGather'")));
  EXPECT_FALSE(ParseInspectorLog(Line("0xaa", 0, 65537, "AllReduce", 0, 8, 10, 1000), "many").ok());
}

TEST(InspectorToKinetoTest, SeveralGpusOfOneProcessAreRefused) {
  const InspectorLog log = Parse(absl::StrCat(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, 1000),
                                              Line("0xaa", 1, 2, "AllReduce", 0, 64, 10, 1000)));
  EXPECT_THAT(Convert({log}).status.message(), HasSubstr("one process has the ranks 0 and 1"));
}

TEST(InspectorToKinetoTest, UnknownKindsAndDropsAreNoted) {
  std::string text = absl::StrCat(Line("0xaa", 0, 2, "AllReduce", 0, 64, 10, 1000),
                                  Line("0xaa", 0, 2, "All2All", 0, 64, 10, 3000), "{\"torn");
  std::vector<std::string> notes;
  CollectivesOf({Parse(text)}, {}, &notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("1 lines that are no whole records"),
                                 HasSubstr("1 operations of kind 'All2All' were left out")));
}

}  // namespace
}  // namespace meridian
