#include "astra_bridge/sidecar/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {
namespace {

constexpr size_t kErrorTailBytes = 4096;
// Files that a program opens besides those it asks for: standard streams, libraries, logs.
constexpr int64_t kSpareOpenFiles = 32;
constexpr absl::Duration kLongestNap = absl::Milliseconds(20);

// At most so many programs run at once.
constexpr int kMaxChildGroups = 256;

// Leaders of the registered groups, 0 for free places, and what signals did before. The handler
// looks at nothing else: atomics, and actions that do not change while it is installed.
std::atomic<pid_t> groups[kMaxChildGroups];
struct sigaction actions_before[std::size(kEndingSignals)];

ABSL_CONST_INIT absl::Mutex mutex(absl::kConstInit);
int registered_groups = 0;

struct sigaction* ActionBefore(int signal) {
  int index = 0;
  while (kEndingSignals[index] != signal) ++index;
  return &actions_before[index];
}

void KillGroups(int signal) {
  bool killed = false;
  for (std::atomic<pid_t>& group : groups) {
    const pid_t leader = group.load();
    if (leader == 0) continue;
    if (!killed) NoteInterrupt(signal);
    kill(-leader, SIGKILL);
    killed = true;
  }
  if (killed) return;
  // The last group has just left: the signal is for this process after all.
  sigaction(signal, ActionBefore(signal), nullptr);
  raise(signal);
}

void InstallHandlers() {
  for (int signal : kEndingSignals) {
    sigaction(signal, nullptr, ActionBefore(signal));
    // Who started this process wants it to live on.
    if (ActionBefore(signal)->sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = KillGroups;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void RemoveHandlers() {
  for (int signal : kEndingSignals) sigaction(signal, ActionBefore(signal), nullptr);
}

// Lets signals that were held back through in the child, too. There they end it, or are ignored if
// they were: handlers of this process would do in the child what only this process may do, such as
// remove its unfinished files. Async-signal-safe.
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

// A process group that must not outlive this process, as long as the object lives. While there are
// any, signals that would end this process (kEndingSignals) kill them instead, and it finds out by
// InterruptSignal, cleans up and ends; without any, these signals do what they did before.
class ChildGroup {
 public:
  // To be destroyed before the leader is waited for: afterwards its id may be somebody else's.
  explicit ChildGroup(pid_t leader) : slot_(0) {
    absl::MutexLock lock(&mutex);
    while (slot_ < kMaxChildGroups && groups[slot_].load() != 0) ++slot_;
    MERIDIAN_CHECK(slot_ < kMaxChildGroups);
    groups[slot_].store(leader);
    if (++registered_groups == 1) InstallHandlers();
  }
  ~ChildGroup() {
    absl::MutexLock lock(&mutex);
    groups[slot_].store(0);
    if (--registered_groups == 0) RemoveHandlers();
  }
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

 private:
  int slot_;
};

// A file descriptor that is closed when the object goes.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void Close() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Neither end is inherited, nor one of the standard streams.
absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* end : {&pipe.read, &pipe.write}) {
    Descriptor moved(fcntl(end->number(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!moved.is_open()) return SystemError("pipe");
    *end = std::move(moved);
  }
  return pipe;
}

absl::Status CheckNotInterrupted(const ChildProcessOptions& options) {
  if (InterruptSignal() == 0) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat(options.command[0], " does not run: interrupted by signal ", InterruptSignal()));
}

// The soft limit can be raised to the hard one only.
absl::Status CheckOpenFiles(int64_t wanted) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("getrlimit");
  if (limit.rlim_max == RLIM_INFINITY ||
      limit.rlim_max >= static_cast<rlim_t>(wanted + kSpareOpenFiles)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the program needs ", wanted, " open files, but the hard limit is ", limit.rlim_max,
      "; raise it, e.g. with 'ulimit -Hn ", wanted + kSpareOpenFiles, "' as root"));
}

// All that the child needs, made before the fork: afterwards only async-signal-safe calls are
// allowed.
struct ChildSetup {
  std::vector<char*> argv;
  const char* working_directory;
  pid_t parent;
  int64_t max_file_bytes;
  int output;
  int error;
  int failure;
  const EndingSignalsHeldBack* held_back;
};

[[noreturn]] void Fail(const ChildSetup& setup) {
  const int number = errno;
  (void)!write(setup.failure, &number, sizeof(number));
  _exit(127);
}

[[noreturn]] void BecomeProgram(const ChildSetup& setup) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before that.
  if (getppid() != setup.parent) _exit(127);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // A simulator that crashes is business as usual; its memory is not worth a file.
  limit = {0, 0};
  setrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(setup.max_file_bytes);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) Fail(setup);
  if (nothing != STDIN_FILENO) close(nothing);
  if (dup2(setup.output, STDOUT_FILENO) < 0 || dup2(setup.error, STDERR_FILENO) < 0) Fail(setup);
  if (chdir(setup.working_directory) != 0) Fail(setup);
  LetThroughInChild(*setup.held_back);
  execv(setup.argv[0], setup.argv.data());
  Fail(setup);
}

// Returns errno of the step that failed in the child, once it runs its program or has given up.
std::optional<int> FailureInChild(const Descriptor& failure) {
  int number = 0;
  ssize_t count;
  do {
    count = read(failure.number(), &number, sizeof(number));
  } while (count < 0 && errno == EINTR);
  if (count != sizeof(number)) return std::nullopt;
  return number;
}

