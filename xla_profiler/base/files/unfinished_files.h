// SPDX-License-Identifier: Apache-2.0
// What a process does when a signal tells it to end: it ends what it started, and leaves no
// half-written files behind. Whoever starts a process or makes such a file or folder registers it; a
// signal handler ends and removes all that are registered, and lets the process end.
#ifndef XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_
#define XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_

#include <sys/types.h>

#include <csignal>
#include <string>

#include "xla_profiler/base/files/signal_registry.h"

namespace meridian {

// The signals from outside that end a process unless it does something about them. (SIGXFSZ is
// none: commands ignore it, and the write fails.)
inline constexpr int kEndingSignals[] = {SIGHUP,  SIGINT,  SIGQUIT,   SIGUSR1, SIGUSR2,
                                         SIGPIPE, SIGALRM, SIGTERM,   SIGXCPU, SIGVTALRM,
                                         SIGPROF, SIGPOLL, SIGSTKFLT, SIGPWR};

// Holds these signals back from this thread as long as it lives.
class EndingSignalsHeldBack {
 public:
  EndingSignalsHeldBack() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kEndingSignals) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~EndingSignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndingSignalsHeldBack(const EndingSignalsHeldBack&) = delete;
  EndingSignalsHeldBack& operator=(const EndingSignalsHeldBack&) = delete;

  // Returns which signals were held back before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

// Registers a file while it lives, or, when the path ends in a slash, a folder with all that is in
// it. Begin before the file is made, and end when it has been removed or given its final name. The
// name must be one that nobody else has.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  SignalRegistry<char>::Entry* const entry_;
};

// Registers a process group by its leader while it lives. End before the leader is waited for:
// afterwards its id may be somebody else's.
class UnfinishedProcess {
 public:
  explicit UnfinishedProcess(pid_t leader);
  ~UnfinishedProcess();
  UnfinishedProcess(const UnfinishedProcess&) = delete;
  UnfinishedProcess& operator=(const UnfinishedProcess&) = delete;

 private:
  const pid_t leader_;
  SignalRegistry<pid_t>::Entry* const entry_;
};

// Kills the processes and removes the files that are registered and there; links are not followed.
// Safe in a signal handler. The process must end afterwards: threads that register or unregister
// something wait from then on.
void RemoveUnfinishedFiles();

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_
