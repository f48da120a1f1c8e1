#include "astra_bridge/sidecar/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {
namespace {

constexpr absl::Duration kLongestNap = absl::Milliseconds(20);

// Exit code of a child that could not become its program, as of shells.
constexpr int kNotStarted = 127;

// Lets signals that were held back through in the child, too. There they end it, or are ignored if
// they were: handlers of this process would do in the child what only this process may do, such as
// remove its unfinished files.
void LetThroughInChild(const EndingSignalsHeldBack& held_back) {
  for (int signal : kEndingSignals) {
    struct sigaction action;
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &held_back.before(), nullptr);
}

bool Redirect(const char* path, int flags, int stream) {
  const int file = open(path, flags, 0600);
  if (file < 0 || dup2(file, stream) < 0) return false;
  if (file != stream) close(file);
  return true;
}

// Runs in the child, where only async-signal-safe calls are allowed.
[[noreturn]] void BecomeProgram(const ChildProcessOptions& options, char* const* argv, pid_t parent,
                                const EndingSignalsHeldBack& held_back) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before that.
  if (getppid() != parent) _exit(kNotStarted);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // A simulator that crashes is business as usual; its memory is not worth a file.
  limit = {0, 0};
  setrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(options.max_file_bytes);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  constexpr int kNewFile = O_WRONLY | O_CREAT | O_TRUNC;
  if (chdir(options.working_directory.c_str()) == 0 &&
      Redirect("/dev/null", O_RDONLY, STDIN_FILENO) &&
      Redirect(options.output_file.c_str(), kNewFile, STDOUT_FILENO) &&
      Redirect(options.error_file.c_str(), kNewFile, STDERR_FILENO)) {
    LetThroughInChild(held_back);
    execv(argv[0], argv);
  }
  _exit(kNotStarted);
}

// Does not reap the child, so that its id stays taken.
bool HasEnded(pid_t child) {
  siginfo_t info;
  info.si_pid = 0;
  return waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// Returns false when the time is over.
bool WaitFor(pid_t child, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::Duration nap = absl::Milliseconds(1);
  while (!HasEnded(child)) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(nap);
    nap = std::min(2 * nap, kLongestNap);
  }
  return true;
}

}  // namespace

absl::StatusOr<ChildProcessResult> RunChildProcess(const ChildProcessOptions& options) {
  std::vector<char*> argv;
  for (const std::string& word : options.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  ChildProcessResult result;
  pid_t child;
  {
    std::optional<UnfinishedProcess> unfinished;
    {
      // Between the birth of a child and its registration nobody would kill it.
      const EndingSignalsHeldBack held_back;
      child = fork();
      if (child < 0) return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(errno)));
      if (child == 0) BecomeProgram(options, argv.data(), parent, held_back);
      // The child does the same; whoever is first.
      setpgid(child, child);
      unfinished.emplace(child);
    }
    if (!WaitFor(child, options.timeout)) result.end = ChildProcessResult::End::kTimedOut;
    kill(-child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (result.end == ChildProcessResult::End::kTimedOut) return result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.end = result.signal == SIGXFSZ ? ChildProcessResult::End::kWroteTooMuch
                                          : ChildProcessResult::End::kSignaled;
    return result;
  }
  result.exit_code = WEXITSTATUS(status);
  if (result.exit_code != kNotStarted) return result;
  return absl::UnavailableError(
      absl::StrCat(options.command[0], " cannot be started; is it a program for this machine?"));
}

}  // namespace meridian
