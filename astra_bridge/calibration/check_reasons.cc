#include "astra_bridge/calibration/check_reasons.h"

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

// A rank that computes for more than this share of a collective's time slows it down.
constexpr double kNotableComputeShare = 0.1;
// Middle halves of repeats that span more than this factor have another cause than the network.
constexpr double kUnsteadyFactor = 1.5;
// Slices are not exactly alike.
constexpr double kSliceMargin = 0.97;

bool LastsASlice(const TransferCell& cell, const std::map<int32_t, double>& time_slices_ns) {
  const auto found = time_slices_ns.find(cell.ranks);
  return found != time_slices_ns.end() && cell.median_ns >= kSliceMargin * found->second;
}

}  // namespace

std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::map<int32_t, double>& time_slices_ns,
                                     const std::optional<CalibratedRange>& range) {
  std::vector<std::string> reasons;
  if (range.has_value()) reasons = range->Beyond(cell, circumstances.device_kinds);
  if (2 * circumstances.overlapped > static_cast<int64_t>(cell.transfers_ns.size())) {
    reasons.push_back(kMetOthers);
  }
  if (circumstances.compute_share.value_or(0) > kNotableComputeShare) {
    reasons.push_back("computing beside");
  }
  if (Quantile(cell.transfers_ns, 0.75) > kUnsteadyFactor * Quantile(cell.transfers_ns, 0.25)) {
    reasons.push_back("unsteady repeats (time slicing or other work)");
  }
  if (LastsASlice(cell, time_slices_ns)) reasons.push_back("time slices of the device");
  return reasons;
}

}  // namespace meridian
