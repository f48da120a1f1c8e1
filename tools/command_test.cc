#include "tools/command.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct CommandOutput {
  int exit_code = 0;
  std::string standard_output;
  std::string standard_error;
};

MATCHER_P3(Printed, exit_code, standard_output, standard_error, "") {
  return arg.exit_code == exit_code && arg.standard_output == standard_output &&
         arg.standard_error == standard_error;
}

// A command in a process of its own that has written half of an output when Start returns, and then
// does nothing but echo, for ever.
class InterruptedCommand {
 public:
  explicit InterruptedCommand(std::string output) : output_(std::move(output)) {}
  ~InterruptedCommand() {
    if (process_ > 0) {
      Signal(SIGKILL);
      Wait();
    }
    close(socket_);
  }
  InterruptedCommand(const InterruptedCommand&) = delete;
  InterruptedCommand& operator=(const InterruptedCommand&) = delete;

  // `before` is called in the process before the command.
  void Start(void (*before)() = [] {}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    socket_ = ends[0];
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ == 0) {
      close(ends[0]);
      before();
      char name[] = "interrupted";
      char* arguments[] = {name, nullptr};
      _exit(RunCommand({name, "Writes for ever.", {}, {}, [&] { return WriteHalf(ends[1]); }}, 1,
                       arguments));
    }
    close(ends[1]);
    char written;
    EXPECT_EQ(read(socket_, &written, 1), 1);
  }

  void Signal(int number) const { kill(process_, number); }

  // Whether it still lives, after what earlier signals did to it: they come before the echo.
  bool Echoes() const {
    char byte = 'e';
    return send(socket_, &byte, 1, MSG_NOSIGNAL) == 1 && read(socket_, &byte, 1) == 1;
  }

  // Returns the status as of waitpid.
  int Wait() {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(process_, -1), &status, 0), 0);
    return status;
  }

 private:
  absl::StatusOr<int> WriteHalf(int socket) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFileWriter> writer,
                     AtomicFileWriter::Create(FileSystem::Posix(), output_));
    RETURN_IF_ERROR(writer->Append(std::string(3 << 20, 'x')));
    char byte = 'w';
    while (write(socket, &byte, 1) == 1 && read(socket, &byte, 1) == 1) {
    }
    return 1;
  }

  const std::string output_;
  pid_t process_ = -1;
  int socket_ = -1;
};

class CommandTest : public ::testing::TestWithParam<int> {
 protected:
  // Names in the folder, hidden ones too.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const char* pattern : {"*", ".*.tmp"}) {
      absl::StatusOr<std::vector<std::string>> found =
          FileSystem::Posix().Glob(directory_.PathOf(pattern));
      EXPECT_OK(found.status());
      names.insert(names.end(), found->begin(), found->end());
    }
    return names;
  }

  const TemporaryDirectory directory_;
};

TEST_P(CommandTest, AnInterruptedCommandLeavesNothingAndEndsByTheSignal) {
  InterruptedCommand command(directory_.PathOf("out"));
  command.Start();
  EXPECT_THAT(Files(), SizeIs(1));
  command.Signal(GetParam());
  const int status = command.Wait();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), GetParam());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_P(CommandTest, AnOldOutputStays) {
  const std::string output = directory_.Write("out", "old");
  InterruptedCommand command(output);
  command.Start();
  command.Signal(GetParam());
  command.Wait();
  EXPECT_THAT(Files(), ElementsAre(output));
  EXPECT_EQ(directory_.Read("out"), "old");
}

// As nohup and shells do for what runs in the background.
TEST_P(CommandTest, ASignalThatIsIgnoredStaysIgnored) {
  InterruptedCommand command(directory_.PathOf("out"));
  command.Start([] {
    for (const int number : kEndingSignals) std::signal(number, SIG_IGN);
  });
  command.Signal(GetParam());
  EXPECT_TRUE(command.Echoes());
  EXPECT_THAT(Files(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Signals, CommandTest, ::testing::ValuesIn(kEndingSignals));

TEST(LastResortTest, AnInputThatIsCutShortWhileItIsReadIsNamed) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("input.pb", std::string(100000, 'x'));
  const auto run = [&] {
    char name[] = "reader";
    char* arguments[] = {name, nullptr};
    const auto body = [&]() -> absl::StatusOr<int> {
      ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFileWriter> writer,
                       AtomicFileWriter::Create(FileSystem::Posix(), directory.PathOf("out")));
      ASSIGN_OR_RETURN(const InputFile input, InputFile::Open(FileSystem::Posix(), path));
      if (truncate(path.c_str(), 10) != 0) return absl::InternalError("truncate");
      return input.bytes()[50000] == 'x' ? 0 : 1;
    };
    return RunCommand({name, "Reads.", {}, {}, body}, 1, arguments);
  };
  EXPECT_EXIT(_exit(run()), ::testing::ExitedWithCode(3), "input.pb: was cut short");
  EXPECT_THAT(directory.List(), ElementsAre("input.pb"));
}

