// SPDX-License-Identifier: Apache-2.0
// Holds the decoder of HLO modules against libprotobuf on the same bytes. Used on real modules, on
// damaged ones and by the fuzzer.
#ifndef XLA_PROFILER_TESTING_HLO_COMPARISON_H_
#define XLA_PROFILER_TESTING_HLO_COMPARISON_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// What became of the bytes.
enum class HloVerdict {
  kAccepted,
  kRefused,
};

// Decodes the bytes as an xla.HloProto, walks everything that can be asked of the module, and
// compares it with libprotobuf's parse. OK unless they differ: on whether the bytes are malformed,
// or on any computation or instruction.
absl::Status CompareHloWithLibprotobuf(absl::string_view bytes, HloVerdict* verdict);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_HLO_COMPARISON_H_
