#include "xla_profiler/base/files/atomic_file_writer.h"

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/temporary_files.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

constexpr size_t kMebibyte = size_t{1} << 20;

absl::Status WriteFileAtomically(FileSystem& file_system, const std::string& path,
                                 absl::string_view contents) {
  const auto writer = AtomicFileWriter::Create(file_system, path);
  if (!writer.ok()) return writer.status();
  const absl::Status appended = (*writer)->Append(contents);
  return appended.ok() ? (*writer)->Commit() : appended;
}

class AtomicFileWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<AtomicFileWriter> Create() {
    auto writer = AtomicFileWriter::Create(file_system_, path_);
    EXPECT_OK(writer);
    return *std::move(writer);
  }

  // Expects that replacing "old" fails with the status that was planned, and changes nothing.
  void ExpectKeepsTheOldFile() {
    directory_.Write("a.pb", "old");
    EXPECT_THAT(WriteFileAtomically(file_system_, path_, "new"),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(StartsWith(path_ + ": "), EndsWith("planned"))));
    EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
    EXPECT_EQ(directory_.Read("a.pb"), "old");
  }

  const absl::Status planned_ = absl::ResourceExhaustedError("planned");
  TemporaryDirectory directory_;
  FaultyFileSystem file_system_{FileSystem::Posix()};
  const std::string path_ = directory_.PathOf("a.pb");
};

TEST_F(AtomicFileWriterTest, ReplacesAFile) {
  directory_.Write("a.pb", "old");
  ASSERT_OK(WriteFileAtomically(file_system_, path_, "new"));
  EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
  EXPECT_EQ(directory_.Read("a.pb"), "new");
}

