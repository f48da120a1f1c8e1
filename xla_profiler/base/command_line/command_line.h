// SPDX-License-Identifier: Apache-2.0
// Strict command lines: a mistake is an error (exit code 2) with a message that names the nearest
// flag. And paths as the user who started the program means them.
//
//   command --flag=value --flag value --switch --noswitch -- not_flags
#ifndef XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_
#define XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/command_line/flag.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct Command {
  std::string name;
  // What the command does, in one sentence.
  std::string summary;
  // Whole command lines to try.
  std::vector<std::string> examples;
  // The command's own flags, in the order --help lists them. Any other flag is refused.
  std::vector<AnyFlag*> flags = {};
  // Does it and returns the exit code.
  std::function<absl::StatusOr<int>()> body = nullptr;
  // A command that consists of others, "NAME fit --flag=value", has these and neither flags nor a
  // body.
  std::vector<Command> commands = {};
  // So many arguments may come without names: they are values of the first flags, in their order.
  size_t unnamed = 0;
};

struct ParsedCommandLine {
  bool help = false;
  bool version = false;
  // Arguments that are no flags.
  std::vector<std::string> arguments;
};

// True for the spellings of --help and of --version.
bool IsHelpFlag(absl::string_view argument);
bool IsVersionFlag(absl::string_view argument);

// Sets the command's flags from argv (argv[0] is the program). --help or -h sets `help`, --version
// sets `version`. A flag given twice, unknown, without a value or with one that does not parse is
// InvalidArgument: "unknown flag --trase; did you mean --trace?".
absl::StatusOr<ParsedCommandLine> ParseCommandLine(const Command& command,
                                                   const std::vector<std::string>& argv);

// Returns the command of that name, or InvalidArgument that proposes the nearest.
absl::StatusOr<const Command*> FindCommand(const std::vector<Command>& commands,
                                           absl::string_view name);

// Returns the --help page: summary, usage, flags with type-free defaults and help, or the commands
// that it consists of, examples. `prefix` stands before the command's name: "meridian ", say.
std::string HelpText(const Command& command, absl::string_view prefix = "");

// Returns the variable of the process's environment; empty when there is none.
std::string EnvironmentVariable(const char* name);

// The directory that relative paths start from: the user's, also under `bazel run`. Empty for the
// process's own.
std::string UserDirectory();

// Returns the path as the user meant it.
std::string UserPath(const std::string& path);

// Input files are inflated where $TMPDIR says.
InputFileOptions UserInputOptions();

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_
