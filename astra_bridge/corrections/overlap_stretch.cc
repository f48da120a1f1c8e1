#include "astra_bridge/corrections/overlap_stretch.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace meridian {
namespace {

// Sums over the first transfers of an order.
class PrefixSums {
 public:
  // Of each transfer, in ascending order: the time it is sorted by.
  void Add(int64_t time_ns, const TransferSpan& transfer) {
    times_ns_.push_back(time_ns);
    sums_.push_back(sums_.back());
    sums_.back() += transfer.alone;
  }

  // Returns the sum of those whose time is below.
  const AloneTimes& Below(int64_t time_ns) const {
    return sums_[std::lower_bound(times_ns_.begin(), times_ns_.end(), time_ns) - times_ns_.begin()];
  }

 private:
  std::vector<int64_t> times_ns_;
  // One more than times.
  std::vector<AloneTimes> sums_ = {AloneTimes()};
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
    AloneTimes others;
    if (transfer.begin_ns < transfer.end_ns) {
      others = begun.Below(transfer.end_ns);
      others -= ended.Below(transfer.begin_ns + 1);
      others -= transfer.alone;
    }
    stretches.push_back(StretchOf(others));
  }
  return stretches;
}

}  // namespace meridian
