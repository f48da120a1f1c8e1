// SPDX-License-Identifier: Apache-2.0
// Strict command lines over Abseil's flags. Abseil's own parser exits with 1 on a mistake; our
// contract is 2, with a message that names the nearest flag.
//
//   command --flag=value --flag value --switch --noswitch -- not_flags
#ifndef XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_
#define XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

struct CommandSpec {
  std::string name;
  // What the command does, in one sentence.
  std::string summary;
  // Whole command lines to try.
  std::vector<std::string> examples;
  // The command's own flags, in the order --help lists them. Any other flag is refused, even one
  // that some library declares.
  std::vector<std::string> flags;
};

struct ParsedCommandLine {
  bool help = false;
  // Arguments that are no flags.
  std::vector<std::string> arguments;
};

// Sets the Abseil flags named in argv (argv[0] is the program). --help or -h sets `help`. A flag
// given twice, unknown, without a value or with one that does not parse is InvalidArgument:
// "unknown flag --trase; did you mean --trace?".
absl::StatusOr<ParsedCommandLine> ParseCommandLine(const CommandSpec& spec,
                                                   const std::vector<std::string>& argv);

// Returns the --help page: summary, usage, flags with type-free defaults and help, examples.
std::string HelpText(const CommandSpec& spec);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_COMMAND_LINE_COMMAND_LINE_H_
