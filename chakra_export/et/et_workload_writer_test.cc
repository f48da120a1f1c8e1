#include "chakra_export/et/et_workload_writer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::GlobalMetadata;
using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Writes a trace of one node for each rank, and the groups.
absl::StatusOr<ChakraWorkloadReport> Commit(FileSystem& file_system, const std::string& prefix,
                                            const std::vector<int64_t>& ranks,
                                            const CommGroups& groups,
                                            std::optional<int64_t> rank_count) {
  EtWorkloadWriter writer(file_system, prefix);
  for (const int64_t rank : ranks) {
    ASSIGN_OR_RETURN(EtTrace trace, writer.Begin(rank, {}));
    RETURN_IF_ERROR(trace.Add(CompNode(1, 1)));
    RETURN_IF_ERROR(writer.Finish(std::move(trace)));
  }
  writer.AddGroups(groups);
  return writer.Commit(rank_count);
}

TEST(EtWorkloadWriterTest, WritesTracesAndGroups) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(
      const ChakraWorkloadReport written,
      Commit(FileSystem::Posix(), directory.PathOf("w"), {0, 1}, {{"4", {1, 0}}}, 2));
  ASSERT_EQ(written.ranks_size(), 2);
  EXPECT_EQ(written.ranks(1).path(), directory.PathOf("w.1.et"));
  EXPECT_EQ(written.comm_groups(), directory.PathOf("w.comm_groups.json"));
  EXPECT_EQ(directory.Read("w.comm_groups.json"), "{\n  \"4\": [1, 0]\n}\n");
  EXPECT_THAT(written.removed(), IsEmpty());
}

TEST(EtWorkloadWriterTest, TheReportHasTheRanksInOrderWhicheverWasDoneFirst) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport written,
                       Commit(FileSystem::Posix(), directory.PathOf("w"), {2, 0, 1}, {}, 3));
  ASSERT_EQ(written.ranks_size(), 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(written.ranks(rank).rank(), rank);
}

// An earlier workload "w" of three ranks, and files that only look like parts of it.
void WriteEarlier(const TemporaryDirectory& directory) {
  for (const char* name : {"w.0.et.gz", "w.1.et", "w.2.et", "w.comm_groups.json", "w2.2.et",
                           "w.2.txt", "w.x.et", "w.et"}) {
    directory.Write(name, "{}");
  }
}

TEST(EtWorkloadWriterTest, AWholeWorkloadLeavesNothingOfAnEarlierOne) {
  const TemporaryDirectory directory;
  WriteEarlier(directory);
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport written,
                       Commit(FileSystem::Posix(), directory.PathOf("w"), {0, 1}, {}, 2));
  EXPECT_EQ(written.comm_groups(), "");
  EXPECT_THAT(written.removed(),
              ElementsAre(directory.PathOf("w.0.et.gz"), directory.PathOf("w.2.et"),
                          directory.PathOf("w.comm_groups.json")));
  EXPECT_THAT(directory.List(),
              UnorderedElementsAre("w.0.et", "w.1.et", "w2.2.et", "w.2.txt", "w.x.et", "w.et"));
}

TEST(EtWorkloadWriterTest, ACountOfZeroKeepsWhatIsWrittenOnly) {
  const TemporaryDirectory directory;
  WriteEarlier(directory);
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport written,
                       Commit(FileSystem::Posix(), directory.PathOf("w"), {2}, {{"1", {2}}}, 0));
  EXPECT_THAT(written.removed(),
              ElementsAre(directory.PathOf("w.0.et.gz"), directory.PathOf("w.1.et")));
}

TEST(EtWorkloadWriterTest, ARankAloneTakesTheOtherFormOfItselfOnly) {
  const TemporaryDirectory directory;
  WriteEarlier(directory);
  // However its directory is spelled.
  ASSERT_OK_AND_ASSIGN(
      const ChakraWorkloadReport written,
      Commit(FileSystem::Posix(), directory.path() + "/.//w", {0}, {}, std::nullopt));
  EXPECT_THAT(written.removed(), ElementsAre(HasSubstr("w.0.et.gz")));
  EXPECT_THAT(directory.List(),
              UnorderedElementsAre("w.0.et", "w.1.et", "w.2.et", "w.comm_groups.json", "w2.2.et",
                                   "w.2.txt", "w.x.et", "w.et"));
}

TEST(EtWorkloadWriterTest, AFullDiskLeavesTheEarlierWorkload) {
  const TemporaryDirectory directory;
  WriteEarlier(directory);
  const auto before = directory.List();
  FaultyFileSystem full(FileSystem::Posix());
  // A trace, and the groups that find the disk full.
  full.Fail(Operation::kAppend, 2, absl::ResourceExhaustedError("planned"));
  EXPECT_THAT(Commit(full, directory.PathOf("w"), {1}, {{"4", {0, 1}}}, 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("w.comm_groups.json")));
  EXPECT_EQ(directory.List(), before);
  EXPECT_EQ(directory.Read("w.1.et"), "{}");
}

