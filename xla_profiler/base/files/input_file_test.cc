#include "xla_profiler/base/files/input_file.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Text that shrinks about threefold.
std::string Numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i * 7919LL, "\n");
  return text;
}

class InputFileTest : public ::testing::Test {
 protected:
  InputFileTest() : file_system_(FileSystem::Posix()) {
    options_.temporary_directory = directory_.path();
  }

  absl::StatusOr<InputFile> Open(absl::string_view contents) {
    return InputFile::Open(file_system_, directory_.Write("a.pb", contents), options_);
  }

  TemporaryDirectory directory_;
  FaultyFileSystem file_system_;
  InputFileOptions options_;
};

TEST_F(InputFileTest, MapsAPlainFile) {
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open("plain"));
  EXPECT_EQ(file.bytes(), "plain");
  EXPECT_EQ(file.path(), directory_.PathOf("a.pb"));
  EXPECT_EQ(file.file_size(), 5);
  EXPECT_FALSE(file.was_compressed());
  EXPECT_THAT(file_system_.operations(), ElementsAre(Operation::kMap));
}

TEST_F(InputFileTest, OpensAnEmptyFile) {
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open(""));
  EXPECT_THAT(file.bytes(), IsEmpty());
  EXPECT_FALSE(file.was_compressed());
}

TEST_F(InputFileTest, TakesHalfTheMagicForAPlainFile) {
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open("\x1f"));
  EXPECT_EQ(file.bytes(), "\x1f");
}

TEST_F(InputFileTest, InflatesGzipWhateverItsName) {
  // More than one buffer of output.
  const std::string text = Numbers(500000);
  const std::string compressed = GzipText(text);
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open(compressed));
  EXPECT_TRUE(file.bytes() == text);
  EXPECT_EQ(file.file_size(), compressed.size());
  EXPECT_TRUE(file.was_compressed());
  EXPECT_THAT(directory_.List(), ElementsAre("a.pb"));
}

TEST_F(InputFileTest, StaysValidWhenMoved) {
  ASSERT_OK_AND_ASSIGN(InputFile file, Open(GzipText("text")));
  const InputFile moved = std::move(file);
  EXPECT_EQ(moved.bytes(), "text");
}

TEST_F(InputFileTest, InflatesConcatenatedMembersAsOneFile) {
  ASSERT_OK_AND_ASSIGN(const InputFile file,
                       Open(absl::StrCat(GzipText("one "), GzipText(""), GzipText("two"))));
  EXPECT_EQ(file.bytes(), "one two");
}

TEST_F(InputFileTest, InflatesAnEmptyMemberToNothing) {
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open(GzipText("")));
  EXPECT_THAT(file.bytes(), IsEmpty());
  EXPECT_TRUE(file.was_compressed());
}

TEST_F(InputFileTest, IgnoresZerosAfterTheLastMember) {
  ASSERT_OK_AND_ASSIGN(const InputFile file,
                       Open(absl::StrCat(GzipText("text"), std::string(512, '\0'))));
  EXPECT_EQ(file.bytes(), "text");
}

TEST_F(InputFileTest, RefusesGarbageAfterTheLastMember) {
  const std::string compressed = GzipText("text");
  EXPECT_THAT(Open(compressed + "junk"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       absl::StrCat(directory_.PathOf("a.pb"), ": offset ", compressed.size(),
                                    ": unknown data after the end of the gzip data")));
}

TEST_F(InputFileTest, RefusesEveryTruncation) {
  const std::string compressed = GzipText("some text, some more text");
  for (size_t size = 2; size < compressed.size(); ++size) {
    EXPECT_THAT(Open(compressed.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat(directory_.PathOf("a.pb"), ": offset ", size,
                                      ": truncated gzip data")));
  }
}

TEST_F(InputFileTest, GivesOffsetAndReasonOfDamage) {
  std::string compressed = GzipText("text");
  // The first byte after the 10 of the header: the last block, of the reserved type 3.
  compressed[10] = '\x07';
  EXPECT_THAT(Open(compressed),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       directory_.PathOf("a.pb") + ": offset 11: invalid block type"));
}

TEST_F(InputFileTest, ChecksTheChecksum) {
  std::string compressed = GzipText("text");
  compressed[compressed.size() - 8] ^= 1;
  EXPECT_THAT(Open(compressed),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("incorrect data check")));
}

