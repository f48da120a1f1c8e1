#include "astra_bridge/calibration/student_t.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "xla_profiler/base/check.h"

namespace meridian {
namespace {

constexpr double kShare = 0.95;
constexpr double kHalfPi = 1.5707963267948966;
constexpr size_t kSteps = 4000;
// From here on it is the normal quantile plus the first term of the expansion in 1 / freedom.
constexpr double kNearlyNormal = 500;

}  // namespace

// With T = sqrt(freedom) tan(a) the density of the angle is proportional to cos(a)^(freedom - 1),
// which is bounded and ends at pi / 2: summed by the rule of midpoints until the share is reached.
double StudentQuantile95(double degrees_of_freedom) {
  MERIDIAN_CHECK(degrees_of_freedom >= 1);
  if (degrees_of_freedom > kNearlyNormal) {
    const double z = kNormalQuantile95;
    return z + z * (z * z + 1) / (4 * degrees_of_freedom);
  }
  const double step = kHalfPi / static_cast<double>(kSteps);
  std::vector<double> densities(kSteps);
  double total = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const double angle = (static_cast<double>(i) + 0.5) * step;
    densities[i] = std::pow(std::cos(angle), degrees_of_freedom - 1);
    total += densities[i];
  }
  double below = 0;
  size_t i = 0;
  while (below + densities[i] < kShare * total) below += densities[i++];
  const double position = static_cast<double>(i) + (kShare * total - below) / densities[i];
  return std::sqrt(degrees_of_freedom) * std::tan(position * step);
}

}  // namespace meridian
