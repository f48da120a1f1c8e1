#include "xla_profiler/base/files/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PosixFileSystemTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  FileSystem& file_system_ = FileSystem::Posix();
};

TEST_F(PosixFileSystemTest, AppendsToANewFile) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateFile(directory_.PathOf("a")));
  EXPECT_OK(file->Append("one "));
  EXPECT_OK(file->Append("two"));
  EXPECT_OK(file->Sync());
  EXPECT_OK(file->Close());
  EXPECT_EQ(directory_.Read("a"), "one two");
}

TEST_F(PosixFileSystemTest, CreatesFilesWithTheModeOfAPlainCreation) {
  ASSERT_OK(file_system_.CreateFile(directory_.PathOf("a")));
  const mode_t mask = umask(0);
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(directory_.PathOf("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(PosixFileSystemTest, DoesNotCreateAFileOverAnother) {
  const std::string path = directory_.Write("a", "old");
  EXPECT_THAT(file_system_.CreateFile(path),
              StatusIs(absl::StatusCode::kAlreadyExists, path + ": File exists"));
  EXPECT_EQ(directory_.Read("a"), "old");
}

TEST_F(PosixFileSystemTest, DoesNotCreateAFileInAMissingFolder) {
  EXPECT_THAT(file_system_.CreateFile(directory_.PathOf("missing/a")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PosixFileSystemTest, WritesWhatFitsAndReportsTheRest) {
  // Behaves like a disk with room for 6 more bytes: a short write, then an error.
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit six_bytes = {6, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateFile(directory_.PathOf("a")));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &six_bytes), 0);
  const absl::Status status = file->Append("12345678");
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               directory_.PathOf("a") + ": File too large"));
  EXPECT_EQ(directory_.Read("a"), "123456");
}

TEST_F(PosixFileSystemTest, WhatIsOnTheDiskLeavesMemory) {
  constexpr size_t kBytes = size_t{8} << 20;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateFile(directory_.PathOf("a")));
  ASSERT_OK(file->Append(std::string(kBytes, 'x')));
  ASSERT_OK(file->Sync());
  ASSERT_OK(file->Append(std::string(kBytes, 'y')));
  ASSERT_OK(file->Close());
  const int fd = open(directory_.PathOf("a").c_str(), O_RDONLY | O_CLOEXEC);
  struct statfs info;
  ASSERT_EQ(fstatfs(fd, &info), 0);
  void* bytes = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  ASSERT_NE(bytes, MAP_FAILED);
  std::vector<unsigned char> pages(kBytes / sysconf(_SC_PAGESIZE));
  ASSERT_EQ(mincore(bytes, kBytes, pages.data()), 0);
  munmap(bytes, kBytes);
  if (info.f_type == TMPFS_MAGIC) GTEST_SKIP() << "such files are memory";
  EXPECT_EQ(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }), 0);
}

TEST_F(PosixFileSystemTest, MapsTheBytesOfAFile) {
  const std::string contents("a\0b\n", 4);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region,
                       file_system_.Map(directory_.Write("a", contents)));
  EXPECT_EQ(region->bytes(), contents);
}

// Returns the pages of files that are in the process's memory.
int64_t MappedPages() {
  int64_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST_F(PosixFileSystemTest, WhatIsForgottenLeavesMemoryAndComesBack) {
  constexpr size_t kBytes = size_t{32} << 20;
  const std::string text(kBytes, 'x');
  const std::string path = directory_.Write("a", text);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region, file_system_.Map(path));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> other, file_system_.Map(path));
  EXPECT_EQ(region->bytes(), text);
  EXPECT_EQ(other->bytes(), text);
  const int64_t pages = MappedPages();
  ForgetMapped(region->bytes().substr(1));
  EXPECT_LT(MappedPages(), pages - pages / 4) << "of the other one all are there";
  ForgetMapped(text);
  EXPECT_EQ(text, std::string(kBytes, 'x')) << "is not of a file";
  EXPECT_EQ(region->bytes(), text);
  ForgetMapped(region->bytes().substr(kBytes / 2));
  region.reset();
  ForgetMapped(other->bytes());
  EXPECT_EQ(other->bytes(), text);
}

TEST_F(PosixFileSystemTest, MapsAnEmptyFileAsNoBytes) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region,
                       file_system_.Map(directory_.Write("a", "")));
  EXPECT_THAT(region->bytes(), IsEmpty());
}

TEST_F(PosixFileSystemTest, MapsAFileLargerThanFourGibibytes) {
  const std::string path = directory_.Write("a", "head");
  const off_t size = (off_t{9} << 30) / 2;
  ASSERT_EQ(truncate(path.c_str(), size), 0);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region, file_system_.Map(path));
  EXPECT_EQ(region->bytes().size(), 4831838208);
  EXPECT_EQ(region->bytes().substr(0, 4), "head");
  EXPECT_EQ(region->bytes().back(), '\0');
}

