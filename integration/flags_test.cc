// The flags of all commands are a contract with scripts: testdata/flags.txt lists them, and none
// may go. A new flag is added there with the change that brings it.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"

namespace meridian {
namespace {

// Returns the flags that a command's --help lists, in its order.
std::vector<std::string> FlagsOf(const std::string& program,
                                 const std::vector<std::string>& arguments) {
  const CommandResult result = RunCommandLine("tools/" + program, arguments);
  EXPECT_EQ(result.exit_code, 0) << program << ": " << result.standard_error;
  std::vector<std::string> flags;
  for (absl::string_view line : absl::StrSplit(result.standard_output, '\n')) {
    // Flags stand behind two spaces; examples begin with the command or stand further right.
    if (!absl::ConsumePrefix(&line, "  --")) continue;
    flags.emplace_back(line.substr(0, line.find(' ')));
  }
  return flags;
}

TEST(FlagsTest, EveryCommandHasTheListedFlags) {
  std::ifstream file("integration/testdata/flags.txt");
  std::stringstream text;
  text << file.rdbuf();
  int commands = 0;
  for (const absl::string_view line : absl::StrSplit(text.str(), '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    // "workload_model fit" is a command of a command.
    std::vector<std::string> names = absl::StrSplit(parts.first, ' ');
    std::vector<std::string> arguments(names.begin() + 1, names.end());
    arguments.push_back("--help");
    EXPECT_EQ(absl::StrJoin(FlagsOf(names[0], arguments), " "), parts.second) << parts.first;
    // The one program has the same command.
    names.insert(names.begin(), "help");
    EXPECT_EQ(absl::StrJoin(FlagsOf("meridian", names), " "), parts.second) << parts.first;
    ++commands;
  }
  EXPECT_EQ(commands, 21);
}

}  // namespace
}  // namespace meridian