TEST_F(InputFileTest, RefusesABomb) {
  options_.max_inflated_bytes = 1000;
  options_.max_inflation_ratio = 50;
  EXPECT_THAT(Open(GzipText(std::string(1000000, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inflates to more than 50 times its size")));
}

TEST_F(InputFileTest, AcceptsAHighRatioBelowTheSizeLimit) {
  options_.max_inflated_bytes = 1000000;
  options_.max_inflation_ratio = 1;
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open(GzipText(std::string(1000000, 'x'))));
  EXPECT_EQ(file.bytes().size(), 1000000);
}

TEST_F(InputFileTest, AcceptsALargeFileBelowTheRatioLimit) {
  options_.max_inflated_bytes = 0;
  options_.max_inflation_ratio = 20;
  const std::string text = Numbers(10000);
  ASSERT_OK_AND_ASSIGN(const InputFile file, Open(GzipText(text)));
  EXPECT_TRUE(file.bytes() == text);
}

TEST_F(InputFileTest, HasNoRatioLimitAtTheLargestValue) {
  options_.max_inflated_bytes = 0;
  options_.max_inflation_ratio = UINT64_MAX;
  EXPECT_OK(Open(GzipText(std::string(1000000, 'x'))));
}

TEST_F(InputFileTest, NamesTheTemporaryDirectoryWhenTheDiskIsFull) {
  file_system_.Fail(Operation::kAppend, 1,
                    absl::ResourceExhaustedError("scratch: No space left on device"));
  const absl::Status status = Open(GzipText("text")).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               directory_.PathOf("a.pb") + ": scratch: No space left on device"));
  EXPECT_EQ(ExitCode(status), kExitEnvironment);
}

TEST_F(InputFileTest, NamesTheFileWhateverFails) {
  for (Operation operation :
       {Operation::kCreateTemporary, Operation::kAppend, Operation::kMapTemporary}) {
    FaultyFileSystem file_system(FileSystem::Posix());
    file_system.Fail(operation, 1, absl::UnknownError("scratch: Input/output error"));
    EXPECT_THAT(InputFile::Open(file_system, directory_.Write("a.pb", GzipText("text")), options_),
                StatusIs(absl::StatusCode::kUnknown,
                         directory_.PathOf("a.pb") + ": scratch: Input/output error"))
        << operation;
  }
}

#ifndef MERIDIAN_SANITIZED  // Their allocators end the program themselves.
// Once there is a temporary file, the process has no more memory than the buffer of a megabyte that
// is inflated into and scraps: zlib's own 7 KiB are missing.
class FileSystemThatTakesTheMemory : public FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateTemporary(
      const std::string& directory) override {
    absl::StatusOr<std::unique_ptr<WritableFile>> file =
        FaultyFileSystem::CreateTemporary(directory);
    // Else large pieces are mapped, and unmapped when they are freed.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    // Volatile: the compiler may drop what is only allocated and freed.
    void* volatile for_the_buffer = std::malloc((1 << 20) + 64);
    const rlimit nothing_new = {0, 0};
    setrlimit(RLIMIT_AS, &nothing_new);
    while (std::malloc(2 << 10) != nullptr) {
    }
    std::free(for_the_buffer);
    return file;
  }
};

TEST_F(InputFileTest, WithoutMemoryToInflateItFailsInsteadOfAborting) {
  const std::string path = directory_.Write("a.pb", GzipText("text"));
  EXPECT_EXIT(
      {
        FileSystemThatTakesTheMemory file_system(FileSystem::Posix());
        const absl::Status status = InputFile::Open(file_system, path, options_).status();
        // The offset says that nothing was inflated yet.
        const bool failed = absl::IsResourceExhausted(status) &&
                            absl::EndsWith(status.message(), "a.pb: offset 0: out of memory");
        _exit(failed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}
#endif

TEST_F(InputFileTest, ReportsAFileItCannotMap) {
  EXPECT_THAT(InputFile::Open(file_system_, directory_.PathOf("missing"), options_),
              StatusIs(absl::StatusCode::kNotFound,
                       directory_.PathOf("missing") + ": No such file or directory"));
}

}  // namespace
}  // namespace meridian