// Every sync waits for the disk: 10,000 ranks took a minute of which a tenth was work.
TEST(EtWorkloadWriterTest, TracesOfManyRanksDoNotTakeASyncEach) {
  const TemporaryDirectory directory;
  FaultyFileSystem file_system(FileSystem::Posix());
  std::vector<int64_t> ranks(1000);
  std::iota(ranks.begin(), ranks.end(), 0);
  ASSERT_OK(Commit(file_system, directory.PathOf("w"), ranks, {{"4", {0, 1}}}, ranks.size()));
  const auto count = [&](Operation operation) {
    return std::count(file_system.operations().begin(), file_system.operations().end(), operation);
  };
  EXPECT_LE(count(Operation::kSync), 64);
  EXPECT_EQ(count(Operation::kSyncFileSystem), 1);
  EXPECT_EQ(count(Operation::kSyncDirectory), 1);
  EXPECT_EQ(count(Operation::kRename), 1001);
}

TEST(EtWorkloadWriterTest, NoTraceOfManyGetsItsNameBeforeAllAreSynced) {
  const TemporaryDirectory directory;
  WriteEarlier(directory);
  const auto before = directory.List();
  FaultyFileSystem full(FileSystem::Posix());
  full.Fail(Operation::kSyncFileSystem, 1, absl::ResourceExhaustedError("planned"));
  std::vector<int64_t> ranks(100);
  std::iota(ranks.begin(), ranks.end(), 0);
  EXPECT_THAT(Commit(full, directory.PathOf("w"), ranks, {}, ranks.size()),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(directory.List(), before);
  EXPECT_EQ(directory.Read("w.1.et"), "{}");
}

GlobalMetadata Metadata() {
  GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);
  return metadata;
}

// Writes the trace of rank 0.
absl::Status WriteFile(FileSystem& file_system, const std::string& prefix,
                       const std::vector<Node>& nodes) {
  EtWorkloadWriter writer(file_system, prefix);
  ASSIGN_OR_RETURN(EtTrace trace, writer.Begin(0, Metadata()));
  for (const Node& node : nodes) RETURN_IF_ERROR(trace.Add(node));
  RETURN_IF_ERROR(writer.Finish(std::move(trace)));
  return writer.Commit(std::nullopt).status();
}

TEST(EtWorkloadWriterTest, WritesTheBytesOfTheFormat) {
  const TemporaryDirectory directory;
  Node node;
  node.set_id(7);
  node.set_type(ChakraProtoMsg::COMP_NODE);
  node.add_data_deps(300);
  ASSERT_OK(WriteFile(FileSystem::Posix(), directory.PathOf("w"), {node}));
  // Metadata: field 1 "1.0.0". Node: id 7, type 4, packed data_deps {300}.
  EXPECT_EQ(directory.Read("w.0.et"), std::string("\x07\x0A\x05"
                                                  "1.0.0"
                                                  "\x08\x08\x07\x18\x04\x2A\x02\xAC\x02",
                                                  17));
}

TEST(EtWorkloadWriterTest, AFailureKeepsTheOldFile) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", "old");
  for (const Operation operation : {Operation::kAppend, Operation::kSync, Operation::kRename}) {
    FaultyFileSystem file_system(FileSystem::Posix());
    file_system.Fail(operation, 1, absl::ResourceExhaustedError("disk full"));
    EXPECT_THAT(WriteFile(file_system, directory.PathOf("w"), {CompNode(1, 1)}),
                StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(directory.List(), ElementsAre("w.0.et"));
    EXPECT_EQ(directory.Read("w.0.et"), "old");
  }
}

TEST(EtWorkloadWriterTest, WithoutCommitNothingIsLeft) {
  const TemporaryDirectory directory;
  {
    EtWorkloadWriter writer(FileSystem::Posix(), directory.PathOf("w"));
    ASSERT_OK_AND_ASSIGN(EtTrace trace, writer.Begin(0, Metadata()));
    ASSERT_OK(trace.Add(CompNode(1, 1)));
    ASSERT_OK(writer.Finish(std::move(trace)));
  }
  EXPECT_THAT(directory.List(), IsEmpty());
}

TEST(EtWorkloadWriterTest, WhatTheReaderWouldRefuseIsNotWritten) {
  const TemporaryDirectory directory;
  Node node = CompNode(1, 1);
  node.mutable_inputs()->set_values(std::string(kMaxEtRecordBytes, ' '));
  EXPECT_THAT(WriteFile(FileSystem::Posix(), directory.PathOf("w"), {node}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace meridian
