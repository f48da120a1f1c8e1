#include "astra_bridge/calibration/engine_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/links_config.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

constexpr double kAssumedGibibytesPerSecond = 50;
constexpr double kAssumedLatencyNs = 500;

}  // namespace

Fabric AssumedFabric(const std::vector<int32_t>& levels) {
  Fabric fabric;
  for (const int32_t ranks : levels) {
    fabric.network.dimensions.push_back({BlockShape::kFullyConnected, ranks});
  }
  fabric.system = DefaultSystemConfig(fabric.network);
  for (std::vector<CollectiveAlgorithm>& of_kind : fabric.system.algorithms) {
    for (CollectiveAlgorithm& algorithm : of_kind)
      algorithm.kind = CollectiveAlgorithm::Kind::kRing;
  }
  for (CollectiveAlgorithm& algorithm :
       fabric.system.algorithms[static_cast<size_t>(CollectiveKind::kAllToAll)]) {
    algorithm.kind = CollectiveAlgorithm::Kind::kDirect;
  }
  return WithAssumedParameters(fabric);
}

Fabric WithAssumedParameters(const Fabric& shape) {
  Fabric fabric = shape;
  for (NetworkDimension& dimension : fabric.network.dimensions) {
    dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(kAssumedGibibytesPerSecond);
    dimension.latency_ns = kAssumedLatencyNs;
  }
  if (fabric.system.local_memory_bandwidth <= 0) {
    fabric.system.local_memory_bandwidth = kFreeReductions;
  }
  return fabric;
}

Fabric FabricForRanks(const Fabric& fabric, int32_t ranks) {
  Fabric sized = fabric;
  if (fabric.network.has_links()) return sized;
  NetworkDimension& last = sized.network.dimensions.back();
  const int32_t inner = fabric.network.npus() / last.npus;
  if (ranks % inner == 0 && ranks / inner > 1) last.npus = ranks / inner;
  return sized;
}

absl::StatusOr<Fabric> WithSharedPorts(const Fabric& fabric) {
  Fabric shared = fabric;
  NetworkConfig& network = shared.network;
  for (NetworkDimension& dimension : network.dimensions) {
    if (dimension.shape != BlockShape::kFullyConnected) continue;
    dimension.shape = BlockShape::kSwitch;
    dimension.latency_ns /= 2;
  }
  ASSIGN_OR_RETURN(network, AsLinks(network));
  // Collectives of part of the ranks run flat, and so do those of all on links of one dimension.
  if (network.dimensions.size() > 1) {
    network.dimensions = {{BlockShape::kLinks, fabric.network.npus()}};
    shared.system.algorithms = DefaultSystemConfig(network).algorithms;
  }
  return shared;
}

NetworkTiming EngineForRanks(const Fabric& fabric, int32_t ranks) {
  return EmbeddedTiming(
      std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(fabric, ranks))),
      Congestion::kAware);
}

absl::StatusOr<std::vector<double>> EngineTimesNs(const Fabric& fabric,
                                                  absl::Span<const TransferCell> cells) {
  std::map<int32_t, NetworkTiming> engines;
  std::vector<double> times_ns;
  times_ns.reserve(cells.size());
  for (const TransferCell& cell : cells) {
    NetworkTiming& engine = engines[cell.ranks];
    if (engine == nullptr) engine = EngineForRanks(fabric, cell.ranks);
    ASSIGN_OR_RETURN(const double seconds, engine(EdgeOf(cell)));
    times_ns.push_back(std::max(seconds * kNsPerSecond, kLeastEngineNs));
  }
  return times_ns;
}

TransferTraits TraitsOf(const TransferCell& cell) {
  return {cell.kind, cell.bytes, static_cast<double>(MovingRanksOf(cell)), IsOneWay(cell)};
}

absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells) {
  ASSIGN_OR_RETURN(std::vector<double> times_ns, EngineTimesNs(fabric, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    times_ns[i] = corrections.CorrectedNs(TraitsOf(cells[i]), times_ns[i]);
  }
  return times_ns;
}

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