TEST_F(PosixFileSystemTest, MapsOnlyRegularFiles) {
  EXPECT_THAT(
      file_system_.Map(directory_.path()),
      StatusIs(absl::StatusCode::kInvalidArgument, directory_.path() + ": not a regular file"));
  EXPECT_THAT(file_system_.Map("/dev/null"), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_EQ(mkfifo(directory_.PathOf("pipe").c_str(), 0600), 0);
  EXPECT_THAT(file_system_.Map(directory_.PathOf("pipe")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PosixFileSystemTest, NamesTheFileItCannotMap) {
  EXPECT_THAT(file_system_.Map(directory_.PathOf("a")),
              StatusIs(absl::StatusCode::kNotFound,
                       directory_.PathOf("a") + ": No such file or directory"));
}

TEST_F(PosixFileSystemTest, MapsATemporaryFileThatNobodySees) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file,
                       file_system_.CreateTemporary(directory_.path()));
  EXPECT_THAT(directory_.List(), IsEmpty());
  EXPECT_OK(file->Append("bytes"));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MappedRegion> region, file_system_.MapTemporary(*file));
  file.reset();
  EXPECT_EQ(region->bytes(), "bytes");
}

TEST_F(PosixFileSystemTest, NamesTheDirectoryThatCannotHoldATemporaryFile) {
  EXPECT_THAT(file_system_.CreateTemporary(directory_.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(directory_.PathOf("missing"))));
}

TEST_F(PosixFileSystemTest, RenamesOverAnExistingFile) {
  const std::string from = directory_.Write("new", "new");
  const std::string to = directory_.Write("old", "old");
  EXPECT_OK(file_system_.Rename(from, to));
  EXPECT_THAT(directory_.List(), ElementsAre("old"));
  EXPECT_EQ(directory_.Read("old"), "new");
}

TEST_F(PosixFileSystemTest, ReportsWhatItCannotRenameOrDelete) {
  EXPECT_THAT(file_system_.Rename(directory_.PathOf("a"), directory_.PathOf("b")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(file_system_.Delete(directory_.PathOf("a")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PosixFileSystemTest, DeletesAFile) {
  EXPECT_OK(file_system_.Delete(directory_.Write("a", "")));
  EXPECT_THAT(directory_.List(), IsEmpty());
}

TEST_F(PosixFileSystemTest, CreatesFoldersWithTheirParents) {
  EXPECT_OK(file_system_.CreateDirectories(directory_.PathOf("a/b/c")));
  EXPECT_OK(file_system_.CreateDirectories(directory_.PathOf("a/b")));
  ASSERT_OK_AND_ASSIGN(const FileKind kind, file_system_.Kind(directory_.PathOf("a/b/c")));
  EXPECT_EQ(kind, FileKind::kDirectory);
}

TEST_F(PosixFileSystemTest, DoesNotCreateAFolderOverAFile) {
  EXPECT_THAT(file_system_.CreateDirectories(directory_.Write("a", "")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PosixFileSystemTest, SyncsADirectory) {
  EXPECT_OK(file_system_.SyncDirectory(directory_.path()));
  EXPECT_THAT(file_system_.SyncDirectory(directory_.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PosixFileSystemTest, SyncsTheFileSystemOfADirectory) {
  EXPECT_OK(file_system_.SyncFileSystem(directory_.path()));
  EXPECT_THAT(file_system_.SyncFileSystem(directory_.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PosixFileSystemTest, TellsKindsThroughLinks) {
  const std::string file = directory_.Write("a", "");
  const std::string link = directory_.PathOf("link");
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  ASSERT_OK_AND_ASSIGN(const FileKind link_kind, file_system_.Kind(link));
  EXPECT_EQ(link_kind, FileKind::kRegular);
  ASSERT_OK_AND_ASSIGN(const FileKind device_kind, file_system_.Kind("/dev/null"));
  EXPECT_EQ(device_kind, FileKind::kOther);
  EXPECT_THAT(file_system_.Kind(directory_.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PosixFileSystemTest, ListsTheNamesInAFolder) {
  directory_.Write("a", "");
  directory_.Write(".hidden", "");
  directory_.Write("folder/b", "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, file_system_.List(directory_.path()));
  EXPECT_THAT(names, UnorderedElementsAre("a", ".hidden", "folder"));
}

TEST_F(PosixFileSystemTest, ListsOnlyFolders) {
  EXPECT_THAT(file_system_.List(directory_.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(file_system_.List(directory_.Write("a", "")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PosixFileSystemTest, FindsThePathsOfAPattern) {
  const std::string a1 = directory_.Write("run1/a.pb", "");
  const std::string a2 = directory_.Write("run2/a.pb", "");
  directory_.Write("run2/a.txt", "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths,
                       file_system_.Glob(directory_.PathOf("run[0-9]/?.p*")));
  EXPECT_THAT(paths, UnorderedElementsAre(a1, a2));
}

TEST_F(PosixFileSystemTest, FindsNothingInAMissingFolder) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths,
                       file_system_.Glob(directory_.PathOf("missing/*.pb")));
  EXPECT_THAT(paths, IsEmpty());
}

}  // namespace
}  // namespace meridian