// Does not reap the child, so that its id stays taken.
bool HasEnded(pid_t child) {
  siginfo_t info;
  info.si_pid = 0;
  return waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// Reads what there is, at most a buffer full; closes the descriptor at its end.
absl::string_view ReadSome(Descriptor* from, absl::Span<char> buffer) {
  if (!from->is_open()) return "";
  const ssize_t count = read(from->number(), buffer.data(), buffer.size());
  if (count > 0) return absl::string_view(buffer.data(), count);
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) from->Close();
  return "";
}

// The running child as its parent sees it.
class Supervisor {
 public:
  Supervisor(const ChildProcessOptions& options, pid_t child, Descriptor output, Descriptor error)
      : options_(options),
        child_(child),
        deadline_(absl::Now() + options.timeout),
        output_(std::move(output)),
        error_(std::move(error)) {
    fcntl(output_.number(), F_SETFL, O_NONBLOCK);
    fcntl(error_.number(), F_SETFL, O_NONBLOCK);
  }

  // Passes its output on until it has ended or must be ended.
  void Watch(ChildProcessResult* result) {
    absl::Duration nap = absl::Milliseconds(1);
    while (true) {
      const bool ended = HasEnded(child_);
      const absl::Duration left = deadline_ - absl::Now();
      if (!ended && left <= absl::ZeroDuration()) {
        result->end = ChildProcessResult::End::kTimedOut;
        return;
      }
      const bool read_something =
          WaitAndRead(ended ? absl::ZeroDuration() : std::min(left, nap), &result->error_tail);
      if (bytes_ > options_.max_output_bytes) {
        result->end = ChildProcessResult::End::kWroteTooMuch;
        return;
      }
      // Others may hold its pipes open for ever, so their end is not waited for.
      if (ended && !read_something) return;
      nap = read_something ? absl::Milliseconds(1) : std::min(2 * nap, kLongestNap);
    }
  }

 private:
  bool WaitAndRead(absl::Duration patience, std::string* error_tail) {
    struct pollfd files[] = {{output_.number(), POLLIN, 0}, {error_.number(), POLLIN, 0}};
    poll(files, 2,
         static_cast<int>(absl::ToInt64Milliseconds(
             absl::Ceil(std::max(patience, absl::ZeroDuration()), absl::Milliseconds(1)))));
    const absl::string_view output = ReadSome(&output_, absl::MakeSpan(buffer_));
    bytes_ += output.size();
    if (!output.empty() && options_.on_output) options_.on_output(output);
    const bool has_output = !output.empty();
    const absl::string_view error = ReadSome(&error_, absl::MakeSpan(buffer_));
    bytes_ += error.size();
    error_tail->append(error.data(), error.size());
    if (error_tail->size() > kErrorTailBytes) {
      error_tail->erase(0, error_tail->size() - kErrorTailBytes);
    }
    return has_output || !error.empty();
  }

  const ChildProcessOptions& options_;
  const pid_t child_;
  const absl::Time deadline_;
  Descriptor output_;
  Descriptor error_;
  int64_t bytes_ = 0;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
};

void ReapInto(pid_t child, ChildProcessResult* result) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (result->end != ChildProcessResult::End::kExited) return;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) {
    result->end = ChildProcessResult::End::kWroteTooMuch;
  } else if (WIFSIGNALED(status)) {
    result->end = ChildProcessResult::End::kSignaled;
    result->signal = WTERMSIG(status);
  } else {
    result->exit_code = WEXITSTATUS(status);
  }
}

}  // namespace

absl::StatusOr<ChildProcessResult> RunChildProcess(const ChildProcessOptions& options) {
  RETURN_IF_ERROR(CheckNotInterrupted(options));
  RETURN_IF_ERROR(CheckOpenFiles(options.open_files));
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSIGN_OR_RETURN(Pipe error, MakePipe());
  ASSIGN_OR_RETURN(Pipe failure, MakePipe());

  ChildProcessResult result;
  std::optional<int> failure_number;
  pid_t child;
  {
    std::optional<ChildGroup> group;
    {
      // Between the birth of a child and its registration nobody would kill it.
      const EndingSignalsHeldBack held_back;
      ChildSetup setup = {{},
                          options.working_directory.c_str(),
                          getpid(),
                          options.max_file_bytes,
                          output.write.number(),
                          error.write.number(),
                          failure.write.number(),
                          &held_back};
      for (const std::string& word : options.command) {
        setup.argv.push_back(const_cast<char*>(word.c_str()));
      }
      setup.argv.push_back(nullptr);
      child = fork();
      if (child < 0) return SystemError("fork");
      if (child == 0) BecomeProgram(setup);
      // The child does the same; whoever is first.
      setpgid(child, child);
      group.emplace(child);
    }
    // A signal that another thread took before the child was registered.
    if (InterruptSignal() != 0) kill(-child, SIGKILL);
    output.write.Close();
    error.write.Close();
    failure.write.Close();
    failure_number = FailureInChild(failure.read);
    Supervisor(options, child, std::move(output.read), std::move(error.read)).Watch(&result);
    kill(-child, SIGKILL);
  }
  ReapInto(child, &result);
  RETURN_IF_ERROR(CheckNotInterrupted(options));
  if (failure_number.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(options.command[0], " cannot be started: ", std::strerror(*failure_number)));
  }
  return result;
}

}  // namespace meridian