TEST_F(AtomicFileWriterTest, CreatesAFileWithTheModeOfAPlainCreation) {
  ASSERT_OK(WriteFileAtomically(file_system_, path_, "new"));
  const mode_t mask = umask(0);
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(AtomicFileWriterTest, SyncsTheFileBeforeTheRenameAndTheDirectoryAfter) {
  ASSERT_OK(WriteFileAtomically(file_system_, path_, "new"));
  EXPECT_THAT(
      file_system_.operations(),
      ElementsAre(Operation::kKind, Operation::kCreateFile, Operation::kAppend, Operation::kSync,
                  Operation::kClose, Operation::kRename, Operation::kSyncDirectory));
}

TEST_F(AtomicFileWriterTest, ShowsTheFileOnlyWhenCommitted) {
  auto writer = Create();
  ASSERT_OK(writer->Append("new"));
  EXPECT_THAT(directory_.List(), ElementsAre(MatchesRegex("\\.a\\.pb\\.[0-9a-f]{16}\\.tmp")));
  ASSERT_OK(writer->Commit());
  EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
}

TEST_F(AtomicFileWriterTest, RemovesTheTemporaryFileWhenNotCommitted) {
  directory_.Write("a.pb", "old");
  auto writer = Create();
  ASSERT_OK(writer->Append("new"));
  writer.reset();
  EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
  EXPECT_EQ(directory_.Read("a.pb"), "old");
}

TEST_F(AtomicFileWriterTest, DoesNotDeleteAnythingAfterTheCommit) {
  auto writer = Create();
  ASSERT_OK(writer->Commit());
  writer.reset();
  EXPECT_THAT(file_system_.operations(), Not(Contains(Operation::kDelete)));
}

TEST_F(AtomicFileWriterTest, WritesAnEmptyFile) {
  ASSERT_OK(Create()->Commit());
  EXPECT_EQ(directory_.Read("a.pb"), "");
}

TEST_F(AtomicFileWriterTest, CollectsSmallPiecesAndHandsLargeOnesOn) {
  auto writer = Create();
  const std::string small(kMebibyte / 16, 's');
  const std::string large(kMebibyte, 'l'), many(kMebibyte / 4, 'm');
  for (int i = 0; i < 20; ++i) ASSERT_OK(writer->Append(small));  // 16 fill the buffer
  ASSERT_OK(writer->Append(large));
  ASSERT_OK(writer->Append(many));
  ASSERT_OK(writer->Append("end"));
  EXPECT_EQ(writer->bytes_appended(), 5 * kMebibyte / 2 + 3);
  ASSERT_OK(writer->Commit());
  EXPECT_THAT(
      file_system_.operations(),
      ElementsAre(Operation::kKind, Operation::kCreateFile, Operation::kAppend, Operation::kAppend,
                  Operation::kAppend, Operation::kAppend, Operation::kAppend, Operation::kSync,
                  Operation::kClose, Operation::kRename, Operation::kSyncDirectory));
  EXPECT_TRUE(directory_.Read("a.pb") ==
              std::string(5 * kMebibyte / 4, 's') + large + many + "end");
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenItsKindCannotBeTold) {
  file_system_.Fail(Operation::kKind, 1, absl::ResourceExhaustedError(path_ + ": planned"));
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenTheTemporaryFileCannotBeCreated) {
  file_system_.Fail(Operation::kCreateFile, 1, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenAnAppendFails) {
  file_system_.Fail(Operation::kAppend, 1, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenAnAppendIsTorn) {
  file_system_.TearAppend(1, 2, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenTheSyncFails) {
  file_system_.Fail(Operation::kSync, 1, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenTheCloseFails) {
  file_system_.Fail(Operation::kClose, 1, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, KeepsTheOldFileWhenTheRenameFails) {
  file_system_.Fail(Operation::kRename, 1, planned_);
  ExpectKeepsTheOldFile();
}

TEST_F(AtomicFileWriterTest, ReportsAFailedSyncOfTheDirectoryThoughTheFileIsInPlace) {
  file_system_.Fail(Operation::kSyncDirectory, 1, planned_);
  directory_.Write("a.pb", "old");
  EXPECT_THAT(WriteFileAtomically(file_system_, path_, "new"),
              StatusIs(absl::StatusCode::kResourceExhausted, path_ + ": planned"));
  EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
  EXPECT_EQ(directory_.Read("a.pb"), "new");
}

TEST_F(AtomicFileWriterTest, DoesNotCommitAfterAFailedAppend) {
  directory_.Write("a.pb", "old");
  file_system_.TearAppend(1, 5, planned_);
  auto writer = Create();
  EXPECT_THAT(writer->Append(std::string(kMebibyte + 1, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(writer->Append("more"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(writer->Commit(),
              StatusIs(absl::StatusCode::kResourceExhausted, path_ + ": planned"));
  EXPECT_EQ(directory_.Read("a.pb"), "old");
}

TEST_F(AtomicFileWriterTest, DoesNotCreateFolders) {
  const std::string path = directory_.PathOf("missing/a.pb");
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, path),
              StatusIs(absl::StatusCode::kNotFound, path + ": its directory does not exist"));
  EXPECT_THAT(directory_.List(), IsEmpty());
}

TEST_F(AtomicFileWriterTest, ReplacesOnlyRegularFiles) {
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, directory_.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, directory_.path() + ": is a directory"));
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, "/dev/null"),
              StatusIs(absl::StatusCode::kInvalidArgument, "/dev/null: is not a regular file"));
  // A link to whatever standard output is, even a regular file.
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, "/dev/stdout"),
              StatusIs(absl::StatusCode::kInvalidArgument, "/dev/stdout: is not a regular file"));
}

TEST_F(AtomicFileWriterTest, NeedsAFileName) {
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"\": not the name of a file"));
  EXPECT_THAT(AtomicFileWriter::Create(file_system_, "missing/"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AtomicFileWriterTest, WhatAKilledCommandLeftCanBeRemoved) {
  directory_.Write(".a.pb.0123456789abcdef.tmp", "half");
  const std::vector<std::string> others = {".0123456789abcdef.tmp", ".a.pb.tmp",
                                           ".b.0123456789abcdeg.tmp", "a.0123456789abcdef.tmp"};
  for (const std::string& name : others) directory_.Write(name, "");
  RemoveTemporaryFiles(FileSystem::Posix(), directory_.path());
  EXPECT_THAT(directory_.List(), UnorderedElementsAreArray(others));
}

}  // namespace
}  // namespace meridian