// Runs a program of two commands, of which one has a flag, with these arguments.
CommandOutput RunProgram(std::vector<std::string> arguments) {
  static Flag<int64_t> size("size", 1, "How large.");
  const auto body = []() -> absl::StatusOr<int> {
    RETURN_IF_ERROR(Print(absl::StrCat("size ", size.value(), " of ",
                                       absl::StrJoin(ThisCall().arguments, " "), "\n")));
    return kExitDone;
  };
  const Command program = {
      "meridian",
      "Has commands.",
      {},
      {},
      nullptr,
      {{"measure", "Measures.", {"measure --size=2"}, {&size}, body},
       {"model", "Models.", {}, {}, nullptr, {{"fit", "Fits.", {}, {}, body}}}}};
  std::string error;
  EXPECT_TRUE(size.Set(size.DefaultText(), &error));
  arguments.insert(arguments.begin(), "bin/meridian");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = RunCommand(program, static_cast<int>(argv.size()), argv.data(), "commit abc");
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

TEST(ProgramTest, RunsTheCommandThatIsNamed) {
  EXPECT_THAT(RunProgram({"measure", "--size=3"}), Printed(0, "size 3 of --size=3\n", ""));
  EXPECT_THAT(RunProgram({"model", "fit"}), Printed(0, "size 1 of \n", ""));
}

TEST(ProgramTest, HelpIsAskedForInEitherOrder) {
  const CommandOutput help = RunProgram({"help", "measure"});
  EXPECT_EQ(help.standard_output, RunProgram({"measure", "--help"}).standard_output);
  EXPECT_THAT(help.standard_output, HasSubstr("\n  meridian measure --size=2\n"));
  EXPECT_THAT(RunProgram({"help", "model", "fit"}).standard_output,
              HasSubstr("Usage: meridian model fit [flags]"));
  EXPECT_THAT(RunProgram({"--help"}).standard_output, HasSubstr("  measure    Measures."));
}

TEST(ProgramTest, SaysWhichVersionItIs) {
  EXPECT_THAT(RunProgram({"--version"}),
              Printed(0, absl::StrCat("meridian ", Version(), " (commit abc)\n"), ""));
  EXPECT_EQ(RunProgram({"measure", "--version"}).standard_output,
            RunProgram({"--version"}).standard_output);
}

TEST(ProgramTest, AMessageThatQuotesALongValueKeepsItsBeginningAndItsEnd) {
  const std::string message =
      RunProgram({"measure", absl::StrCat("--size=", std::string(70000, 'y'))}).standard_error;
  EXPECT_LT(message.size(), 1100);
  EXPECT_THAT(message, AllOf(StartsWith("measure: --size: 'yyy"), HasSubstr("yyy [...] yyy"),
                             EndsWith("yyy' is no value of this flag\n")));
  // Characters of two bytes stay whole, wherever they are cut.
  for (std::string value : {"y", "yy"}) {
    for (int i = 0; i < 5000; ++i) value += "\xC3\xA9";
    EXPECT_THAT(RunProgram({"measure", "--size=" + value}).standard_error,
                AllOf(HasSubstr("\xC3\xA9 [...] \xC3\xA9"), Not(HasSubstr("?"))));
  }
}

TEST(ProgramTest, MistakesNameTheCommand) {
  EXPECT_THAT(
      RunProgram({"mesure"}),
      Printed(2, "", "meridian: 'mesure' is none of its commands; did you mean measure?\n"));
  EXPECT_THAT(RunProgram({"measure", "--sise=3"}),
              Printed(2, "", "measure: unknown flag --sise; did you mean --size?\n"));
  EXPECT_THAT(RunProgram({"model", "fit", "--size=3"}),
              Printed(2, "", "model fit: unknown flag --size; --help lists all\n"));
  EXPECT_EQ(RunProgram({}).exit_code, 2);
}

}  // namespace
}  // namespace meridian
