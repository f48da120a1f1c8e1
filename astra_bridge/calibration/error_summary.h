// How far predictions lie from what was measured.
#ifndef ASTRA_BRIDGE_CALIBRATION_ERROR_SUMMARY_H_
#define ASTRA_BRIDGE_CALIBRATION_ERROR_SUMMARY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"

namespace meridian {

// From here on bandwidth decides; errors are also summarised on either side.
inline constexpr int64_t kLargeBytes = int64_t{1} << 20;

struct Prediction {
  int64_t bytes = 0;
  // Positive.
  double measured_ns = 0;
  double predicted_ns = 0;

  double signed_error() const { return predicted_ns / measured_ns - 1; }
};

// All zero, with no parts, when there are none.
ErrorSummary SummariseErrors(absl::Span<const Prediction> predictions);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_ERROR_SUMMARY_H_
