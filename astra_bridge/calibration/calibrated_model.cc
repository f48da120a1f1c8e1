#include "astra_bridge/calibration/calibrated_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Returns the ratios of messages that take as long as the engine says with so many times the
// bandwidth, where the points are those of messages with the fabric's own.
absl::StatusOr<std::vector<CorrectionPoint>> WithBandwidthTimes(
    double factor, const Fabric& fabric, const std::vector<CorrectionPoint>& points) {
  Fabric other = fabric;
  for (NetworkDimension& dimension : other.network.dimensions) dimension.bytes_per_ns *= factor;
  std::vector<TransferCell> cells;
  for (const CorrectionPoint& point : points) {
    TransferCell& cell = cells.emplace_back();
    cell.kind = CollectiveKind::kPointToPoint;
    cell.bytes = point.bytes;
    cell.ranks = fabric.network.npus();
    cell.participants = {0, 1};
    cell.pairs = 1;
  }
  ASSIGN_OR_RETURN(const std::vector<double> own_ns, EngineTimesNs(fabric, cells));
  ASSIGN_OR_RETURN(const std::vector<double> other_ns, EngineTimesNs(other, cells));
  std::vector<CorrectionPoint> result = points;
  for (size_t i = 0; i < points.size(); ++i) result[i].ratio *= other_ns[i] / own_ns[i];
  return result;
}

// Returns the points divided by what others say of their sizes.
std::vector<CorrectionPoint> OverPoints(const std::vector<CorrectionPoint>& points,
                                        const std::vector<CorrectionPoint>& others) {
  std::vector<CorrectionPoint> result = points;
  for (CorrectionPoint& point : result) {
    point.ratio /= RatioAt(others, point.bytes, point.ranks);
  }
  return result;
}

}  // namespace

absl::StatusOr<CalibratedModel> FitModel(const Fabric& start,
                                         absl::Span<const TransferCell> cells) {
  // Messages one way tell another bandwidth than what goes both ways, as collectives do.
  std::vector<TransferCell> both_ways;
  for (const TransferCell& cell : cells) {
    if (!IsOneWay(cell)) both_ways.push_back(cell);
  }
  CalibratedModel model;
  ASSIGN_OR_RETURN(
      model.parameters,
      FitParameters(start, both_ways.empty() ? cells : absl::MakeConstSpan(both_ways)));
  ASSIGN_OR_RETURN(const std::vector<double> engine_ns,
                   EngineTimesNs(model.parameters.fabric, cells));
  model.corrections = FitCorrections(cells, engine_ns);
  RETURN_IF_ERROR(AssumeUnmeasuredMessages(model.parameters.fabric, &model.corrections));
  return model;
}

Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns) {
  std::map<std::tuple<CollectiveKind, bool, double, int64_t>, std::vector<size_t>> by_size;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_size[{cells[i].kind, IsOneWay(cells[i]), EffectiveRanksOf(cells[i]), cells[i].bytes}]
        .push_back(i);
  }
  Corrections corrections;
  for (auto size = by_size.begin(); size != by_size.end();) {
    const auto [kind, is_one_way, ranks, smallest_bytes] = size->first;
    const double end_bytes = kSameSizeFactor * static_cast<double>(smallest_bytes);
    std::vector<double> log_bytes, log_ratios;
    const auto goes_on = [&, curve = std::tie(kind, is_one_way, ranks)] {
      if (size == by_size.end()) return false;
      const auto& [next_kind, next_is_one_way, next_ranks, bytes] = size->first;
      return std::tie(next_kind, next_is_one_way, next_ranks) == curve &&
             static_cast<double>(bytes) < end_bytes;
    };
    do {
      for (size_t i : size->second) {
        log_bytes.push_back(std::log(static_cast<double>(cells[i].bytes)));
        log_ratios.push_back(std::log(cells[i].median_ns / engine_ns[i]));
      }
      ++size;
    } while (goes_on());
    (is_one_way ? corrections.one_way : corrections.points[static_cast<size_t>(kind)])
        .push_back({std::llround(std::exp(Mean(log_bytes))), std::exp(Mean(log_ratios)), ranks});
  }
  return corrections;
}

absl::Status AssumeUnmeasuredMessages(const Fabric& fabric, Corrections* corrections) {
  std::vector<CorrectionPoint>& both_ways =
      corrections->points[static_cast<size_t>(CollectiveKind::kPointToPoint)];
  std::vector<CorrectionPoint>& one_way = corrections->one_way;
  if (both_ways.empty() && one_way.empty()) return absl::OkStatus();
  if (both_ways.empty()) {
    ASSIGN_OR_RETURN(both_ways, WithBandwidthTimes(1 / kOneWayAdvantage, fabric, one_way));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<CorrectionPoint> assumed,
                   WithBandwidthTimes(kOneWayAdvantage, fabric, both_ways));
  if (!one_way.empty()) {
    // What was measured over what is assumed, at the sizes that were measured.
    const std::vector<CorrectionPoint> scales = OverPoints(one_way, assumed);
    for (CorrectionPoint& point : assumed) {
      point.ratio *= RatioAt(scales, point.bytes, point.ranks);
    }
    for (const CorrectionPoint& measured : one_way) {
      assumed.erase(
          std::remove_if(assumed.begin(), assumed.end(),
                         [&](const CorrectionPoint& point) {
                           return point.ranks == measured.ranks &&
                                  std::abs(std::log(static_cast<double>(point.bytes) /
                                                    static_cast<double>(measured.bytes))) <
                                      std::log(kSameSizeFactor);
                         }),
          assumed.end());
      assumed.push_back(measured);
    }
    std::sort(assumed.begin(), assumed.end(), IsBefore);
  }
  one_way = std::move(assumed);
  return absl::OkStatus();
}

}  // namespace meridian
