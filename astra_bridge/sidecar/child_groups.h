// The process groups that must not outlive this process. While there are any, SIGINT, SIGTERM
// and SIGHUP kill them instead of this process, which finds out by InterruptSignal, cleans up and
// ends; without any, these signals do what they did before.
#ifndef ASTRA_BRIDGE_SIDECAR_CHILD_GROUPS_H_
#define ASTRA_BRIDGE_SIDECAR_CHILD_GROUPS_H_

#include <sys/types.h>

#include <csignal>

namespace meridian {

// Holds these signals back from this thread as long as it lives: between the birth of a child
// and its registration nobody would kill it.
class SignalsHeldBack {
 public:
  SignalsHeldBack();
  ~SignalsHeldBack();
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

  // Lets them through in the child, too. There they end it, or are ignored if they were: handlers
  // of this process would do in the child what only this process may do, such as remove its
  // unfinished files. Async-signal-safe.
  void LetThroughInChild() const;

 private:
  sigset_t before_;
};

// A registered group, as long as it lives. At most kMaxChildGroups at once.
class ChildGroup {
 public:
  static constexpr int kMaxChildGroups = 256;

  // To be destroyed before the leader is waited for: afterwards its id may be somebody else's.
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

 private:
  int slot_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_CHILD_GROUPS_H_
