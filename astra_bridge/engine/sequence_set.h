#ifndef ASTRA_BRIDGE_ENGINE_SEQUENCE_SET_H_
#define ASTRA_BRIDGE_ENGINE_SEQUENCE_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meridian {

// A set of small numbers, as bits. Empty it takes no memory of its own.
class SequenceSet {
 public:
  void Insert(uint32_t sequence) {
    const size_t word = sequence / 64;
    if (word >= bits_.size()) bits_.resize(word + 1);
    bits_[word] |= uint64_t{1} << sequence % 64;
  }

  // Removes the number; false when it was not there.
  bool Take(uint32_t sequence) {
    const size_t word = sequence / 64;
    const uint64_t bit = uint64_t{1} << sequence % 64;
    if (word >= bits_.size() || (bits_[word] & bit) == 0) return false;
    bits_[word] &= ~bit;
    return true;
  }

  void Clear() { bits_.clear(); }

 private:
  std::vector<uint64_t> bits_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SEQUENCE_SET_H_
