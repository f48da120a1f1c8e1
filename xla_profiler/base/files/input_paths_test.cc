#include "xla_profiler/base/files/input_paths.h"

#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

TEST(NaturalLessTest, ComparesRunsOfDigitsAsNumbers) {
  EXPECT_TRUE(NaturalLess("rank2", "rank10"));
  EXPECT_FALSE(NaturalLess("rank10", "rank2"));
  EXPECT_TRUE(NaturalLess("a1b20", "a1b100"));
  EXPECT_TRUE(NaturalLess("9", "10.pb"));
}

TEST(NaturalLessTest, ComparesNumbersOfAnyLength) {
  EXPECT_TRUE(NaturalLess("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(NaturalLess("9999999999999999999999", "10000000000000000000000"));
}

TEST(NaturalLessTest, PutsAPrefixFirst) {
  EXPECT_TRUE(NaturalLess("rank", "rank0"));
  EXPECT_TRUE(NaturalLess("", "a"));
}

TEST(NaturalLessTest, LeadingZerosKeepTheirOrder) {
  EXPECT_TRUE(NaturalLess("rank01", "rank02"));
  EXPECT_TRUE(NaturalLess("rank09", "rank10"));
  EXPECT_FALSE(NaturalLess("rank09", "rank09"));
}

TEST(ResolvePathTest, StartsAtTheWorkingDirectory) {
  EXPECT_EQ(ResolvePath("a/b", "/home"), "/home/a/b");
  EXPECT_EQ(ResolvePath("a", "/"), "/a");
  EXPECT_EQ(ResolvePath("a", ""), "a");
  EXPECT_EQ(ResolvePath("/a", "/home"), "/a");
  EXPECT_EQ(ResolvePath("", "/home"), "");
}

class ExpandPathsTest : public ::testing::Test {
 protected:
  ExpandPathsTest() { options_.working_directory = directory_.path(); }

  absl::StatusOr<std::vector<std::string>> Expand(absl::string_view comma_list) {
    return ExpandPaths(file_system_, comma_list, options_);
  }

  TemporaryDirectory directory_;
  FaultyFileSystem file_system_{FileSystem::Posix()};
  ExpandOptions options_;
};

TEST_F(ExpandPathsTest, KeepsTheOrderOfTheList) {
  const std::string b = directory_.Write("b", "");
  const std::string a = directory_.Write("a", "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand(absl::StrCat("b,", a)));
  EXPECT_THAT(paths, ElementsAre(b, a));
}

TEST_F(ExpandPathsTest, SortsAFolderNaturallyAndTakesItsFilesOfTheSuffixes) {
  const std::string rank10 = directory_.Write("run/rank10.pb", "");
  const std::string rank2 = directory_.Write("run/rank2.pb.gz", "");
  directory_.Write("run/notes.txt", "");
  directory_.Write("run/folder.pb/rank1.pb", "");
  options_.folder_suffixes = {".pb", ".pb.gz"};
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("run"));
  EXPECT_THAT(paths, ElementsAre(rank2, rank10));
}

TEST_F(ExpandPathsTest, TakesAllRegularFilesOfAFolderWithoutSuffixes) {
  const std::string a = directory_.Write("run/a.pb", "");
  const std::string b = directory_.Write("run/b.txt", "");
  directory_.Write("run/folder/c", "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("run/"));
  EXPECT_THAT(paths, ElementsAre(a, b));
}

TEST_F(ExpandPathsTest, TakesANamedFileWhateverItsSuffix) {
  const std::string a = directory_.Write("a.txt", "");
  options_.folder_suffixes = {".pb"};
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("a.txt"));
  EXPECT_THAT(paths, ElementsAre(a));
}

TEST_F(ExpandPathsTest, SortsAGlobNaturallyAndOpensItsFolders) {
  const std::string rank10 = directory_.Write("rank10/a.pb", "");
  const std::string rank9 = directory_.Write("rank9", "");
  const std::string rank2 = directory_.Write("rank2/a.pb", "");
  directory_.Write("rank2/b.txt", "");
  options_.folder_suffixes = {".pb"};
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("rank*"));
  EXPECT_THAT(paths, ElementsAre(rank2, rank9, rank10));
}

TEST_F(ExpandPathsTest, TakesAnExistingNameForNoGlob) {
  const std::string brackets = directory_.Write("rank[1]", "");
  directory_.Write("rank1", "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("rank[1]"));
  EXPECT_THAT(paths, ElementsAre(brackets));
}

TEST_F(ExpandPathsTest, TakesTheWorkingDirectoryForNoGlob) {
  const std::string a = directory_.Write("run[1]*\\/a.pb", "");
  directory_.Write("run1/b.pb", "");
  options_.working_directory = directory_.PathOf("run[1]*\\");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> paths, Expand("*.pb"));
  EXPECT_THAT(paths, ElementsAre(a));
}

TEST_F(ExpandPathsTest, NamesTheItemThatMatchesNothing) {
  directory_.Write("a", "");
  EXPECT_THAT(Expand("a,b"), StatusIs(absl::StatusCode::kNotFound, "b: no such file or folder"));
  EXPECT_THAT(Expand("a,b*"), StatusIs(absl::StatusCode::kNotFound, "b*: no such file or folder"));
}

TEST_F(ExpandPathsTest, SaysWhatAFolderLacks) {
  directory_.Write("run/a.txt", "");
  options_.folder_suffixes = {".pb", ".pb.gz"};
  EXPECT_THAT(Expand("run"),
              StatusIs(absl::StatusCode::kNotFound, "run: no .pb or .pb.gz file in this folder"));
}

TEST_F(ExpandPathsTest, NamesBothItemsThatGiveTheSameFile) {
  directory_.Write("run/a.pb", "");
  EXPECT_THAT(Expand("run,run/../run/a.pb"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       directory_.PathOf("run/../run/a.pb") +
                           ": named twice, by run and by run/../run/a.pb"));
}

TEST_F(ExpandPathsTest, RefusesEmptyLists) {
  EXPECT_THAT(Expand(""),
              StatusIs(absl::StatusCode::kInvalidArgument, "the list of files is empty"));
  directory_.Write("a", "");
  EXPECT_THAT(Expand("a,"),
              StatusIs(absl::StatusCode::kInvalidArgument, "an item of the list is empty"));
}

TEST_F(ExpandPathsTest, ReportsADanglingLink) {
  ASSERT_EQ(symlink("nowhere", directory_.PathOf("link.pb").c_str()), 0);
  EXPECT_THAT(Expand("."),
              StatusIs(absl::StatusCode::kNotFound,
                       directory_.PathOf("./link.pb") + ": No such file or directory"));
}

TEST_F(ExpandPathsTest, PassesFailuresOn) {
  directory_.Write("run/a.pb", "");
  for (Operation operation : {Operation::kKind, Operation::kList, Operation::kGlob}) {
    FaultyFileSystem file_system(FileSystem::Posix());
    file_system.Fail(operation, 1, absl::PermissionDeniedError("planned"));
    EXPECT_THAT(ExpandPaths(file_system, operation == Operation::kGlob ? "r*" : "run", options_),
                StatusIs(absl::StatusCode::kPermissionDenied, "planned"))
        << operation;
  }
}

}  // namespace
}  // namespace meridian
