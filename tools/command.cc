#include "tools/command.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <limits>
#include <new>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "tools/version.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<bool> FLAGS_json("json", false, "Print one JSON object on standard output instead of text.");

Flag<bool> FLAGS_quiet("quiet", false, "Show no progress, also on a terminal.");

// What the terminal shows while the command works; gone before anything is printed.
std::unique_ptr<WorkingLine>& Working() {
  static auto* const line = new std::unique_ptr<WorkingLine>;
  return *line;
}

// The program that holds all commands; messages name the command alone.
constexpr absl::string_view kProgram = "meridian";

CommandCall& MutableCall() {
  static auto* const call = new CommandCall;
  return *call;
}

class StandardOutput : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override { return Print(std::string(data)); }
};

// Returns e.g. "--stats or --check".
std::string TaskName(const CommandTask& task) {
  return absl::StrJoin(task.asked_by, " or ", [](std::string* out, const AnyFlag* flag) {
    absl::StrAppend(out, "--", flag->name());
  });
}

// A flag that has no effect is a misunderstanding.
absl::Status CheckFlagsOf(const CommandTask& chosen, const std::vector<CommandTask>& tasks) {
  for (const CommandTask& task : tasks) {
    for (const AnyFlag* flag : task.flags) {
      if (!flag->given() || absl::c_linear_search(chosen.flags, flag)) continue;
      std::vector<std::string> names;
      for (const CommandTask& other : tasks) {
        if (absl::c_linear_search(other.flags, flag)) names.push_back(TaskName(other));
      }
      return InvalidArgument("--", flag->name(), " needs ", absl::StrJoin(names, " or "));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ShowHelp(const Command& command, const std::string& prefix) {
  RETURN_IF_ERROR(Print(HelpText(command, prefix)));
  return kExitDone;
}

class Run {
 public:
  Run(const Command& command, std::vector<std::string> arguments, std::string program,
      absl::string_view build)
      : command_(command),
        arguments_(std::move(arguments)),
        program_(std::move(program)),
        build_(build) {}

  const std::string& name() const { return name_; }

  absl::StatusOr<int> Execute() { return Execute(command_, ""); }

 private:
  // `prefix` is what stands before the command's name.
  absl::StatusOr<int> Execute(const Command& command, const std::string& prefix) {
    name_ =
        name_.empty() || name_ == kProgram ? command.name : absl::StrCat(name_, " ", command.name);
    if (command.commands.empty()) return ParseAndRun(command, prefix);
    if (arguments_.empty()) {
      std::fputs(HelpText(command, prefix).c_str(), stderr);
      return InvalidArgument("name one of its commands");
    }
    std::string first = arguments_.front();
    arguments_.erase(arguments_.begin());
    if (IsVersionFlag(first)) return ShowVersion();
    if (first == "help" || IsHelpFlag(first)) {
      if (arguments_.empty() || arguments_[0] == "help") return ShowHelp(command, prefix);
      first = arguments_.front();
      arguments_.front() = "--help";
    }
    ASSIGN_OR_RETURN(const Command* part, FindCommand(command.commands, first));
    return Execute(*part, absl::StrCat(prefix, command.name, " "));
  }

  absl::StatusOr<int> ParseAndRun(Command command, const std::string& prefix) {
    command.flags.push_back(&FLAGS_json);
    command.flags.push_back(&FLAGS_quiet);
    std::vector<std::string> argv = arguments_;
    argv.insert(argv.begin(), program_);
    ASSIGN_OR_RETURN(const ParsedCommandLine parsed, ParseCommandLine(command, argv));
    if (parsed.help) return ShowHelp(command, prefix);
    if (parsed.version) return ShowVersion();
    if (!parsed.arguments.empty()) {
      return InvalidArgument("unexpected argument '", parsed.arguments[0], "'; did you mean --",
                             command.flags[0]->name(), "=", parsed.arguments[0], "?");
    }
    MutableCall() = {program_, arguments_};
    if (FLAGS_quiet.value()) HideProgress();
    Working() = std::make_unique<WorkingLine>(name_);
    absl::StatusOr<int> code = command.body();
    Working() = nullptr;
    return code;
  }

  absl::StatusOr<int> ShowVersion() {
    RETURN_IF_ERROR(Print(absl::StrCat(command_.name, " ", Version(), build_.empty() ? "" : " (",
                                       build_, build_.empty() ? "" : ")", "\n")));
    return kExitDone;
  }

  const Command& command_;
  std::vector<std::string> arguments_;
  const std::string program_;
  const absl::string_view build_;
  std::string name_;
};

// Writes to standard error, without what would steer a terminal, by what is safe in a signal
// handler only.
void WriteError(const char* text) {
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    const bool is_printed = (byte >= ' ' && byte != 0x7f) || byte == '\n';
    (void)!write(STDERR_FILENO, is_printed ? text : "?", 1);
  }
}

void ExitWithMessage(const char* context, const char* message) {
  RemoveUnfinishedFiles();
  const char* const name = program_invocation_short_name;
  for (const char* text : {name, ": ", context, message, "\n"}) WriteError(text);
  _exit(kExitEnvironment);
}

// For SIGBUS, which mapped files raise when somebody cuts them short.
void ExitNamingTheFile(int, siginfo_t* info, void*) {
  const char* name = MappedFileAt(info->si_addr);
  ExitWithMessage(
      name == nullptr ? "a file" : name,
      ": was cut short while it was read, or its disk failed; start again when it is whole");
}

// Ends as if the signal had not been caught, which is what whoever sent it wants to see.
void EndBySignal(int number) {
  RemoveUnfinishedFiles();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Has an interrupted command clean up, unless it was started to go on (nohup).
void CleanUpWhenInterrupted() {
  for (const int number : kEndingSignals) {
    struct sigaction before;
    sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_DFL) std::signal(number, EndBySignal);
  }
}

// Turns the ends that no status can describe into messages and the environment's exit code.
void InstallLastResorts() {
  std::set_new_handler([] { ExitWithMessage("", "out of memory"); });
  struct sigaction action = {};
  action.sa_sigaction = ExitNamingTheFile;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  // A file-size limit then is an error of write(2) like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

// Messages quote what they found in inputs, which may be a name of any length.
constexpr size_t kMessageHead = 700;
constexpr size_t kMessageTail = 300;

// Returns the message as it is printed: it must not steer the terminal, and of a very long one the
// beginning says where, the end what to do.
std::string PrintedMessage(absl::string_view message) {
  const std::string text = Printable(message);
  if (text.size() <= kMessageHead + kMessageTail) return text;
  const auto is_within_character = [&](size_t i) { return (text[i] & 0xC0) == 0x80; };
  size_t head = kMessageHead;
  while (is_within_character(head)) --head;
  size_t tail = text.size() - kMessageTail;
  while (tail < text.size() && is_within_character(tail)) ++tail;
  return absl::StrCat(text.substr(0, head), " [...] ", text.substr(tail));
}

}  // namespace

int RunCommand(const Command& command, int argc, char** argv, absl::string_view build) {
  InstallLastResorts();
  CleanUpWhenInterrupted();
  Run run(command, std::vector<std::string>(argv + 1, argv + argc), argv[0], build);
  const absl::StatusOr<int> code = run.Execute();
  if (!code.ok()) {
    std::fprintf(stderr, "%s: %s\n", run.name().c_str(),
                 PrintedMessage(code.status().message()).c_str());
  }
  return code.ok() ? *code : ExitCode(code.status());
}

absl::string_view Version() { return kVersion; }

const CommandCall& ThisCall() { return MutableCall(); }

bool JsonWanted() { return FLAGS_json.value(); }

std::string UserPath(const Flag<std::string>& flag) { return UserPath(flag.value()); }

absl::StatusOr<std::string> RequiredPath(const Flag<std::string>& flag, absl::string_view what,
                                         absl::string_view example) {
  if (!flag.value().empty()) return UserPath(flag);
  const absl::string_view name = flag.name();
  return InvalidArgument("--", name, " names no ", what, "; expected e.g. --", name, "=", example);
}

absl::StatusOr<std::vector<std::string>> UserFiles(const Flag<std::string>& flag,
                                                   std::vector<std::string> suffixes,
                                                   absl::string_view example) {
  RETURN_IF_ERROR(RequiredPath(flag, "file", example).status());
  return ExpandPaths(FileSystem::Posix(), flag.value(), {UserDirectory(), std::move(suffixes)});
}

absl::StatusOr<int64_t> ScaledValue(const Flag<int64_t>& flag, int64_t factor) {
  const int64_t value = flag.value();
  if (value >= 0 && value <= std::numeric_limits<int64_t>::max() / factor) return value * factor;
  return InvalidArgument("--", flag.name(), " is out of range");
}

absl::Status NoneOf(absl::string_view flag, absl::string_view value, absl::string_view names) {
  return InvalidArgument("--", flag, "=", value, " is none of ", names);
}

absl::Status RefuseFlags(const std::vector<const AnyFlag*>& flags, absl::string_view why) {
  for (const AnyFlag* flag : flags) {
    if (flag->given()) return InvalidArgument("--", flag->name(), " ", why);
  }
  return absl::OkStatus();
}

absl::Status Print(const std::string& text) {
  Working() = nullptr;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return ErrnoToStatus(errno, "standard output");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> WriteTo(const Flag<std::string>& flag,
                            absl::FunctionRef<absl::Status(ByteSink*)> write) {
  const std::string path = UserPath(flag);
  if (path.empty()) {
    StandardOutput output;
    RETURN_IF_ERROR(write(&output));
    return kExitDone;
  }
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.Write("output", path, [&](ByteSink& sink) { return write(&sink); }));
  RETURN_IF_ERROR(outputs.Commit());
  return kExitDone;
}

absl::StatusOr<int> RunOneTask(const std::vector<CommandTask>& tasks) {
  std::vector<std::string> wanted;
  const CommandTask* chosen = &tasks[0];
  for (const CommandTask& task : tasks) {
    if (absl::c_none_of(task.asked_by, [](const AnyFlag* flag) { return flag->given(); })) continue;
    wanted.push_back(TaskName(task));
    chosen = &task;
  }
  if (wanted.size() > 1) {
    return InvalidArgument(absl::StrJoin(wanted, ", "), " are different tasks; give one of them");
  }
  RETURN_IF_ERROR(CheckFlagsOf(*chosen, tasks));
  return chosen->run();
}

}  // namespace meridian
