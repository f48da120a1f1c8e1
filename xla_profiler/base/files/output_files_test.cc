#include "xla_profiler/base/files/output_files.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status WriteText(ByteSink& sink) { return sink.Append("text"); }

TEST(OutputFilesTest, FilesAppearTogether) {
  const TemporaryDirectory directory;
  OutputFiles outputs(FileSystem::Posix());
  ASSERT_OK(outputs.Write("combined", directory.PathOf("a"), WriteText));
  ASSERT_OK(outputs.Write("report", directory.PathOf("b.gz"), WriteText));
  EXPECT_NE(access(directory.PathOf("a").c_str(), F_OK), 0);
  ASSERT_OK(outputs.Commit());
  EXPECT_THAT(directory.List(), ElementsAre("a", "b.gz"));
  EXPECT_EQ(directory.Read("a"), "text");
  EXPECT_EQ(directory.Read("b.gz").substr(0, 2), "\x1f\x8b");
  ASSERT_EQ(outputs.files().size(), 2u);
  EXPECT_EQ(outputs.files()[0].kind, "combined");
  EXPECT_EQ(outputs.files()[0].bytes, 4u);
}

TEST(OutputFilesTest, FoldersAreMade) {
  const TemporaryDirectory directory;
  OutputFiles outputs(FileSystem::Posix());
  ASSERT_OK(outputs.Write("report", directory.PathOf("new/folder/a"), WriteText));
  ASSERT_OK(outputs.Commit());
  EXPECT_NE(directory.Read("new/folder/a"), "");
}

TEST(OutputFilesTest, AfterAFailureThereIsNone) {
  const TemporaryDirectory directory, other;
  {
    OutputFiles outputs(FileSystem::Posix());
    ASSERT_OK(outputs.Write("combined", directory.PathOf("a"), WriteText));
    // A file is no folder.
    const std::string file = other.Write("file", "");
    EXPECT_FALSE(outputs.Write("report", file + "/b", WriteText).ok());
    EXPECT_FALSE(outputs
                     .Write("report", directory.PathOf("c"),
                            [](ByteSink&) { return absl::InvalidArgumentError("no"); })
                     .ok());
  }
  EXPECT_THAT(directory.List(), IsEmpty());
}

// A disk that is full when the second file is synced: the first is not replaced either.
TEST(OutputFilesTest, NothingIsRenamedBeforeAllIsOnTheDisk) {
  const TemporaryDirectory directory;
  directory.Write("a", "old");
  FaultyFileSystem files(FileSystem::Posix());
  files.Fail(Operation::kSync, 2, absl::ResourceExhaustedError("disk full"));
  {
    OutputFiles outputs(files);
    ASSERT_OK(outputs.Write("combined", directory.PathOf("a"), WriteText));
    EXPECT_FALSE(outputs.Write("report", directory.PathOf("b"), WriteText).ok());
  }
  EXPECT_THAT(directory.List(), ElementsAre("a"));
  EXPECT_EQ(directory.Read("a"), "old");
}

TEST(OutputFilesTest, ARenameThatFailsLeavesTheFilesAfterItAsTheyWere) {
  const TemporaryDirectory directory;
  for (const char* name : {"a", "b", "c"}) directory.Write(name, "old");
  FaultyFileSystem files(FileSystem::Posix());
  files.Fail(Operation::kRename, 2, absl::UnavailableError("planned"));
  {
    OutputFiles outputs(files);
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_OK(outputs.Write("report", directory.PathOf(name), WriteText));
    }
    EXPECT_THAT(outputs.Commit(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("planned")));
  }
  EXPECT_THAT(directory.List(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(directory.Read("a"), "text");
  EXPECT_EQ(directory.Read("b"), "old");
  EXPECT_EQ(directory.Read("c"), "old");
}

TEST(OutputFilesTest, FilesCanBeReadBeforeTheyAppear) {
  const TemporaryDirectory directory;
  OutputFiles outputs(FileSystem::Posix());
  ASSERT_OK(outputs.Write("combined", directory.PathOf("a"), WriteText));
  ASSERT_OK_AND_ASSIGN(const auto region, FileSystem::Posix().Map(outputs.ReadablePath(0)));
  EXPECT_EQ(region->bytes(), "text");
  ASSERT_OK(outputs.Commit());
  EXPECT_EQ(outputs.ReadablePath(0), directory.PathOf("a"));
}

TEST(OutputFilesTest, AnInputIsNoOutputUnderAnyName) {
  const TemporaryDirectory directory;
  const std::string input = directory.Write("in.pb", "x");
  ASSERT_EQ(symlink(directory.path().c_str(), directory.PathOf("link").c_str()), 0);
  for (const std::string& output :
       {input, directory.path() + "/./in.pb", directory.PathOf("link/in.pb")}) {
    EXPECT_THAT(CheckOutputPaths({"", input}, {"", output}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overwritten")))
        << output;
  }
  EXPECT_OK(CheckOutputPaths({input}, {directory.PathOf("out.pb"), ""}));
}

TEST(OutputFilesTest, APrefixDoesNotWriteOverAnInput) {
  const TemporaryDirectory directory;
  const std::string input = directory.Write("k.3.json", "");
  const std::vector<std::string> suffixes = {".json"};
  for (const std::string& prefix : {directory.PathOf("k"), directory.path() + "/.//k"}) {
    EXPECT_THAT(CheckOutputPrefix("--linked_json", prefix, suffixes, {"", input}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("k.3.json is an input")));
  }
  // Another suffix, another name, another folder.
  EXPECT_OK(CheckOutputPrefix("--output", directory.PathOf("k"), {".et", ".et.gz"}, {input}));
  EXPECT_OK(CheckOutputPrefix("--output", directory.PathOf("k2"), suffixes, {input}));
  EXPECT_OK(CheckOutputPrefix("--output", directory.PathOf("sub/k"), suffixes, {input}));
}

TEST(OutputFilesTest, AFolderIsNoPrefix) {
  for (const char* prefix : {"out/", "/", ".", "out/.."}) {
    EXPECT_THAT(CheckOutputPrefix("--output", prefix, {".et"}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("names a folder; expected a prefix in it")))
        << prefix;
  }
}

TEST(OutputFilesTest, TwoOutputsAreNotOneFile) {
  const TemporaryDirectory directory;
  EXPECT_THAT(CheckOutputPaths({}, {directory.PathOf("a"), directory.path() + "/./a"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two outputs")));
}

// Each output was once compared with each input: --output_dir of 1,024 nodes made 3.3 million system
// calls. These would be over a billion.
TEST(OutputFilesTest, ManyOutputsAreNotComparedPairByPair) {
  const TemporaryDirectory directory;
  std::vector<std::string> inputs, outputs;
  for (int i = 0; i < 20'000; ++i) {
    inputs.push_back(directory.PathOf(absl::StrCat("in/node", i)));
    outputs.push_back(directory.PathOf(absl::StrCat("out/node", i)));
  }
  EXPECT_OK(CheckOutputPaths(inputs, outputs));
  outputs.push_back(inputs[7]);
  EXPECT_THAT(CheckOutputPaths(inputs, outputs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in/node7 is an input")));
}

}  // namespace
}  // namespace meridian
