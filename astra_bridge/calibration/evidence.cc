#include "astra_bridge/calibration/evidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kMaxResidual = 2;
constexpr double kMaxCorrelation = 0.9;

constexpr double kShare = 0.95;
// Student's quantile of this share with all freedom.
constexpr double kNormalQuantile95 = 1.959964;
constexpr double kHalfPi = 1.5707963267948966;
// How many pieces the density is summed in.
constexpr size_t kSteps = 4000;
// From here on it is the normal quantile plus the first term of the expansion in 1 / freedom.
constexpr double kNearlyNormal = 500;

}  // namespace

std::vector<std::vector<size_t>> EvidencePoints(absl::Span<const TransferCell> cells,
                                                absl::Span<const double> engine_ns) {
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, std::vector<size_t>> by_point;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_point[{cells[i].kind, cells[i].bytes, std::llround(engine_ns[i])}].push_back(i);
  }
  std::vector<std::vector<size_t>> points;
  points.reserve(by_point.size());
  for (auto& [key, members] : by_point) points.push_back(std::move(members));
  return points;
}

double NeighbourCorrelation(absl::Span<const TransferCell> cells,
                            absl::Span<const double> residuals, size_t unknowns) {
  std::vector<double> centred(residuals.begin(), residuals.end());
  std::array<double, kTimedKinds> sums{}, counts{};
  for (size_t i = 0; i < cells.size(); ++i) {
    centred[i] = std::clamp(centred[i], -kMaxResidual, kMaxResidual);
    sums[static_cast<size_t>(cells[i].kind)] += centred[i];
    counts[static_cast<size_t>(cells[i].kind)] += 1;
  }
  // The residuals of cells that differ only in bytes, by bytes.
  std::map<CellKey, std::map<int64_t, double>> series;
  double variance = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t kind = static_cast<size_t>(cells[i].kind);
    centred[i] -= sums[kind] / counts[kind];
    variance += centred[i] * centred[i] / static_cast<double>(cells.size());
    CellKey key = KeyOf(cells[i]);
    std::get<int64_t>(key) = 0;
    series[std::move(key)][cells[i].bytes] = centred[i];
  }
  double products = 0, pairs = 0;
  for (const auto& [key, by_size] : series) {
    for (auto next = by_size.begin(), last = next++; next != by_size.end(); last = next++) {
      products += last->second * next->second;
      ++pairs;
    }
  }
  if (pairs == 0 || variance == 0) return 0;
  const double taken = static_cast<double>(unknowns) / static_cast<double>(cells.size());
  const double correlation = products / pairs / variance + taken;
  return std::clamp(correlation, 0.0, kMaxCorrelation);
}

double Widening(size_t points, size_t unknowns, double correlation) {
  if (points <= unknowns) return std::numeric_limits<double>::infinity();
  const double free = static_cast<double>(points - unknowns);
  const double common = (1 + correlation) / (1 - correlation);
  if (free < common) return std::numeric_limits<double>::infinity();
  return std::sqrt(static_cast<double>(points) / free * common) * StudentQuantile95(free / common) /
         kNormalQuantile95;
}

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
