// SPDX-License-Identifier: Apache-2.0
// Bytes that almost are what they should be.
#ifndef XLA_PROFILER_TESTING_DAMAGE_H_
#define XLA_PROFILER_TESTING_DAMAGE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace meridian {

// Returns the bytes, of which there must be some, with one to four random changes: a byte replaced,
// a bit flipped, a byte inserted, up to three bytes cut out.
inline std::string Damage(std::string bytes, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
    const size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(random()));
        break;
      case 3:
        bytes.erase(at, 1 + random() % 3);
        break;
    }
  }
  return bytes;
}

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_DAMAGE_H_
