#include "tools/command.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <set>

#include "absl/flags/reflection.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/tables/text_table.h"

ABSL_FLAG(bool, json, false, "Print one JSON object on standard output instead of text.");

namespace meridian {
namespace {

absl::StatusOr<int> ParseAndRun(const CommandSpec& spec, const std::vector<std::string>& argv,
                                const std::function<absl::StatusOr<int>()>& body) {
  ASSIGN_OR_RETURN(const ParsedCommandLine parsed, ParseCommandLine(spec, argv));
  if (parsed.help) {
    RETURN_IF_ERROR(Print(HelpText(spec)));
    return kExitDone;
  }
  if (!parsed.arguments.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", parsed.arguments[0],
                                                   "'; did you mean --", spec.flags[0], "=",
                                                   parsed.arguments[0], "?"));
  }
  return body();
}

void ExitWithMessage(absl::string_view message) {
  // Only what is safe in a signal handler.
  RemoveUnfinishedFiles();
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(kExitEnvironment);
}

// Ends as if the signal had not been caught, which is what whoever sent it wants to see.
void EndBySignal(int number) {
  RemoveUnfinishedFiles();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Has an interrupted command clean up, unless it was started to go on (nohup).
void CleanUpWhenInterrupted() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) std::signal(number, EndBySignal);
  }
}

// Turns the ends that no status can describe into messages and the environment's exit code.
void InstallLastResorts() {
  std::set_new_handler([] { ExitWithMessage("out of memory\n"); });
  // Mapped files raise it when somebody cuts them short.
  std::signal(SIGBUS,
              [](int) { ExitWithMessage("an input file was cut short while it was read\n"); });
  // A file-size limit then is an error of write(2) like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace

int RunCommand(const CommandSpec& spec, int argc, char** argv,
               const std::function<absl::StatusOr<int>()>& body) {
  InstallLastResorts();
  CleanUpWhenInterrupted();
  CommandSpec with_json = spec;
  with_json.flags.push_back("json");
  const absl::StatusOr<int> code =
      ParseAndRun(with_json, std::vector<std::string>(argv, argv + argc), body);
  if (!code.ok()) {
    // Messages quote the input, which must not steer the terminal.
    std::fprintf(stderr, "%s: %s\n", spec.name.c_str(), Printable(code.status().message()).c_str());
  }
  // The body has ended its children first.
  if (InterruptSignal() != 0) EndBySignal(InterruptSignal());
  return code.ok() ? *code : ExitCode(code.status());
}

bool JsonWanted() { return absl::GetFlag(FLAGS_json); }

std::string UserDirectory() { return EnvironmentVariable("BUILD_WORKING_DIRECTORY"); }

std::string UserPath(const std::string& path) { return ResolvePath(path, UserDirectory()); }

std::string UserPath(const absl::Flag<std::string>& flag) { return UserPath(absl::GetFlag(flag)); }

absl::StatusOr<std::string> RequiredPath(const absl::Flag<std::string>& flag,
                                         absl::string_view what, absl::string_view example) {
  if (!absl::GetFlag(flag).empty()) return UserPath(flag);
  const absl::string_view name = absl::GetFlagReflectionHandle(flag).Name();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " names no ", what, "; expected e.g. --", name, "=", example));
}

absl::StatusOr<std::vector<std::string>> UserFiles(const absl::Flag<std::string>& flag,
                                                   std::vector<std::string> suffixes,
                                                   absl::string_view example) {
  RETURN_IF_ERROR(RequiredPath(flag, "file", example).status());
  return ExpandPaths(FileSystem::Posix(), absl::GetFlag(flag),
                     {UserDirectory(), std::move(suffixes)});
}

absl::StatusOr<int64_t> ScaledValue(const absl::Flag<int64_t>& flag, int64_t factor) {
  const int64_t value = absl::GetFlag(flag);
  if (value >= 0 && value <= std::numeric_limits<int64_t>::max() / factor) return value * factor;
  return absl::InvalidArgumentError(
      absl::StrCat("--", absl::GetFlagReflectionHandle(flag).Name(), " is out of range"));
}

bool IsGiven(absl::string_view flag) {
  const absl::CommandLineFlag* found = absl::FindCommandLineFlag(flag);
  return found->CurrentValue() != found->DefaultValue();
}

absl::Status NoneOf(absl::string_view flag, absl::string_view value, absl::string_view names) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, " is none of ", names));
}

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

InputFileOptions UserInputOptions() {
  InputFileOptions options;
  const std::string directory = EnvironmentVariable("TMPDIR");
  if (!directory.empty()) options.temporary_directory = directory;
  return options;
}

absl::Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return ErrnoToStatus(errno, "standard output");
  }
  return absl::OkStatus();
}

}  // namespace meridian
