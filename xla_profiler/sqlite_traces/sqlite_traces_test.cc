#include "xla_profiler/sqlite_traces/sqlite_traces.h"

#include <sqlite3.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sqlite_traces/sqlite_file.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/opened_traces.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSessionNs = 1794701451000000000;

// Returns the database that the statements make.
std::string Database(const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &database), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string result(reinterpret_cast<char*>(bytes), size);
  sqlite3_free(bytes);
  sqlite3_close(database);
  return result;
}

// The number of a thread, as nsys packs it; 0 is the process.
int64_t Global(int64_t pid, int64_t tid) { return int64_t{1} << 56 | pid << 24 | tid; }

std::string Hex(uint64_t number, int bytes) {
  std::string hex;
  for (int i = 0; i < bytes; ++i) {
    absl::StrAppend(&hex, absl::Hex(number >> 8 * i & 0xff, absl::kZeroPad2));
  }
  return hex;
}

// A payload with its header: domain, schema, size, where it begins.
std::string Payload(int64_t schema, const std::string& hex) {
  return absl::StrCat("x'", Hex(1, 8), Hex(schema, 8), Hex(hex.size() / 2, 8), Hex(32, 8), hex,
                      "'");
}

// The tables of the versions of 2024 and later that are read, with all their columns in the first.
constexpr char kNsysTables[] = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL,
  name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER,
  graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL,
  graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
  doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData TEXT);
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL,
  idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT,
  arrayOrUnionDetail INTEGER, offset INTEGER);
INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset) VALUES
  (1, 16777216, 0, 18, 'NCCL communicator ID', NULL), (1, 16777216, 1, 5, 'No. of ranks', 8),
  (1, 16777216, 2, 5, 'Rank', 12), (1, 16777216, 3, 5, 'CUDA device', 16),
  (1, 16777220, 0, 18, 'NCCL communicator ID', NULL), (1, 16777220, 1, 22, 'Message size [bytes]', 8),
  (1, 16777221, 0, 18, 'NCCL communicator ID', NULL), (1, 16777221, 1, 22, 'Message size [bytes]', 8),
  (1, 16777221, 2, 5, 'Peer rank', 16);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1');
INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs<4096>)'),
  (2, 'void gemm<float>(int)'), (3, 'cudaLaunchKernelExC_v11060'), (4, 'cudaMemcpyAsync_v3020'),
  (5, 'ncclAllReduce'), (6, 'ncclGroupStart'), (7, 'ncclGroupEnd'), (8, 'ncclCommInitRank'),
  (9, 'ncclDevKernel_SendRecv(ncclDevKernelArgs<4096>)'), (10, 'ncclSend'), (11, 'ncclRecv'),
  (12, 'cudaStreamSynchronize_v3020');
)";

std::string Nvtx(int64_t pid, int64_t start, int64_t end, int name,
                 const std::string& payload = "NULL") {
  return absl::StrCat(
      "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, textId, domainId, ",
      "binaryData) VALUES (", start, ",", end, ",59,", Global(pid, pid + 1), ",", name, ",1,",
      payload, ");");
}

