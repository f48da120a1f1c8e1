#ifndef XLA_PROFILER_UTIL_STABLE_HASH_H_
#define XLA_PROFILER_UTIL_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

// FNV-1a, 64 bits: the same on all machines and in all builds, so values may be stored and
// compared.
class StableHash {
 public:
  void AddNumber(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(number >> shift));
  }

  // With its length, so that "ab", "c" and "a", "bc" differ.
  void AddText(absl::string_view text) {
    AddNumber(text.size());
    for (char c : text) AddByte(static_cast<uint8_t>(c));
  }

  uint64_t value() const { return value_; }

 private:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3; }

  uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace meridian

#endif  // XLA_PROFILER_UTIL_STABLE_HASH_H_
