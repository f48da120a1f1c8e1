#include "astra_bridge/calibration/correction_points.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "astra_bridge/calibration/robust_statistics.h"
#include "astra_bridge/calibration/size_ranges.h"

namespace meridian {
namespace {

// The geometric mean of a group's points.
CorrectionPoint MeanPoint(int64_t bytes, const std::vector<CorrectionPoint>& points) {
  double log_engine = 0, log_measured = 0, variance = 0;
  for (const CorrectionPoint& point : points) {
    log_engine += std::log(point.engine_ns);
    log_measured += std::log(point.measured_ns);
    variance += point.relative_error * point.relative_error;
  }
  const double count = static_cast<double>(points.size());
  CorrectionPoint mean = points[0];
  for (const CorrectionPoint& point : points) {
    mean.least_engine_ns = std::min(mean.least_engine_ns, point.least_engine_ns);
  }
  mean.bytes = bytes;
  mean.engine_ns = std::exp(log_engine / count);
  mean.measured_ns = std::exp(log_measured / count);
  mean.relative_error = std::sqrt(variance) / count;
  const bool alike = std::all_of(points.begin(), points.end(), [&](const CorrectionPoint& point) {
    return point.protocol == mean.protocol;
  });
  if (!alike) mean.protocol.clear();
  return mean;
}

}  // namespace

PointsByKind MakeCorrectionPoints(absl::Span<const TransferCell> cells,
                                  absl::Span<const double> engine_ns,
                                  absl::Span<const double> least_engine_ns) {
  PointsByKind points;
  std::map<std::tuple<int32_t, std::vector<int32_t>, int32_t>, uint32_t> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    const TransferCell& cell = cells[i];
    const uint32_t next = static_cast<uint32_t>(groups.size());
    CorrectionPoint point;
    point.bytes = cell.bytes;
    point.group = groups.insert({{cell.ranks, cell.participants, cell.pairs}, next}).first->second;
    point.ranks = cell.kind == CollectiveKind::kPointToPoint
                      ? cell.ranks
                      : static_cast<int32_t>(cell.participants.size());
    point.engine_ns = engine_ns[i];
    point.least_engine_ns = std::min(least_engine_ns[i], engine_ns[i]);
    point.measured_ns = cell.median_ns;
    point.relative_error = cell.relative_error;
    point.protocol = cell.protocol;
    points[static_cast<size_t>(cell.kind)].push_back(std::move(point));
  }
  for (std::vector<CorrectionPoint>& of_kind : points) of_kind = MergeSizes(of_kind);
  return points;
}

std::vector<CorrectionPoint> MergeSizes(const std::vector<CorrectionPoint>& points) {
  std::set<int64_t> sizes;
  for (const CorrectionPoint& point : points) sizes.insert(point.bytes);
  if (sizes.size() <= kMaxSizes) return points;
  const SizeRanges ranges(*sizes.begin(), *sizes.rbegin(), kMaxSizes);
  std::array<std::vector<double>, kMaxSizes> log_bytes;
  for (int64_t bytes : sizes) {
    log_bytes[ranges.RangeOf(bytes)].push_back(std::log(static_cast<double>(bytes)));
  }
  std::map<std::pair<size_t, uint32_t>, std::vector<CorrectionPoint>> by_range;
  for (const CorrectionPoint& point : points) {
    by_range[{ranges.RangeOf(point.bytes), point.group}].push_back(point);
  }
  std::vector<CorrectionPoint> merged;
  for (const auto& [range_and_group, of_group] : by_range) {
    const double mean_log_bytes = Mean(log_bytes[range_and_group.first]);
    merged.push_back(MeanPoint(std::llround(std::exp(mean_log_bytes)), of_group));
  }
  return merged;
}

}  // namespace meridian