// What a rank does: two steps, each with a kernel of 20 us and an all-reduce of 1 MiB in a group of
// its own, as PyTorch calls it, that ends 100 us after the step's begin on all ranks; in the second
// a message to the other rank and one from it, in a group within a group.
std::string NsysWork(int64_t pid, int rank, bool has_init = true) {
  std::string sql;
  const int64_t process = Global(pid, 0), thread = Global(pid, pid + 1);
  const std::string comm = Hex(0xfedcba9876543210u, 8);
  if (has_init) {
    sql += Nvtx(pid, 10, 20, 8, Payload(16777216, comm + Hex(2, 4) + Hex(rank, 4) + Hex(0, 8)));
  }
  int64_t correlation = 100;
  const auto launch = [&](int64_t at, int64_t start, int64_t end, int name, int stream) {
    ++correlation;
    absl::StrAppend(
        &sql, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (", at, ",", at + 500, ",0,", thread,
        ",", correlation, ",3,0,NULL);",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, ",
        "correlationId, globalPid, demangledName, shortName) VALUES (", start, ",", end, ",0,1,",
        stream, ",", correlation, ",", process, ",", name, ",", name, ");");
  };
  for (int step = 0; step < 2; ++step) {
    const int64_t at = 1000000 * (step + 1);
    absl::StrAppend(&sql,
                    "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (", at,
                    ",", at + 900000, ",59,'iteration_", 7 + step, "',", thread, ");");
    launch(at + 1000, at + 10000, at + 30000, 2, 7);
    sql += Nvtx(pid, at + 4000, at + 4010, 6);
    sql += Nvtx(pid, at + 4020, at + 4100, 5, Payload(16777220, comm + Hex(1 << 20, 8)));
    sql += Nvtx(pid, at + 4110, at + 6000, 7);
    launch(at + 5000, at + 40000 + 1000 * rank, at + 100000, 1, 13);
  }
  sql += Nvtx(pid, 2200000, 2200010, 6);
  sql += Nvtx(pid, 2200011, 2200015, 6);
  sql += Nvtx(pid, 2200020, 2200040, 10, Payload(16777221, comm + Hex(4096, 8) + Hex(1 - rank, 4)));
  sql += Nvtx(pid, 2200050, 2200070, 11, Payload(16777221, comm + Hex(4096, 8) + Hex(1 - rank, 4)));
  sql += Nvtx(pid, 2200072, 2200076, 7);
  sql += Nvtx(pid, 2200080, 2202000, 7);
  launch(2201000, 2210000, 2220000, 9, 13);
  absl::StrAppend(
      &sql, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2300000,2301000,0,1,NULL,7,900,",
      process, ",4096,2,2,0,NULL); INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES ",
      "(2310000,2311000,0,1,7,901,", process, ",0,64,NULL,2); INSERT INTO ",
      "CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2320000,2321000,0,", thread, ",902,12,0,NULL);");
  return sql;
}

std::string NsysSession(const std::string& host) {
  return absl::StrCat("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (", kSessionNs, ",'','');",
                      "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0,'','Hostname',1,'", host,
                      "');");
}

std::string NsysFile(int rank, bool has_init = true) {
  return Database(absl::StrCat(kNsysTables, NsysSession(absl::StrCat("host", rank)),
                               NsysWork(4711 + rank, rank, has_init)));
}

// Collectives as "kind bytes ranks @start-end in ns of the session, step".
std::vector<std::string> Texts(const ProfileCollectives& profile) {
  std::vector<std::string> texts;
  for (const CollectiveEvent& event : profile.events) {
    const CollectiveOp& op = profile.ops[event.op];
    std::string text = absl::StrCat(CollectiveKindName(op.kind), " ", op.operand_bytes, " of");
    for (const int64_t rank : op.groups.ids()) absl::StrAppend(&text, " ", rank);
    for (const SourceTargetPair& pair : op.pairs) {
      absl::StrAppend(&text, " ", pair.source, "->", pair.target);
    }
    const int64_t base_ns = profile.base_ns - kSessionNs;
    absl::StrAppend(&text, " @", base_ns + event.start_ps / 1000, "-",
                    base_ns + event.end_ps / 1000, " step ", event.step.value_or(-1));
    texts.push_back(text);
  }
  return texts;
}

TEST(NsysTest, RanksGroupsBytesAndStepsAreWhatAnnotationsSay) {
  const OpenedTraces opened = OpenTraces({{"a.sqlite", NsysFile(1)}, {"b.sqlite", NsysFile(0)}});
  ASSERT_OK(opened.status);
  EXPECT_THAT(opened.notes,
              ElementsAre(HasSubstr(
                  "a.sqlite: the rank of 2 of 2 processes is not told, e.g. here; taken is that "
                  "in the largest communicator, of 2 ranks")));
  EXPECT_THAT(Texts(opened.collectives[0]),
              ElementsAre("all-reduce 1048576 of 0 1 @1041000-1100000 step 7",
                          "all-reduce 1048576 of 0 1 @2041000-2100000 step 8",
                          "send 4096 of 1->0 @2210000-2220000 step 8",
                          "recv 4096 of 0->1 @2210000-2220000 step 8"));
  EXPECT_EQ(opened.collectives[0].devices[0].global_id, 1);
  EXPECT_EQ(opened.collectives[0].stated_ranks, 2);
  EXPECT_TRUE(opened.collectives[0].unresolved.entries().empty());
  EXPECT_THAT(
      opened.traces[0],
      AllOf(HasSubstr("\"hostName\":\"host1\""), HasSubstr("\"name\":\"cudaLaunchKernelExC\""),
            HasSubstr("\"name\":\"Memcpy (Device -> Pageable)\",\"pid\":0,\"tid\":7,"
                      "\"ts\":86400002300.000,\"dur\":1.000,\"args\":{\"correlation\":900,"),
            HasSubstr("\"name\":\"Memset (Device)\""),
            HasSubstr("\"name\":\"iteration_7\",\"pid\":4712,\"tid\":4713")));
}

TEST(NsysTest, AFileMayHoldSeveralProcesses) {
  const std::string both = Database(absl::StrCat(
      kNsysTables, NsysSession("h"), NsysWork(20, 1), NsysWork(10, 0),
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1,2,0,", Global(5, 5), ",1,3,0,NULL);"));
  const OpenedTraces opened = OpenTraces({{"a.sqlite.gz", GzipText(both)}});
  ASSERT_OK(opened.status);
  EXPECT_THAT(opened.paths, ElementsAre("a.sqlite.gz (process 10)", "a.sqlite.gz (process 20)"));
  EXPECT_EQ(opened.collectives[1].devices[0].global_id, 1);
  EXPECT_THAT(opened.collectives[1].events, SizeIs(4));
}

TEST(NsysTest, CommunicatorsThatAreOlderHaveTheRanksThatUseThem) {
  const OpenedTraces opened =
      OpenTraces({{"rank1.sqlite", NsysFile(1, false)}, {"rank0.sqlite", NsysFile(0, false)}});
  ASSERT_OK(opened.status);
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("taken is that in the file's name"),
                                        HasSubstr("communicator fedcba9876543210 is older")));
  EXPECT_EQ(Texts(opened.collectives[0])[0], "all-reduce 1048576 of 0 1 @1041000-1100000 step 7");
}

