#include "astra_bridge/calibration/transfer_quality.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {

// Least squares within cells: all about the cell's mean, in units of its median.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells) {
  double xx = 0, xy = 0, yy = 0;
  int64_t n = 0;
  for (const TransferCell& cell : cells) {
    const double mean_spread_ns = Mean(cell.arrival_spreads_ns);
    const double mean_transfer_ns = Mean(cell.transfers_ns);
    for (size_t i = 0; i < cell.transfers_ns.size(); ++i) {
      const double x = (cell.arrival_spreads_ns[i] - mean_spread_ns) / cell.median_ns;
      const double y = (cell.transfers_ns[i] - mean_transfer_ns) / cell.median_ns;
      xx += x * x;
      xy += x * y;
      yy += y * y;
      ++n;
    }
  }
  ArrivalSpread spread;
  spread.set_n(n);
  const int64_t freedom = n - static_cast<int64_t>(cells.size()) - 1;
  if (xx > 0 && freedom > 0) {
    spread.set_slope(xy / xx);
    spread.set_slope_standard_error(
        std::sqrt(std::max(0.0, yy - xy * xy / xx) / static_cast<double>(freedom) / xx));
  }
  return spread;
}

ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs) {
  std::vector<double> differences_ns, shares;
  for (const CalibrationRun& run : runs) {
    for (const TransferSample& sample : run.transfers.samples) {
      differences_ns.push_back(sample.transfer_ns - sample.shortest_duration_ns);
      shares.push_back(differences_ns.back() / sample.transfer_ns);
    }
  }
  ClockCheck check;
  check.set_median_difference_ns(Median(differences_ns));
  check.set_p95_difference_ns(Quantile(differences_ns, 0.95));
  check.set_median_share(Median(shares));
  return check;
}

}  // namespace meridian
