#include "xla_profiler/sources/trace_sources.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::string_view NounOf(absl::string_view beginning) {
  return DetectFile(FileHead(std::string(beginning))).noun();
}

TEST(TraceSourcesTest, NoSuffixComesTwice) {
  const std::vector<std::string> suffixes = ProfileSuffixes();
  EXPECT_EQ(std::set<std::string>(suffixes.begin(), suffixes.end()).size(), suffixes.size());
}

TEST(TraceSourcesTest, ContentTells) {
  constexpr absl::string_view kXSpace = "an XSpace", kKineto = "a Kineto trace",
                              kTraceJson =
                                  "Chrome trace JSON that PyTorch's profiler did not write",
                              kEt = "a Chakra execution trace", kLog = "a log of NCCL Inspector",
                              kUnknown = "no trace that is known";
  EXPECT_EQ(NounOf(""), "empty");
  EXPECT_EQ(NounOf("a;b\n1;2"), "a table without columns rank, kind, start_ns and end_ns");
  EXPECT_EQ(NounOf("a,\x01"), kUnknown);
  constexpr absl::string_view kOtherJson =
      "JSON whose beginning names neither traceEvents nor rank, kind, start_ns and end_ns";
  EXPECT_EQ(NounOf("\x0a\xc7\xf2\x07\x12\x0e/host:metadata"), kXSpace);
  EXPECT_EQ(NounOf(" \n{\"schemaVersion\": 1, \"deviceProperties\": [{}], \"traceEvents\": ["),
            kKineto);
  EXPECT_EQ(NounOf(R"({"displayTimeUnit":"ns","metadata":{},"traceEvents":[{)"), kTraceJson);
  EXPECT_EQ(NounOf("[{\"ph\":\"X\"}"), kTraceJson);
  EXPECT_EQ(NounOf(R"({"metadata":{},"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::add")"),
            kKineto);
  const DetectedFile rocprof = DetectFile(FileHead(R"({"rocprofiler-sdk-tool":[{"metadata":)"));
  EXPECT_EQ(rocprof.noun(), "rocprofv3's JSON");
  EXPECT_THAT(std::string(rocprof.remedy()), HasSubstr("--output-format rocpd"));
  EXPECT_EQ(NounOf(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{)"),
            "a PyTorch execution trace");
  EXPECT_EQ(NounOf("\x07\x0a\x05"
                   "1.0.0\x9e\x01"),
            kEt);
  // Ten bytes, which also begin an XSpace.
  EXPECT_EQ(NounOf("\x0a\x0a\x08"
                   "0.0.4-rc\x9e"),
            kEt);
  EXPECT_EQ(NounOf(R"({"header":{"id":"0x7f","rank":2},"metadata":{},"coll_perf":{"coll":)"), kLog);
  EXPECT_EQ(NounOf("epoch 1\n{\"header\":{\"id\n{\"p2p_perf\":{\"p2p\":\"Send\"}}\n"), kLog);
  constexpr absl::string_view kDump = "a flight recorder dump";
  EXPECT_EQ(NounOf(R"({"pg_config":{},"pg_status":{},"version":"2.4"})"), kDump);
  EXPECT_EQ(NounOf(R"({"comm_lib_version":"2.28","entries":[{"collective_seq_id":1,"du)"), kDump);
  // Any pickle: its reader says what is wrong with others.
  EXPECT_EQ(NounOf("\x80\x04\x95"), kDump);
  EXPECT_EQ(NounOf(R"({"entries":[{"a":1}]})"), kOtherJson);
  EXPECT_EQ(NounOf(R"({"schemaVersion": 1, "combinedRanks": 4, "traceEvents": [)"),
            "what combine made of ranks' Kineto traces");
  EXPECT_EQ(NounOf(R"({"metadata":{},"baseTimeNanoseconds":5,"traceEvents":[{)"), kTraceJson);
  const std::string sqlite("SQLite format 3\0", 16);
  const std::string database = "a database of nsys or rocprofv3";
  EXPECT_EQ(NounOf(sqlite + "\x10 CREATE TABLE StringIds (id"), database);
  EXPECT_EQ(NounOf(sqlite + "\x10 CREATE TABLE \"rocpd_metadata_0f\""), database);
  EXPECT_EQ(NounOf(sqlite + "\x10 CREATE TABLE runs (id"),
            "an SQLite database without tables of nsys or rocprofv3");
  EXPECT_EQ(NounOf("{\"a\": 1}"), kOtherJson);
  EXPECT_EQ(NounOf("hello"), kUnknown);
  // Cut off before what tells.
  EXPECT_EQ(NounOf("{\"schemaVersion\": 1, \"devicePro"), kKineto);
}

TEST(TraceSourcesTest, FilesMayBeCompressed) {
  const TemporaryDirectory directory;
  const std::string kineto = R"({"schemaVersion": 1, "traceEvents": []})";
  const std::string path = directory.Write("k.pb", GzipText(kineto));
  ASSERT_OK_AND_ASSIGN(const DetectedFile file, DetectFile(FileSystem::Posix(), path));
  EXPECT_EQ(file.noun(), "a Kineto trace");
  const std::string cut = directory.Write("cut.gz", GzipText(kineto).substr(0, 10));
  ASSERT_OK_AND_ASSIGN(const DetectedFile damaged, DetectFile(FileSystem::Posix(), cut));
  EXPECT_EQ(damaged.noun(), "no trace that is known");
  EXPECT_THAT(DetectFile(FileSystem::Posix(), directory.PathOf("missing")).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(TraceFilesTest, SourcesAreNotMixedAndNamed) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string xspace = directory.Write("a.xplane.pb", "\x0a\x02\x12\x00");
  const std::string et = directory.Write("et_0.json", R"({"schema": "1.0.1", "nodes": []})");
  ASSERT_OK_AND_ASSIGN(const TraceFiles files,
                       TraceFiles::Create(FileSystem::Posix(), {kineto, kineto}));
  EXPECT_EQ(files.form(), TraceForm::kKineto);
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(), {kineto, xspace}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kineto_0.json is a Kineto trace"),
                             HasSubstr("a.xplane.pb is an XSpace"))));
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(), {et}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("et_0.json is a PyTorch execution trace; expected a Kineto")));
}

