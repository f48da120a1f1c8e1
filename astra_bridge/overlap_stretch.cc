#include "astra_bridge/overlap_stretch.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/numeric/int128.h"
#include "astra_bridge/shared_correction.h"

namespace meridian {
namespace {

// Times alone of several transfers. Sums of very different times are subtracted from each other, so
// they are exact.
struct AloneSum {
  absl::int128 engine_ns = 0;
  absl::int128 corrected_ns = 0;

  AloneSum() = default;
  explicit AloneSum(const TransferSpan& transfer)
      : engine_ns(transfer.alone_ns), corrected_ns(transfer.corrected_ns) {}

  AloneSum& operator+=(const AloneSum& other) {
    engine_ns += other.engine_ns;
    corrected_ns += other.corrected_ns;
    return *this;
  }
  AloneSum& operator-=(const AloneSum& other) {
    engine_ns -= other.engine_ns;
    corrected_ns -= other.corrected_ns;
    return *this;
  }
};

// Sums over the first transfers of an order.
class PrefixSums {
 public:
  // Of each transfer, in ascending order: the time it is sorted by.
  void Add(int64_t time_ns, const TransferSpan& transfer) {
    times_ns_.push_back(time_ns);
    sums_.push_back(sums_.back());
    sums_.back() += AloneSum(transfer);
  }

  // Returns the sum of those whose time is below.
  const AloneSum& Below(int64_t time_ns) const {
    return sums_[std::lower_bound(times_ns_.begin(), times_ns_.end(), time_ns) - times_ns_.begin()];
  }

 private:
  std::vector<int64_t> times_ns_;
  // One more than times.
  std::vector<AloneSum> sums_ = {AloneSum()};
};

}  // namespace

std::vector<double> OverlapStretches(absl::Span<const TransferSpan> transfers) {
  std::vector<size_t> by_end(transfers.size());
  std::iota(by_end.begin(), by_end.end(), size_t{0});
  std::sort(by_end.begin(), by_end.end(),
            [&](size_t a, size_t b) { return transfers[a].end_ns < transfers[b].end_ns; });
  PrefixSums begun, ended;
  for (size_t i = 0; i < transfers.size(); ++i) {
    begun.Add(transfers[i].begin_ns, transfers[i]);
    ended.Add(transfers[by_end[i]].end_ns, transfers[by_end[i]]);
  }
  std::vector<double> stretches;
  stretches.reserve(transfers.size());
  for (const TransferSpan& transfer : transfers) {
    // What takes no time meets nobody.
    AloneSum others;
    if (transfer.begin_ns < transfer.end_ns) {
      others = begun.Below(transfer.end_ns);
      others -= ended.Below(transfer.begin_ns + 1);
      others -= AloneSum(transfer);
    }
    stretches.push_back(
        StretchOf(static_cast<double>(others.engine_ns), static_cast<double>(others.corrected_ns)));
  }
  return stretches;
}

}  // namespace meridian
