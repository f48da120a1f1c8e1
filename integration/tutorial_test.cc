// The commands of docs/tutorial.md, one after the other, as they stand there.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

constexpr absl::string_view kRun = "./bazelw run //tools:";

// Splits at blanks; what stands in single quotes is one word.
std::vector<std::string> WordsOf(absl::string_view line) {
  std::vector<std::string> words = {""};
  bool quoted = false;
  for (char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

TEST(TutorialTest, EveryCommandRuns) {
  ASSERT_OK_AND_ASSIGN(const auto text, FileSystem::Posix().Map("docs/tutorial.md"));
  const TemporaryDirectory directory;
  std::filesystem::create_directory_symlink(std::filesystem::absolute("examples"),
                                            directory.PathOf("examples"));
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", directory.path().c_str(), /*overwrite=*/1), 0);
  int commands = 0;
  for (absl::string_view line : absl::StrSplit(text->bytes(), '\n')) {
    if (!absl::ConsumePrefix(&line, kRun)) continue;
    std::vector<std::string> words = WordsOf(line);
    ASSERT_GE(words.size(), 3u) << line;
    ASSERT_EQ(words[1], "--") << line;
    const CommandResult result =
        RunCommandLine(absl::StrCat("tools/", words[0]), {words.begin() + 2, words.end()});
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.standard_error;
    ++commands;
  }
  ASSERT_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
  EXPECT_GE(commands, 8);
}

}  // namespace
}  // namespace meridian
