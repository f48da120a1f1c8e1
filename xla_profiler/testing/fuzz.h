// SPDX-License-Identifier: Apache-2.0
// A fuzz target is one function over any bytes. fuzz.bzl makes a test of it that tries the inputs
// of its corpus and, with --config=fuzz, lets libFuzzer make up more (docs/reliability.md).
#ifndef XLA_PROFILER_TESTING_FUZZ_H_
#define XLA_PROFILER_TESTING_FUZZ_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Defined by each target. Returns an error, which ends the program, only for what must never be; a
// parser that refuses the bytes does what it should.
absl::Status FuzzOne(absl::string_view bytes);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_FUZZ_H_
