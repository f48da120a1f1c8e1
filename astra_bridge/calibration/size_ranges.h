// Ranges of bytes of the same ratio: what neighbouring sizes are merged by where there are too many
// to look at each.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIZE_RANGES_H_
#define ASTRA_BRIDGE_CALIBRATION_SIZE_RANGES_H_

#include <cstddef>
#include <cstdint>

namespace meridian {

// So many sizes of a kind are looked at one by one; more are merged.
inline constexpr size_t kMaxSizes = 48;

class SizeRanges {
 public:
  // Between two positive sizes, the first below the last.
  SizeRanges(int64_t first, int64_t last, size_t count);

  // Bytes are from first to last. Smaller than the count, and never less for more bytes.
  size_t RangeOf(int64_t bytes) const;

 private:
  const double log_first_;
  const double ranges_per_log_;
  const size_t count_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIZE_RANGES_H_
