// What a status means to the person who ran the command.
//
// Libraries choose the code by who has to act; commands turn it into the exit code:
//   2  the user: wrong flag or input (InvalidArgument, NotFound, AlreadyExists, OutOfRange,
//      FailedPrecondition, Unimplemented, DataLoss)
//   3  the environment: I/O error, disk full, no permission, missing program, time-out (all other)
#ifndef XLA_PROFILER_BASE_STATUS_UTIL_H_
#define XLA_PROFILER_BASE_STATUS_UTIL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

inline constexpr int kExitDone = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitEnvironment = 3;

// Returns kExitDone for OK, else kExitBadInput or kExitEnvironment as drawn above.
int ExitCode(const absl::Status& status);

// Returns the status with "context: " in front of its message; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// Returns the status of a failed system call, e.g. "out/a.pb: No space left on device". A missing
// file is NotFound (the user named it); a full disk, quota or I/O error is the environment's.
absl::Status ErrnoToStatus(int error_number, absl::string_view context);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_STATUS_UTIL_H_
