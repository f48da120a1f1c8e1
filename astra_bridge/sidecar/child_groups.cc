#include "astra_bridge/sidecar/child_groups.h"

#include <pthread.h>

#include <atomic>
#include <iterator>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/synchronization/mutex.h"
#include "xla_profiler/base/check.h"
#include "xla_profiler/base/files/interrupt.h"

namespace meridian {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kSignalCount = std::size(kSignals);

// What the handler looks at: nothing but atomics, and actions that do not change while it is
// installed.
std::atomic<pid_t> groups[ChildGroup::kMaxChildGroups];
struct sigaction actions_before[kSignalCount];

ABSL_CONST_INIT absl::Mutex mutex(absl::kConstInit);
int registered_groups = 0;

struct sigaction* ActionBefore(int signal) {
  int index = 0;
  while (kSignals[index] != signal) ++index;
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
  for (int signal : kSignals) {
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
  for (int signal : kSignals) sigaction(signal, ActionBefore(signal), nullptr);
}

}  // namespace

SignalsHeldBack::SignalsHeldBack() {
  sigset_t held;
  sigemptyset(&held);
  for (int signal : kSignals) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

SignalsHeldBack::~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void SignalsHeldBack::LetThroughInChild() const {
  for (int signal : kSignals) {
    struct sigaction action;
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

ChildGroup::ChildGroup(pid_t leader) : slot_(0) {
  absl::MutexLock lock(&mutex);
  while (slot_ < kMaxChildGroups && groups[slot_].load() != 0) ++slot_;
  MERIDIAN_CHECK(slot_ < kMaxChildGroups);
  groups[slot_].store(leader);
  if (++registered_groups == 1) InstallHandlers();
}

ChildGroup::~ChildGroup() {
  absl::MutexLock lock(&mutex);
  groups[slot_].store(0);
  if (--registered_groups == 0) RemoveHandlers();
}

}  // namespace meridian
