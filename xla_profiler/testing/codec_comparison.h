// SPDX-License-Identifier: Apache-2.0
// Holds the streaming codec against libprotobuf on the same bytes. Used on real files, on mutated
// ones and by the fuzzer.
#ifndef XLA_PROFILER_TESTING_CODEC_COMPARISON_H_
#define XLA_PROFILER_TESTING_CODEC_COMPARISON_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// What became of the bytes.
enum class CodecVerdict {
  kAccepted,
  // Both refuse them as malformed.
  kMalformed,
  // Well-formed, but an id is defined twice or not at all: libprotobuf does not look, we refuse.
  kInconsistentIds,
};

// OK when both codecs agree, else an Internal error that says where they differ: on whether the
// bytes are well-formed, on any plane, line, event, stat or metadata, on a rewrite without changes
// (the same bytes) or on a rewrite that moves every event (libprotobuf reads the moved times).
absl::Status CompareWithLibprotobuf(absl::string_view bytes, CodecVerdict* verdict);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_CODEC_COMPARISON_H_
