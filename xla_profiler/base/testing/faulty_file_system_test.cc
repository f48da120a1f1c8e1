#include "xla_profiler/base/testing/faulty_file_system.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::PrintToString;

class FaultyFileSystemTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  FaultyFileSystem file_system_{FileSystem::Posix()};
};

TEST_F(FaultyFileSystemTest, PassesCallsOnAndRecordsThem) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateFile(directory_.PathOf("a")));
  EXPECT_OK(file->Append("text"));
  EXPECT_OK(file->Sync());
  EXPECT_OK(file->Close());
  EXPECT_OK(file_system_.Rename(directory_.PathOf("a"), directory_.PathOf("b")));
  EXPECT_EQ(directory_.Read("b"), "text");
  EXPECT_THAT(file_system_.operations(),
              ElementsAre(Operation::kCreateFile, Operation::kAppend, Operation::kSync,
                          Operation::kClose, Operation::kRename));
}

TEST_F(FaultyFileSystemTest, FailsOnlyTheCallItWasTold) {
  file_system_.Fail(Operation::kDelete, 2, absl::UnknownError("told to"));
  const std::string path = directory_.Write("a", "");
  EXPECT_OK(file_system_.Delete(path));
  directory_.Write("a", "");
  EXPECT_THAT(file_system_.Delete(path), StatusIs(absl::StatusCode::kUnknown, "told to"));
  EXPECT_THAT(directory_.List(), ElementsAre("a"));
  EXPECT_OK(file_system_.Delete(path));
  EXPECT_THAT(directory_.List(), IsEmpty());
}

TEST_F(FaultyFileSystemTest, TearsAnAppend) {
  file_system_.TearAppend(1, 2, absl::ResourceExhaustedError("full"));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateFile(directory_.PathOf("a")));
  EXPECT_THAT(file->Append("text"), StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(directory_.Read("a"), "te");
}

TEST_F(FaultyFileSystemTest, MapsItsOwnTemporaryFiles) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateTemporary(directory_.path()));
  EXPECT_OK(file->Append("text"));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region, file_system_.MapTemporary(*file));
  EXPECT_EQ(region->bytes(), "text");
}

TEST_F(FaultyFileSystemTest, NamesOperationsInTestFailures) {
  EXPECT_EQ(PrintToString(Operation::kCreateFile), "CreateFile");
  EXPECT_EQ(PrintToString(Operation::kSyncDirectory), "SyncDirectory");
  EXPECT_EQ(PrintToString(Operation::kGlob), "Glob");
}

}  // namespace
}  // namespace meridian
