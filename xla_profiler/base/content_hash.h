// SPDX-License-Identifier: Apache-2.0
// A hash that stands for the content: 128 bits of XXH3, so that equal values may be taken for equal
// content however many pieces a run has. The values are the same on all machines and in all builds
// and may be stored. Nothing here resists somebody who makes collisions on purpose.
#ifndef XLA_PROFILER_BASE_CONTENT_HASH_H_
#define XLA_PROFILER_BASE_CONTENT_HASH_H_

#include <cstdint>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace meridian {

class ContentHash {
 public:
  void AddNumber(uint64_t number);
  void AddHash(absl::uint128 hash);

  // Adds the text with its length, so that "ab", "c" and "a", "bc" differ.
  void AddText(absl::string_view text);

  absl::uint128 value() const;

 private:
  // What was added, with long texts replaced by their hashes.
  std::string content_;
};

// Returns the hash of one text.
absl::uint128 HashOfText(absl::string_view text);

// Returns the value as 32 hexadecimal digits.
std::string HashDigits(absl::uint128 hash);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_CONTENT_HASH_H_
