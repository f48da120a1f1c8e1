#include "tools/command.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
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

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

std::string UserDirectory() { return Environment("BUILD_WORKING_DIRECTORY"); }

std::string UserPath(const std::string& path) { return ResolvePath(path, UserDirectory()); }

absl::StatusOr<std::vector<std::string>> UserProfiles(const std::string& traces,
                                                      absl::string_view example) {
  if (traces.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--traces names no file; expected e.g. --traces=", example));
  }
  return ExpandPaths(FileSystem::Posix(), traces,
                     {UserDirectory(), {".xplane.pb", ".xplane.pb.gz"}});
}

InputFileOptions UserInputOptions() {
  InputFileOptions options;
  const std::string directory = Environment("TMPDIR");
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
