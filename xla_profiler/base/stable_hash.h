#ifndef XLA_PROFILER_BASE_STABLE_HASH_H_
#define XLA_PROFILER_BASE_STABLE_HASH_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

// 64 bits, the same on all machines and in all builds, so values may be stored and compared. Like
// FNV-1a, but eight bytes at a time, and with their upper half folded into the lower so that it
// counts, too.
class StableHash {
 public:
  void AddNumber(uint64_t number) {
    value_ = (value_ ^ number) * 0x9E3779B97F4A7C15;
    value_ ^= value_ >> 32;
  }

  // With its length, so that "ab", "c" and "a", "bc" differ.
  void AddText(absl::string_view text) {
    AddNumber(text.size());
    for (; text.size() >= 8; text.remove_prefix(8)) AddNumber(Word(text));
    if (!text.empty()) AddNumber(Word(text));
  }

  uint64_t value() const { return value_; }

 private:
  // The first eight bytes, or as many as there are, the first one lowest.
  static uint64_t Word(absl::string_view text) {
    uint64_t word = 0;
    const size_t size = text.size() < 8 ? text.size() : 8;
    for (size_t i = 0; i < size; ++i) {
      word |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << (8 * i);
    }
    return word;
  }

  uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_STABLE_HASH_H_