TEST(NsysTest, RanksOfNamesAreTakenAsTheyAre) {
  // Both say rank 0 of the communicator, so that it does not tell their ranks in the job.
  for (const bool has_init : {false, true}) {
    const OpenedTraces opened = OpenTraces(
        {{"rank7.sqlite", NsysFile(0, has_init)}, {"rank5.sqlite", NsysFile(0, has_init)}});
    ASSERT_OK(opened.status);
    EXPECT_EQ(opened.collectives[0].devices[0].global_id, 7);
    EXPECT_EQ(opened.collectives[1].devices[0].global_id, 5);
  }
}

// Rank 10 was profiled too late to tell its place in the communicator; 11 is the second there.
TEST(NsysTest, PlacesInCommunicatorsAreNotRanksOfTheJob) {
  const OpenedTraces opened =
      OpenTraces({{"rank10.sqlite", NsysFile(0, false)}, {"rank11.sqlite", NsysFile(1)}});
  ASSERT_OK(opened.status);
  EXPECT_EQ(Texts(opened.collectives[0])[2], "send 4096 of 10->11 @2210000-2220000 step 8");
  EXPECT_EQ(Texts(opened.collectives[1])[0], "all-reduce 1048576 of 10 11 @1041000-1100000 step 7");
  EXPECT_EQ(Texts(opened.collectives[1])[2], "send 4096 of @2210000-2220000 step 8");
}

TEST(NsysTest, WhereNoCallWaitsItIsSaid) {
  const std::string without =
      Database(absl::StrCat(kNsysTables, NsysSession("h"), NsysWork(9, 0),
                            "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE nameId=12;"));
  EXPECT_THAT(OpenTraces({{"a.sqlite", without}}).notes,
              Contains(HasSubstr("1 of 1 processes have no call that waits")));
}

