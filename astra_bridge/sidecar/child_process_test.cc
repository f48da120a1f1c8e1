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
using ::testing::EndsWith;
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
    options_.on_output = [this](absl::string_view piece) {
      output_.append(piece.data(), piece.size());
    };
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
  std::string output_;
};

TEST_F(ChildProcessTest, GivesOutputErrorsAndExitCode) {
  options_.command.push_back("--a b=$HOME;*");
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result,
                       Run("args\nout hello\nerr oh\nexit 3\nout never\n"));
  EXPECT_EQ(result.end, End::kExited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(output_, "--a b=$HOME;*\nhello\n");
  EXPECT_EQ(result.error_tail, "oh\n");
}

TEST_F(ChildProcessTest, RunsInItsFolderWithoutInput) {
  directory_.Write("file", "here");
  options_.working_directory = directory_.path();
  ASSERT_OK(Run("read file\nread /dev/stdin\n"));
  EXPECT_EQ(output_, "here");
}

TEST_F(ChildProcessTest, TellsASignalFromAnExit) {
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("out done\nsignal 6\n"));
  EXPECT_EQ(result.end, End::kSignaled);
  EXPECT_EQ(result.signal, SIGABRT);
  EXPECT_EQ(output_, "done\n");
}

TEST_F(ChildProcessTest, EndsTheWholeGroupWhenTheTimeIsOver) {
  options_.timeout = absl::Milliseconds(300);
  ASSERT_OK_AND_ASSIGN(
      const ChildProcessResult result,
      Run(absl::StrCat("out a\ngroup ", directory_.PathOf("pids"), "\nsleep 60000\n")));
  EXPECT_EQ(result.end, End::kTimedOut);
  EXPECT_EQ(output_, "a\n");
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
  EXPECT_EQ(output_, "a\n");
  const std::vector<pid_t> members = GroupMembers();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_TRUE(BecomesTrue([&] { return !IsAlive(members[1]); }));
}

TEST_F(ChildProcessTest, WaitsForOneThatHasClosedItsOutput) {
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("close\nsleep 200\nexit 5\n"));
  EXPECT_EQ(result.exit_code, 5);
}

TEST_F(ChildProcessTest, EndsOneThatWritesTooMuch) {
  options_.max_output_bytes = 1 << 20;
  int64_t seen = 0;
  options_.on_output = [&](absl::string_view piece) { seen += piece.size(); };
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run("flood 100000000000\n"));
  EXPECT_EQ(result.end, End::kWroteTooMuch);
  EXPECT_LT(seen, 2 << 20);
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

TEST_F(ChildProcessTest, KeepsTheEndOfLongErrors) {
  std::string script;
  for (int i = 0; i < 500; ++i) absl::StrAppend(&script, "err line number ", i, "\n");
  ASSERT_OK_AND_ASSIGN(const ChildProcessResult result, Run(script));
  EXPECT_EQ(result.error_tail.size(), 4096u);
  EXPECT_THAT(result.error_tail, EndsWith("line number 499\n"));
}

TEST_F(ChildProcessTest, RaisesTheLimitOnOpenFiles) {
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const struct rlimit before = limit;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_OK(Run("limit\n"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(output_, absl::StrCat(limit.rlim_max, " ", limit.rlim_max, "\n"));
}

TEST_F(ChildProcessTest, RefusesWhenTheHardLimitIsTooLow) {
  options_.open_files = int64_t{1} << 50;
  EXPECT_THAT(Run("exit 0\n"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the hard limit is")));
}

TEST_F(ChildProcessTest, SaysWhyItCannotBeStarted) {
  options_.command = {directory_.PathOf("missing")};
  EXPECT_THAT(Run(""), StatusIs(absl::StatusCode::kUnavailable,
                                absl::StrCat(directory_.PathOf("missing"),
                                             " cannot be started: No such file or directory")));
  options_.command = {directory_.Write("no_program", "text")};
  EXPECT_THAT(Run(""), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Permission denied")));
}

TEST_F(ChildProcessTest, RunsFromManyThreads) {
  UseScript(directory_, "args\nexit 0\n");
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] {
      ChildProcessOptions options = options_;
      options.command.push_back(absl::StrCat("thread", i));
      options.on_output = [&, i](absl::string_view piece) {
        outputs[i].append(piece.data(), piece.size());
      };
      EXPECT_OK(RunChildProcess(options));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(outputs[i], absl::StrCat("thread", i, "\n"));
}

// How a process that runs the script ends when it gets the signal: the child's exit code is 42 when
// RunChildProcess returned Cancelled.
class InterruptTest : public ChildProcessTest {
 protected:
  int WaitStatusAfter(int signal) {
    const std::string script = absl::StrCat("group ", directory_.PathOf("pids"), "\nsleep 60000\n");
    const pid_t pid = fork();
    if (pid == 0) {
      const bool cancelled = absl::IsCancelled(Run(script).status());
      // Nothing new is started.
      const bool still = absl::IsCancelled(Run("exit 0\n").status());
      _exit(cancelled && still ? 42 : 1);
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

TEST_F(InterruptTest, SignalsEndTheGroupAndAreReported) {
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

TEST_F(InterruptTest, WithoutChildrenSignalsDoWhatTheyDid) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!Run("exit 0\n").ok()) _exit(1);
    raise(SIGTERM);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
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
