#ifndef XLA_PROFILER_BASE_CHECK_H_
#define XLA_PROFILER_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Stops the program, in every build, when the condition does not hold. For our own mistakes only:
// bad input is an absl::Status.
#define MERIDIAN_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // XLA_PROFILER_BASE_CHECK_H_