TEST(NsysTest, MoreProcessesThanAreReadAreRefused) {
  const std::string many = Database(absl::StrCat(
      kNsysTables, "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<257) ",
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, ",
      "globalPid, demangledName, shortName) SELECT i, i, 0, 0, 0, i << 24, 2, 2 FROM n;"));
  EXPECT_THAT(OpenTraces({{"a.sqlite", many}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 256 processes")));
}

// Between the two times that it is read.
TEST(NsysTest, AFileThatChangesIsRefused) {
  const std::string one = NsysFile(0), none = NsysFile(1);
  const std::string two = Database(
      absl::StrCat(kNsysTables, NsysSession("host0"), NsysWork(4711, 0), NsysWork(4712, 1)));
  for (const auto& [before, after] : {std::pair(one, none), {one, two}, {two, one}}) {
    int opened = 0;
    const auto open = [&, &before = before, &after = after](size_t) {
      return absl::StatusOr<InputFile>(
          InputFile::OfBytes(++opened == 1 ? before : after, "x.sqlite"));
    };
    const auto write = [](size_t, const std::string&, absl::string_view) {
      return absl::OkStatus();
    };
    EXPECT_THAT(SqliteTraceSource().Convert(1, open, {}, write).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("x.sqlite, or a file after it, changed")));
  }
}

TEST(NsysTest, RanksAreThoseOfTheLauncher) {
  const auto with = [&](const std::string& sql) {
    return Database(absl::StrCat(kNsysTables, NsysSession("h"), NsysWork(9, 0, false), sql));
  };
  const std::string variable = "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0,'','";
  const OpenedTraces opened = OpenTraces(
      {{"a.sqlite",
        with(absl::StrCat(variable, "SLURM_PROCID',2,'3');", variable, "SLURM_NTASKS',2,'4');"))},
       {"b.sqlite", with(absl::StrCat(variable, "OMPI_COMM_WORLD_RANK',2,'2');"))}});
  ASSERT_OK(opened.status);
  EXPECT_EQ(opened.collectives[0].devices[0].global_id, 3);
  EXPECT_EQ(opened.collectives[0].stated_ranks, 4);
  EXPECT_EQ(opened.collectives[1].devices[0].global_id, 2);
}

// Before 2022 nothing told the time of day or the schema, texts of ranges stood in their rows, and
// tables were made when there was something to put in.
TEST(NsysTest, OlderSchemasAreRead) {
  const std::string old = Database(absl::StrCat(
      R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
  contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, globalPid INT NOT NULL,
  demangledName INT NOT NULL, shortName INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL,
  globalTid INT NOT NULL, correlationId INT NOT NULL, nameId INT NOT NULL, returnValue INT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT,
  category INT, color INT, text TEXT, globalTid INT);
INSERT INTO StringIds VALUES (1, 'ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)'), (2, 'cuLaunchKernel');
)",
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100,200,0,1,7,5,", Global(3, 0),
      ",1,1); INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME ", "VALUES (50,60,0,", Global(3, 3),
      ",5,2,0);", "INSERT INTO NVTX_EVENTS VALUES (40,90,59,NULL,NULL,NULL,", "'ProfilerStep#12',",
      Global(3, 3), ");"));
  const OpenedTraces opened = OpenTraces({{"a.sqlite", old}});
  ASSERT_OK(opened.status);
  EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("taken is the place in the list"),
                                        HasSubstr("1 of 1 processes have no time of day"),
                                        HasSubstr("1 of 1 processes have no call that waits")));
  EXPECT_EQ(opened.traces[0].find("ProfilerStep#12"), opened.traces[0].rfind("ProfilerStep#12"));
  EXPECT_THAT(
      opened.traces[0],
      AllOf(HasSubstr("\"name\":\"cuLaunchKernel\""), HasSubstr("\"name\":\"ProfilerStep#12\""),
            HasSubstr("\"cat\":\"kernel\",\"name\":\"ncclKernel_AllReduce_RING_LL_Sum_float")));
}

