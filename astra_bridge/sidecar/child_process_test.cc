#include "astra_bridge/sidecar/child_process.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "astra_bridge/sidecar/testing/script.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using End = ChildProcessResult::End;
using ::testing::HasSubstr;

// True while a process exists and is no zombie.
bool IsAlive(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

bool BecomesTrue(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

class ChildProcessTest : public ::testing::Test {
 protected:
  ChildProcessTest() {
    options_.command = {ScriptedProgram()};
    options_.timeout = absl::Seconds(60);
    options_.output_file = directory_.PathOf("output");
    options_.error_file = directory_.PathOf("errors");
  }

  absl::StatusOr<ChildProcessResult> Run(const std::string& script) {
    UseScript(directory_, script);
    return RunChildProcess(options_);
  }

  // The ids that the script's "group" command wrote.
  std::vector<pid_t> GroupMembers() const {
    std::ifstream file(directory_.PathOf("pids"));
    std::vector<pid_t> pids;
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    return pids;
  }

  const TemporaryDirectory directory_;
  ChildProcessOptions options_;
};

TEST_F(ChildProcessTest, GivesOutputErrorsAndExitCode) {
  options_.command.push_back("--a b=$HOME;*");
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result,
                       Run("args\nout hello\nerr oh\nexit 3\nout never\n"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(directory_.Read("output"), "--a b=$HOME;*\nhello\n");
  EXPECT_EQ(directory_.Read("errors"), "oh\n");
}

TEST_F(ChildProcessTest, RunsInItsFolderWithoutInput) {
  directory_.Write("file", "here");
  options_.working_directory = directory_.path();
  ASSERT_OK(Run("read file\nread /dev/stdin\n"));
  EXPECT_EQ(directory_.Read("output"), "here");
}

TEST_F(ChildProcessTest, TellsASignalFromAnExit) {
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("out done\nsignal 6\n"));
  EXPECT_EQ(result.end, End::kSignaled);
  EXPECT_EQ(result.signal, SIGABRT);
  EXPECT_EQ(directory_.Read("output"), "done\n");
}

TEST_F(ChildProcessTest, EndsTheWholeGroupWhenTheTimeIsOver) {
  options_.timeout = absl::Milliseconds(300);
  ASSERT_OK_AND_ASSIGN(
      const ChildProcessResult result,
      Run(absl::StrCat("out a\ngroup ", directory_.PathOf("pids"), "\nsleep 60000\n")));
  EXPECT_EQ(result.end, End::kTimedOut);
  EXPECT_EQ(directory_.Read("output"), "a\n");
  const std::vector<pid_t> members = GroupMembers();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_TRUE(BecomesTrue([&] { return !IsAlive(members[0]) && !IsAlive(members[1]); }));
}

TEST_F(ChildProcessTest, DoesNotWaitForThoseItLeavesBehind) {
  const absl::Time start = absl::Now();
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result,
                       Run(absl::StrCat("group ", directory_.PathOf("pids"), "\nout a\nexit 0\n")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(directory_.Read("output"), "a\n");
  const std::vector<pid_t> members = GroupMembers();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_TRUE(BecomesTrue([&] { return !IsAlive(members[1]); }));
}

TEST_F(ChildProcessTest, WaitsForOneThatHasClosedItsOutput) {
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("close\nsleep 200\nexit 5\n"));
  EXPECT_EQ(result.exit_code, 5);
}

TEST_F(ChildProcessTest, EndsOneThatWritesTooMuch) {
  options_.max_file_bytes = 1 << 20;
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("flood 100000000000\n"));
  EXPECT_EQ(result.end, End::kWroteTooMuch);
  EXPECT_EQ(directory_.Read("output").size(), 1 << 20);
}

TEST_F(ChildProcessTest, EndsOneThatFillsTheDisk) {
  options_.max_file_bytes = 1 << 20;
  // As in commands.
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result,
                       Run(absl::StrCat("fill ", directory_.PathOf("log"), "\n")));
  EXPECT_EQ(result.end, End::kWroteTooMuch);
  EXPECT_EQ(directory_.Read("log").size(), 1 << 20);
  std::signal(SIGXFSZ, SIG_DFL);
}