TEST(TraceFilesTest, WhatIsBrokenIsOfTheSourceOfTheOthers) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string broken = directory.Write("kineto_1.json", "{\"zz\": [1}");
  ASSERT_OK_AND_ASSIGN(const TraceFiles with_other,
                       TraceFiles::Create(FileSystem::Posix(), {broken, kineto}));
  EXPECT_EQ(with_other.form(), TraceForm::kKineto);
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(), {broken}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kineto_1.json is JSON whose beginning names neither")));
  const std::string empty = directory.Write("kineto_2.json", "");
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(), {kineto, empty}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kineto_2.json is empty; expected a Kineto trace or")));
}

TEST(TraceFilesTest, LogsAreOpenedAsKinetoTraces) {
  const TemporaryDirectory directory;
  const std::string log = directory.Write(
      "h-pid1.log",
      R"({"header":{"id":"0xaa","rank":0,"n_ranks":1},"metadata":{"dump_timestamp_us":1776150229000000},)"
      R"("coll_perf":{"coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":8,"coll_exec_time_us":7}})"
      "\n");
  EXPECT_THAT(TraceFiles::Create(FileSystem::Posix(), {log}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("h-pid1.log: says how long")));
  TraceFilesOptions options;
  options.conversion.durations_suffice = true;
  ASSERT_OK_AND_ASSIGN(const TraceFiles files,
                       TraceFiles::Create(FileSystem::Posix(), {log}, options));
  EXPECT_EQ(files.form(), TraceForm::kKineto);
  for (int again = 0; again < 2; ++again) {
    ASSERT_OK_AND_ASSIGN(const InputFile converted, files.Open(0));
    EXPECT_EQ(converted.path(), log);
    EXPECT_THAT(std::string(converted.bytes()),
                AllOf(HasSubstr("\"hostName\":\"h\""), HasSubstr("\"dur\":7.000")));
  }
}

TEST(TraceSourcesTest, WhatLiesBesideProfilesDoesNotMatter) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string et = directory.Write("et_0.json", R"({"schema": "1.0.1", "nodes": []})");
  const std::string viewer = directory.Write("trace.json", R"({"traceEvents": []})");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {et, kineto, viewer}), ElementsAre(kineto));
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {et, viewer}), ElementsAre(et, viewer));
  const std::string other = directory.Write("runs.db", std::string("SQLite format 3\0", 16));
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {kineto, other}), ElementsAre(kineto));
  const std::string broken = directory.Write("a.xplane.pb", "?");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {broken, kineto}), ElementsAre(broken, kineto));
}

}  // namespace
}  // namespace meridian