TEST(NsysTest, WhatCannotBeIsLeftOutAndCounted) {
  const std::string file = Database(absl::StrCat(
      kNsysTables, NsysSession("h"), NsysWork(9, 0),
      "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end=start-1 WHERE demangledName=2;"
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text) VALUES (5, NULL, 59, 'open');"
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text) VALUES (5, NULL, 34, 'mark');"));
  EXPECT_THAT(OpenTraces({{"a.sqlite", file}}).notes,
              Contains(HasSubstr("a.sqlite: 2 events with impossible times were left out")));
  EXPECT_THAT(
      OpenTraces({{"a.sqlite", Database(kNsysTables)}}).status,
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.sqlite: has no work of a GPU")));
}

constexpr int64_t kWeekNs = 604800000000000;

// The tables of both schemas of rocpd, and in them the same work.
std::string Rocpd(int schema, int rank) {
  const bool is_old = schema == 3;
  const std::string tables = absl::StrCat(R"(
CREATE TABLE `rocpd_metadata_u` (id INTEGER PRIMARY KEY, tag TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE `rocpd_string_u` (id INTEGER PRIMARY KEY, guid TEXT, string TEXT NOT NULL UNIQUE);
CREATE TABLE `rocpd_info_node_u` (id INTEGER PRIMARY KEY, guid TEXT, hash BIGINT, machine_id TEXT, hostname TEXT);
CREATE TABLE `rocpd_info_process_u` (id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER,
  pid INTEGER, init BIGINT, environment JSONB DEFAULT "{}" NOT NULL);
CREATE TABLE `rocpd_info_agent_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, type TEXT,
  absolute_index INTEGER, logical_index INTEGER, type_index INTEGER);
CREATE TABLE `rocpd_info_kernel_symbol_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER,
  kernel_name TEXT, display_name TEXT);
CREATE TABLE `rocpd_event_u` (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER,
  parent_stack_id INTEGER, correlation_id INTEGER, extdata JSONB DEFAULT "{}" NOT NULL);
CREATE VIEW rocpd_event AS SELECT * FROM rocpd_event_u;
)",
                                          is_old ? R"(
CREATE TABLE `rocpd_region_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,
  start BIGINT, end BIGINT, name_id INTEGER, event_id INTEGER);
CREATE TABLE `rocpd_kernel_dispatch_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,
  agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT,
  event_id INTEGER);
CREATE TABLE `rocpd_memory_copy_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,
  start BIGINT, end BIGINT, name_id INTEGER, src_agent_id INTEGER,
  dst_agent_id INTEGER, size INTEGER, stream_id INTEGER,
  event_id INTEGER);
)"
                                                 : R"(
CREATE TABLE `rocpd_info_category_u` (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE `rocpd_track_u` (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER,
  agent_id INTEGER, queue_id INTEGER, stream_id INTEGER);
CREATE TABLE `rocpd_timestamp_u` (id INTEGER PRIMARY KEY, value BIGINT NOT NULL, phase INTEGER);
CREATE TABLE `rocpd_region_u` (id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER,
  start_id INTEGER, end_id INTEGER, event_id INTEGER);
CREATE TABLE `rocpd_kernel_dispatch_u` (id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER,
  start_id INTEGER, end_id INTEGER, event_id INTEGER);
CREATE TABLE `rocpd_memory_copy_u` (id INTEGER PRIMARY KEY, track_id INTEGER, start_id INTEGER,
  end_id INTEGER, name_id INTEGER, src_agent_id INTEGER, dst_agent_id INTEGER, size INTEGER,
  event_id INTEGER);
INSERT INTO rocpd_info_category_u VALUES (1, 'hip_api'), (2, 'marker_api'), (3, 'kernel_dispatch');
INSERT INTO rocpd_track_u VALUES (1, 1, 77, 77, NULL, NULL, NULL), (2, 1, 77, 77, 4, 1, 2);
)");
  std::string sql = absl::StrCat(
      tables, "INSERT INTO rocpd_metadata_u (tag, value) VALUES ('schema_version', '", schema,
      "');", "INSERT INTO rocpd_info_node_u (id, hostname) VALUES (1, 'amd", rank, "');",
      "INSERT INTO rocpd_info_process_u (id, nid, pid, environment) VALUES (77, 1, 77, '{\"RANK\": "
      "\"",
      rank,
      "\", \"WORLD_SIZE\": \"2\"}'); INSERT INTO rocpd_info_agent_u (id, type, type_index) VALUES ",
      "(0, 'CPU', 0), (4, 'GPU', 3); INSERT INTO rocpd_info_kernel_symbol_u (id, display_name) "
      "VALUES ",
      "(1, 'ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)');",
      "INSERT INTO rocpd_string_u (id, string) VALUES (1, 'HIP_RUNTIME_API_EXT'), ",
      "(2, 'MARKER_CORE_RANGE_API'), (3, 'hipExtLaunchKernel'), (4, 'roctxThreadRangeA'), ",
      "(5, 'KERNEL_DISPATCH'), (6, 'step 3'), (7, '{AllGather: NCCL communicator ID: -5, ",
      "Message size [bytes]: 512, datatype: f32}'), (8, 'MEMORY_COPY_DEVICE_TO_HOST');");
  int id = 0;
  // Category, name and message of a region; -1 for a kernel, -2 for a copy.
  const auto add = [&](int64_t start, int64_t end, int category, int name,
                       const std::string& message, int stack) {
    // Rank 1's host runs for a week.
    start += rank * kWeekNs;
    end += rank * kWeekNs;
    ++id;
    absl::StrAppend(&sql, "INSERT INTO rocpd_event_u (id, category_id, stack_id, extdata) VALUES (",
                    id, ",", category, ",", stack, ",'", message, "');");
    const std::string times =
        is_old ? absl::StrCat(start, ",", end) : absl::StrCat(2 * id, ",", 2 * id + 1);
    if (!is_old) {
      absl::StrAppend(&sql, "INSERT INTO rocpd_timestamp_u VALUES (", 2 * id, ",", start, ",1),(",
                      2 * id + 1, ",", end, ",2);");
    }
    const std::string time_columns = is_old ? "start, end" : "start_id, end_id";
    if (name == -1) {
      absl::StrAppend(&sql, "INSERT INTO rocpd_kernel_dispatch_u (kernel_id, event_id, ",
                      is_old ? "agent_id, stream_id, " : "track_id, ", time_columns, ") VALUES (1,",
                      id, ",", is_old ? "4,2," : "2,", times, ");");
    } else if (name == -2) {
      absl::StrAppend(
          &sql,
          "INSERT INTO rocpd_memory_copy_u (name_id, size, src_agent_id, dst_agent_id, event_id, ",
          is_old ? "stream_id, " : "track_id, ", time_columns, ") VALUES (8,64,4,0,", id, ",2,",
          times, ");");
    } else {
      absl::StrAppend(&sql, "INSERT INTO rocpd_region_u (name_id, event_id, ",
                      is_old ? "tid, " : "track_id, ", time_columns, ") VALUES (", name, ",", id,
                      ",", is_old ? "77," : "1,", times, ");");
    }
  };
  // Schema 3 has the text in the event, schema 4 in the region.
  const std::string gather =
      R"({"message": "{AllGather: NCCL communicator ID: -5, Message size [bytes]: 512, datatype: f32}"})";
  const std::string operation = R"({"message": "roctxThreadRangeA"})";
  add(1000, 90000, 2, is_old ? 4 : 6, is_old ? R"({"message": "step 3"})" : operation, 1);
  add(2000, 8000, 2, is_old ? 4 : 7, is_old ? gather : operation, 2);
  add(3000, 4000, 1, 3, "{}", 9);
  add(10000 + rank, 50000, is_old ? 5 : 3, -1, "{}", 9);
  add(60000, 61000, is_old ? 5 : 3, -2, "{}", 10);
  return Database(sql);
}

TEST(RocpdTest, BothSchemasTellTheSame) {
  for (const int schema : {3, 4}) {
    const OpenedTraces opened =
        OpenTraces({{"1_results.db", Rocpd(schema, 1)}, {"2_results.db", Rocpd(schema, 0)}});
    ASSERT_OK(opened.status) << schema;
    EXPECT_THAT(opened.notes, ElementsAre(HasSubstr("2 of 2 processes have no time of day"),
                                          HasSubstr("2 of 2 processes have no call that waits"),
                                          HasSubstr("communicator fffffffffffffffb is older")))
        << schema;
    const ProfileCollectives& profile = opened.collectives[0];
    ASSERT_THAT(profile.events, SizeIs(1)) << opened.traces[0];
    const CollectiveOp& op = profile.ops[0];
    EXPECT_EQ(op.kind, CollectiveKind::kAllGather);
    EXPECT_EQ(op.operand_bytes, 512);
    EXPECT_EQ(op.output_bytes, 1024);
    EXPECT_THAT(op.groups.ids(), ElementsAre(0, 1));
    EXPECT_EQ(profile.events[0].step, 3);
    EXPECT_EQ(profile.events[0].end_ps - profile.events[0].start_ps, 39999000);
    EXPECT_EQ(profile.devices[0].global_id, 1);
    // Both hosts begin together, at 1,000 ns of their clocks.
    EXPECT_THAT(opened.traces[0], HasSubstr("\"baseTimeNanoseconds\":999308799999999000"));
    EXPECT_THAT(
        opened.traces[0],
        AllOf(HasSubstr("\"hostName\":\"amd1\""),
              HasSubstr(
                  "\"cat\":\"hip_runtime\",\"name\":\"hipExtLaunchKernel\",\"pid\":77,\"tid\":77"),
              HasSubstr("\"name\":\"MEMORY_COPY_DEVICE_TO_HOST\",\"pid\":3,\"tid\":2,\"ts\":"
                        "691200000060.000")))
        << schema;
  }
}

TEST(SqliteFileTest, NothingInItIsCarriedOut) {
  const std::string kernels = "CUPTI_ACTIVITY_KIND_KERNEL";
  const auto status = [&](const std::string& sql) {
    return OpenTraces(
               {{"a.sqlite", Database(absl::StrCat("CREATE TABLE StringIds (id, value);", sql))}})
        .status;
  };
  // Would never end, were it asked.
  EXPECT_THAT(status(absl::StrCat("CREATE VIEW ", kernels,
                                  " AS WITH RECURSIVE r(start, end) AS (VALUES(1, 2) ",
                                  "UNION ALL SELECT start, end FROM r) SELECT start, end FROM r;")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no work of a GPU")));
  EXPECT_THAT(status(absl::StrCat("CREATE VIRTUAL TABLE ", kernels, " USING fts5(start, end);")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no work of a GPU")));
  EXPECT_THAT(
      status(absl::StrCat("CREATE TABLE ", kernels, " (end AS (abs(x)), x INT);INSERT INTO ",
                          kernels, " VALUES (1);")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no work of a GPU")));
}

TEST(SqliteFileTest, WorkAndTextAreLimited) {
  // A name of 1 MB for each of 300 kernels; and 3,000 names to look through for each of 3,000.
  const std::string many = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<";
  EXPECT_THAT(
      OpenTraces(
          {{"a.sqlite",
            Database(absl::StrCat(
                kNsysTables, "INSERT INTO StringIds VALUES (99, hex(zeroblob(500000)));", many,
                "300) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, ",
                "streamId, demangledName, shortName) SELECT i, i, 0, 0, 0, 99, 99 FROM n;"))}})
          .status,
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("has more text than a file of its size"), Not(HasSubstr("-wal")))));
  const std::string work =
      Database(absl::StrCat("CREATE TABLE t (a); ", many, "3000) INSERT INTO t SELECT i FROM n;"));
  ASSERT_OK_AND_ASSIGN(const auto file, SqliteFile::Open(work, "w.sqlite"));
  int64_t rows = 0;
  EXPECT_THAT(file->Query("SELECT NULL FROM t x, t y WHERE x.a + y.a = 0", "",
                          [&](const SqliteRow&) { ++rows; }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("w.sqlite: row 1"),
                             HasSubstr("takes more work than a file of its size"))));
  EXPECT_EQ(rows, 0);
}

// What comes out must be a trace.
absl::Status Convert(const std::string& bytes) {
  const auto open = [&](size_t) -> absl::StatusOr<InputFile> {
    return InputFile::OfBytes(bytes, "x.sqlite");
  };
  const auto write = [](size_t, const std::string& trace, absl::string_view) {
    EXPECT_OK(LoadTraceJson(trace, "x.json").status());
    return absl::OkStatus();
  };
  return SqliteTraceSource().Convert(1, open, {}, write).status();
}

TEST(SqliteFileTest, DamageIsRefusedOrReadButNeverMore) {
  const std::string nsys = NsysFile(0), rocpd = Rocpd(4, 0);
  std::string wal = nsys;
  wal[18] = wal[19] = 2;
  EXPECT_THAT(OpenTraces({{"a.sqlite", wal}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a.sqlite"), HasSubstr("part of it in a -wal file"))));
  EXPECT_THAT(OpenTraces({{"a.sqlite", nsys.substr(0, 4096 + 100)}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.sqlite")));
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = Damage(i % 2 == 0 ? nsys : rocpd, random);
    const absl::Status status = Convert(bytes);
    refused += !status.ok();
    if (status.ok()) continue;
    EXPECT_THAT(std::string(status.message()), HasSubstr("x.sqlite"));
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace meridian