TEST_F(ChildProcessTest, RaisesTheLimitOnOpenFiles) {
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const struct rlimit before = limit;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_OK(Run("limit\n"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(directory_.Read("output"), absl::StrCat(limit.rlim_max, " ", limit.rlim_max, "\n"));
}

TEST_F(ChildProcessTest, SaysWhatCannotBeStarted) {
  for (const std::string& path :
       {directory_.PathOf("missing"), directory_.Write("no_program", "text")}) {
    options_.command = {path};
    EXPECT_THAT(Run(""), StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr(absl::StrCat(path, " cannot be started"))));
  }
}

TEST_F(ChildProcessTest, RunsFromManyThreads) {
  UseScript(directory_, "args\nexit 0\n");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      ChildProcessOptions options = options_;
      options.command.push_back(absl::StrCat("thread", i));
      options.output_file = directory_.PathOf(absl::StrCat("output", i));
      EXPECT_OK(RunChildProcess(options));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(directory_.Read(absl::StrCat("output", i)), absl::StrCat("thread", i, "\n"));
  }
}

// How a process that runs the script, and cleans up as commands do, ends when it gets the signal.
class InterruptTest : public ChildProcessTest {
 protected:
  int WaitStatusAfter(int signal) {
    const std::string script = absl::StrCat("group ", directory_.PathOf("pids"), "\nsleep 60000\n");
    const pid_t pid = fork();
    if (pid == 0) {
      for (const int ending : kEndingSignals) {
        std::signal(ending, [](int) {
          RemoveUnfinishedFiles();
          _exit(42);
        });
      }
      (void)Run(script);
      _exit(1);
    }
    EXPECT_TRUE(BecomesTrue([&] { return GroupMembers().size() == 2; }));
    members_ = GroupMembers();
    kill(pid, signal);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }

  bool MembersAreGone() {
    return BecomesTrue([&] { return !IsAlive(members_.at(0)) && !IsAlive(members_.at(1)); });
  }

  std::vector<pid_t> members_;
};

TEST_F(InterruptTest, SignalsEndTheGroup) {
  for (int signal : kEndingSignals) {
    const int status = WaitStatusAfter(signal);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
    EXPECT_TRUE(MembersAreGone());
    ASSERT_EQ(unlink(directory_.PathOf("pids").c_str()), 0);
  }
}

TEST_F(InterruptTest, TheChildDiesWithUs) {
  const int status = WaitStatusAfter(SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(BecomesTrue([&] { return !IsAlive(members_.at(0)); }));
  // Only the child is told of our death; what it started is left for this test to end.
  kill(members_.at(1), SIGKILL);
}

// A signal that reaches the child before it has become its program.
class EarlySignalTest : public ChildProcessTest, public ::testing::WithParamInterface<int> {
 protected:
  // Once: runs a script in a process of its own, whose disposition of the signal is `handler`, and
  // returns whether the check of the result holds.
  bool Holds(void (*handler)(int), const std::function<bool(const ChildProcessResult&)>& check) {
    const pid_t pid = fork();
    if (pid == 0) {
      early_signal = GetParam();
      handlings = handlings_.ends[1];
      std::signal(early_signal, handler);
      pthread_atfork(nullptr, nullptr, [] { kill(getpid(), early_signal); });
      const absl::StatusOr<ChildProcessResult> result = Run("exit 5\n");
      _exit(result.ok() && check(*result) ? 42 : 1);
    }
    close(handlings_.ends[1]);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 42;
  }

  // How often the handler below has run, in whatever process.
  int Handlings() const {
    char byte;
    int count = 0;
    while (read(handlings_.ends[0], &byte, 1) == 1) ++count;
    return count;
  }

  static void CountHandling(int) { (void)!write(handlings, "h", 1); }

 private:
  struct HandlingsPipe {
    HandlingsPipe() { EXPECT_EQ(pipe(ends), 0); }
    ~HandlingsPipe() { close(ends[0]); }
    int ends[2];
  };

  // Of the process that runs the script; its handlers see nothing else.
  static inline int early_signal = 0;
  static inline int handlings = -1;

  HandlingsPipe handlings_;
};

TEST_P(EarlySignalTest, EndsTheChildAndRunsNoHandlerOfOurs) {
  EXPECT_TRUE(Holds(CountHandling, [](const ChildProcessResult& result) {
    return result.end == End::kSignaled && result.signal == GetParam();
  }));
  EXPECT_EQ(Handlings(), 0);
}

TEST_P(EarlySignalTest, StaysIgnoredInTheChild) {
  EXPECT_TRUE(Holds(SIG_IGN, [](const ChildProcessResult& result) {
    return result.end == End::kExited && result.exit_code == 5;
  }));
}

INSTANTIATE_TEST_SUITE_P(Signals, EarlySignalTest, ::testing::ValuesIn(kEndingSignals));

}  // namespace
}  // namespace meridian
