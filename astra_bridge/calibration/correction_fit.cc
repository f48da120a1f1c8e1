#include "astra_bridge/calibration/correction_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "astra_bridge/calibration/robust_statistics.h"
#include "astra_bridge/calibration/segmented_line.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {
namespace {

// A segment has two numbers: by Akaike's criterion it has to gain two, by the Bayesian one for some
// fifteen sizes three, or four with its end. Largest first.
constexpr std::array<double, 3> kPenalties = {8, 4, 2};

// An error beyond a factor of e counts as one: how wrong hardly matters then.
constexpr double kMaxLogError = 1;
// For logarithms.
constexpr double kLeastNs = 1;

// Of a kind's points, those that are to be predicted and those to do it from.
struct LeftOut {
  CollectiveKind kind;
  std::vector<CorrectionPoint> held;
  std::vector<CorrectionPoint> rest;
};

template <typename IsHeld>
LeftOut LeaveOut(CollectiveKind kind, const std::vector<CorrectionPoint>& points, IsHeld is_held) {
  LeftOut left_out{kind, {}, {}};
  for (const CorrectionPoint& point : points) {
    (is_held(point) ? left_out.held : left_out.rest).push_back(point);
  }
  return left_out;
}

std::vector<LeftOut> LeaveOutEach(const PointsByKind& points) {
  std::vector<LeftOut> all;
  for (size_t k = 0; k < points.size(); ++k) {
    const CollectiveKind kind = static_cast<CollectiveKind>(k);
    std::set<int64_t> sizes;
    std::set<int32_t> ranks;
    for (const CorrectionPoint& point : points[k]) {
      sizes.insert(point.bytes);
      ranks.insert(point.ranks);
    }
    for (int64_t bytes : sizes) {
      if (bytes == *sizes.begin() || bytes == *sizes.rbegin()) continue;
      all.push_back(LeaveOut(kind, points[k],
                             [&](const CorrectionPoint& point) { return point.bytes == bytes; }));
    }
    if (ranks.size() < 2) continue;
    for (int32_t count : ranks) {
      all.push_back(LeaveOut(kind, points[k],
                             [&](const CorrectionPoint& point) { return point.ranks == count; }));
    }
  }
  return all;
}

}  // namespace

PenaltyChoice ChoosePenalty(const PointsByKind& points) {
  // By penalty; all in the same order of points.
  std::vector<std::vector<double>> errors(kPenalties.size());
  for (const LeftOut& left_out : LeaveOutEach(points)) {
    const SegmentedLine line(left_out.rest);
    for (size_t p = 0; p < kPenalties.size(); ++p) {
      Corrections corrections;
      corrections.segments[static_cast<size_t>(left_out.kind)] = line.Fit(kPenalties[p]);
      for (const CorrectionPoint& point : left_out.held) {
        const double predicted_ns =
            corrections.CorrectedNs(left_out.kind, point.bytes, point.engine_ns);
        const double log_error = std::log(std::max(predicted_ns, kLeastNs) / point.measured_ns);
        errors[p].push_back(std::min(kMaxLogError, std::abs(log_error)));
      }
    }
  }
  if (errors[0].empty()) return {kPenalties[0], 0};
  size_t best = 0;
  for (size_t p = 1; p < kPenalties.size(); ++p) {
    if (Mean(errors[p]) < Mean(errors[best])) best = p;
  }
  return {kPenalties[best], Mean(errors[best])};
}

Corrections FitCorrections(const PointsByKind& points, double penalty) {
  Corrections corrections;
  for (size_t kind = 0; kind < points.size(); ++kind) {
    if (points[kind].empty()) continue;
    corrections.segments[kind] = SegmentedLine(points[kind]).Fit(penalty);
  }
  return corrections;
}

}  // namespace meridian
