// The signal that told this process to end, where it was taken care of and the process is to clean
// up before it ends.
#ifndef XLA_PROFILER_BASE_FILES_INTERRUPT_H_
#define XLA_PROFILER_BASE_FILES_INTERRUPT_H_

#include <atomic>

namespace meridian {

namespace interrupt_internal {
inline std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free);
}  // namespace interrupt_internal

// Has InterruptSignal return the signal from now on. Safe in a signal handler.
inline void NoteInterrupt(int signal) { interrupt_internal::signal_number.store(signal); }

// Returns the signal, or 0. It stays: a process that was told to end starts nothing new.
inline int InterruptSignal() { return interrupt_internal::signal_number.load(); }

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_INTERRUPT_H_
