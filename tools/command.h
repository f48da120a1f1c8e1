// SPDX-License-Identifier: Apache-2.0
// What every command has in common: flags, --help, errors, exit codes.
#ifndef TOOLS_COMMAND_H_
#define TOOLS_COMMAND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/command_line/command_line.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {

// Finds the command that the arguments name, if it consists of several, parses its flags (and
// --json, which every command has), answers --help and --version, runs the body and returns the
// exit code: the body's own, or that of its error, which is printed on standard error as "name:
// message". Arguments that are no flags are refused. When a signal from outside ends it, the
// process ends its children, removes what it has not finished writing and ends by that signal.
// `build` says what the program was built from; --version prints it behind the version.
int RunCommand(const Command& command, int argc, char** argv, absl::string_view build = "");

// The version of all commands.
absl::string_view Version();

// The program's path and arguments as it was called: of a command that consists of others, without
// their names.
struct CommandCall {
  std::string program;
  std::vector<std::string> arguments;
};
const CommandCall& ThisCall();

// True when the command is to print one JSON object on standard output.
bool JsonWanted();

// Returns the flag's path as the user meant it.
std::string UserPath(const Flag<std::string>& flag);

// The same for a flag that must be given, else InvalidArgument: "--flag names no file; expected
// e.g. --flag=run/", where `what` says "file" and the example is "run/".
absl::StatusOr<std::string> RequiredPath(const Flag<std::string>& flag, absl::string_view what,
                                         absl::string_view example);

// Returns the files that the flag lists: files, folders, of which those with the suffixes count,
// and globs. InvalidArgument, as above, for an empty list.
absl::StatusOr<std::vector<std::string>> UserFiles(const Flag<std::string>& flag,
                                                   std::vector<std::string> suffixes,
                                                   absl::string_view example);

// Returns the flag's value times the factor. InvalidArgument when that is negative or too large.
absl::StatusOr<int64_t> ScaledValue(const Flag<int64_t>& flag, int64_t factor);

// InvalidArgument: "--flag=value is none of a, b".
absl::Status NoneOf(absl::string_view flag, absl::string_view value, absl::string_view names);

// Returns what the flag's value is the name of.
template <typename Value>
absl::StatusOr<Value> NamedValue(const Flag<std::string>& flag,
                                 const std::vector<std::pair<absl::string_view, Value>>& values) {
  std::string names;
  for (const auto& [name, value] : values) {
    if (name == flag.value()) return value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return NoneOf(flag.name(), flag.value(), names);
}

// InvalidArgument, the first of the flags that is given and `why` it is refused: "--bytes means
// nothing here".
absl::Status RefuseFlags(const std::vector<const AnyFlag*>& flags, absl::string_view why);

// Writes to standard output; an error (a full disk) is the environment's. A reader that closes its
// pipe ends the command silently, as it ends other programs.
absl::Status Print(const std::string& text);

// Calls `write` with the file that the flag names, gzip when it ends in .gz, or without one with
// standard output, and returns the exit code.
absl::StatusOr<int> WriteTo(const Flag<std::string>& flag,
                            absl::FunctionRef<absl::Status(ByteSink*)> write);

// One of several things that a command can do.
struct CommandTask {
  // The flags that ask for it.
  std::vector<const AnyFlag*> asked_by;
  absl::StatusOr<int> (*run)();
  // The flags that it looks at and some other tasks do not.
  std::vector<const AnyFlag*> flags;
};

// Runs the task that the user asks for, without any the first. InvalidArgument when several are asked
// for, or a flag is given that has no effect on it.
absl::StatusOr<int> RunOneTask(const std::vector<CommandTask>& tasks);

// Prints the report as --json asks for it or, formatted, as text, and returns the exit code.
template <typename Report>
absl::StatusOr<int> PrintReport(const Report& report, std::string (*format)(const Report&),
                                int exit_code = kExitDone) {
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : format(report)));
  return exit_code;
}

// Returns a function that shows how far something is in a progress bar. The bar is gone with the
// last copy of the function, which must be before anything is printed.
inline auto ShowProgress(std::string label, uint64_t total) {
  return [bar = std::make_shared<ProgressBar>(std::move(label), total)](uint64_t done, auto...) {
    bar->Update(done);
  };
}

// The same for readers that tell how many more bytes they have read.
inline auto ShowBytesRead() {
  return [show = ShowProgress("bytes read", 0),
          bytes = std::make_shared<uint64_t>(0)](uint64_t more) { show(*bytes += more); };
}

// Returns the options with a progress bar that is gone when they are.
template <typename Options>
Options WithProgress(Options options, std::string label, uint64_t total) {
  options.progress = ShowProgress(std::move(label), total);
  return options;
}

}  // namespace meridian

#endif  // TOOLS_COMMAND_H_
