#include "astra_bridge/calibration/correction_line.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

constexpr double kHuberBound = 1.5;
// What even the right line misses, relative to the time: noise of the medians is of this order.
constexpr double kModelError = 0.05;
// Standard deviation of an overhead about zero, relative to the time, where nothing is known of it.
constexpr double kOverheadDeviation = 0.3;
// What is left of the least time at the least, in shares of what the slope says.
constexpr double kLeastShare = 0.85;
constexpr int kReweightings = 20;
// What rounding leaves of an overhead that is none.
constexpr double kNoOverheadNs = 1e-3;
// An efficiency above 100 would be read as a slip; times that do not grow with bytes at all have
// it.
constexpr double kLeastSlope = 0.01;

double DeviationOf(const CorrectionPoint& point) {
  return std::hypot(point.relative_error, kModelError);
}

}  // namespace

// Least squares of relative errors, 1 - predicted / measured, reweighted until outliers count no
// more than they should.
CorrectionLine FitCorrectionLine(absl::Span<const CorrectionPoint> points) {
  double least_engine_ns = points[0].least_engine_ns;
  for (const CorrectionPoint& point : points) {
    least_engine_ns = std::min(least_engine_ns, point.least_engine_ns);
  }
  const double most_taken_off_ns = (1 - kLeastShare) * least_engine_ns;
  // A point over its measured time: what overhead and slope are multiplied by, and the slope of a
  // line whose overhead is as negative as may be.
  struct Term {
    double one, x, x_lowered, deviation;
  };
  std::vector<Term> terms;
  std::vector<double> measured_ns;
  for (const CorrectionPoint& point : points) {
    const double one = 1 / point.measured_ns;
    terms.push_back({one, point.engine_ns * one, (point.engine_ns - most_taken_off_ns) * one,
                     DeviationOf(point)});
    measured_ns.push_back(point.measured_ns);
  }
  const double overhead_deviation_ns = kOverheadDeviation * Median(std::move(measured_ns));
  CorrectionLine line = {0, 0};
  for (int round = 0; round < kReweightings; ++round) {
    // Sums over points of what overhead (o) and slope (s) are multiplied by.
    double oo = 1 / (overhead_deviation_ns * overhead_deviation_ns);
    double os = 0, ss = 0, o = 0, s = 0, ss_lowered = 0, s_lowered = 0;
    for (const auto& [one, x, x_lowered, deviation] : terms) {
      const double error = 1 - line.overhead_ns * one - line.slope * x;
      const double huber = round == 0 ? 1 : HuberWeight(error / deviation, kHuberBound);
      const double weight = huber / (deviation * deviation);
      oo += weight * one * one;
      os += weight * one * x;
      ss += weight * x * x;
      o += weight * one;
      s += weight * x;
      ss_lowered += weight * x_lowered * x_lowered;
      s_lowered += weight * x_lowered;
    }
    const CorrectionLine before = line;
    const double determinant = oo * ss - os * os;
    line = {(o * ss - os * s) / determinant, (oo * s - os * o) / determinant};
    if (line.overhead_ns < -line.slope * most_taken_off_ns) {
      line.slope = s_lowered / ss_lowered;
      line.overhead_ns = -line.slope * most_taken_off_ns;
    }
    if (line.slope < kLeastSlope) line = {std::max(0.0, (o - kLeastSlope * os) / oo), kLeastSlope};
    if (line.overhead_ns == before.overhead_ns && line.slope == before.slope) break;
  }
  if (std::abs(line.overhead_ns) < kNoOverheadNs) line.overhead_ns = 0;
  return line;
}

double LossOf(const CorrectionLine& line, const CorrectionPoint& point) {
  const double log_error = std::log(line.TimeNs(point.engine_ns) / point.measured_ns);
  return HuberLoss(log_error / DeviationOf(point), kHuberBound);
}

}  // namespace meridian
