#include "astra_bridge/calibration/error_summary.h"

#include <cmath>
#include <cstddef>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {

ErrorSummary SummariseErrors(absl::Span<const Prediction> predictions) {
  ErrorSummary summary;
  summary.set_n(static_cast<int64_t>(predictions.size()));
  if (predictions.empty()) return summary;
  std::vector<double> all, signed_errors, small, large;
  for (const Prediction& prediction : predictions) {
    const double error = prediction.signed_error();
    all.push_back(std::abs(error));
    signed_errors.push_back(error);
    (prediction.bytes >= kLargeBytes ? large : small).push_back(std::abs(error));
  }
  summary.set_mape(Mean(all));
  summary.set_mean_signed_error(Mean(signed_errors));
  summary.set_p95(Quantile(all, 0.95));
  if (!large.empty()) summary.set_mape_large(Mean(large));
  if (!small.empty()) summary.set_mape_small(Mean(small));
  return summary;
}

}  // namespace meridian
