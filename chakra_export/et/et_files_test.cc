#include "chakra_export/et/et_files.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto IsFile(int64_t rank, const std::string& path) {
  return AllOf(Field(&EtFile::rank, rank), Field(&EtFile::path, path));
}

auto IsRange(int64_t first, int64_t last) {
  return AllOf(Field(&NumberRange::first, first), Field(&NumberRange::last, last));
}

TEST(EtFilesTest, FindsTheFilesOfAPrefixInTheOrderOfRanks) {
  const TemporaryDirectory directory;
  for (const char* name : {"w.10.et", "w.2.et.gz", "w.0.et", "w.x.et", "w.1.json", "v.1.et", "w.et",
                           "w.3.et.bak", "ww.4.et", "w..et", "w.-5.et", "w.99999999999.et"}) {
    directory.Write(name, "");
  }
  ASSERT_OK_AND_ASSIGN(const EtFiles found,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  EXPECT_THAT(found.files, ElementsAre(IsFile(0, directory.PathOf("w.0.et")),
                                       IsFile(2, directory.PathOf("w.2.et.gz")),
                                       IsFile(10, directory.PathOf("w.10.et"))));
  EXPECT_THAT(found.missing_ranks, ElementsAre(IsRange(1, 1), IsRange(3, 9)));
  EXPECT_TRUE(found.is_prefix);
  EXPECT_THAT(
      CheckNoRankIsMissing(found, "w"),
      StatusIs(absl::StatusCode::kNotFound, "w: no file for rank 1; expected w.1.et or w.1.et.gz"));
}

TEST(EtFilesTest, APrefixMayHoldDotsAndPatternCharacters) {
  const TemporaryDirectory directory;
  directory.Write("step[1].v2.0.et", "");
  ASSERT_OK_AND_ASSIGN(const EtFiles found,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("step[1].v2")));
  EXPECT_THAT(found.files, ElementsAre(IsFile(0, directory.PathOf("step[1].v2.0.et"))));
  EXPECT_OK(CheckNoRankIsMissing(found, "w"));
}

TEST(EtFilesTest, TakesOneFileByItsPath) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("w.7.et", "");
  ASSERT_OK_AND_ASSIGN(EtFiles found, FindEtFiles(FileSystem::Posix(), path));
  EXPECT_THAT(found.files, ElementsAre(IsFile(7, path)));
  EXPECT_THAT(found.missing_ranks, IsEmpty());
  EXPECT_FALSE(found.is_prefix);

  const std::string unnumbered = directory.Write("trace.et", "");
  ASSERT_OK_AND_ASSIGN(found, FindEtFiles(FileSystem::Posix(), unnumbered));
  EXPECT_THAT(found.files, ElementsAre(IsFile(0, unnumbered)));
}

TEST(EtFilesTest, TwoFilesOfOneRankAreAnError) {
  const TemporaryDirectory directory;
  directory.Write("w.1.et", "");
  directory.Write("w.1.et.gz", "");
  EXPECT_THAT(FindEtFiles(FileSystem::Posix(), directory.PathOf("w")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("w.1.et and "), HasSubstr("w.1.et.gz are both of rank 1"))));
}

TEST(EtFilesTest, NoFilesIsNotFound) {
  const TemporaryDirectory directory;
  EXPECT_THAT(FindEtFiles(FileSystem::Posix(), directory.PathOf("w")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no")));
  EXPECT_THAT(FindEtFiles(FileSystem::Posix(), directory.path()),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(FindEtFiles(FileSystem::Posix(), directory.PathOf("missing/w")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(EtFilesTest, AnUnreadableFolderIsTheEnvironments) {
  const TemporaryDirectory directory;
  FaultyFileSystem file_system(FileSystem::Posix());
  file_system.Fail(Operation::kKind, 1, absl::PermissionDeniedError("w: no permission"));
  EXPECT_THAT(FindEtFiles(file_system, directory.PathOf("w")),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace meridian
