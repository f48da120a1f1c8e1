// SPDX-License-Identifier: Apache-2.0
// Draws as WalkControlFlow does, so that a motif takes the same branches.
#ifndef SST_CORE_RNG_MERSENNE_H_
#define SST_CORE_RNG_MERSENNE_H_

#include <cstdint>
#include <random>

namespace SST {
namespace RNG {

class MersenneRNG {
 public:
  explicit MersenneRNG(uint32_t seed) : random_(seed) {}
  double nextUniform() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }

 private:
  std::mt19937_64 random_;
};

}  // namespace RNG
}  // namespace SST

#endif  // SST_CORE_RNG_MERSENNE_H_
