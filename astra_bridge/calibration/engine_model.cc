#include "astra_bridge/calibration/engine_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

constexpr double kAssumedGibibytesPerSecond = 50;
constexpr double kAssumedLatencyNs = 500;

}  // namespace

std::vector<EngineParameter> ParametersOf(const Fabric& fabric) {
  std::vector<EngineParameter> parameters;
  for (size_t d = 0; d < fabric.network.dimensions.size(); ++d) {
    parameters.push_back({EngineParameter::Kind::kLatency, d});
    parameters.push_back({EngineParameter::Kind::kBandwidth, d});
  }
  parameters.push_back({EngineParameter::Kind::kEndpointDelay, 0});
  return parameters;
}

std::string ParameterName(const EngineParameter& parameter) {
  if (parameter.kind == EngineParameter::Kind::kEndpointDelay) return "endpoint_delay_ns";
  const bool is_latency = parameter.kind == EngineParameter::Kind::kLatency;
  return absl::StrCat(is_latency ? "latency_ns[" : "bandwidth_gib_per_s[", parameter.dimension,
                      "]");
}

double ParameterValue(const Fabric& fabric, const EngineParameter& parameter) {
  const NetworkDimension& dimension = fabric.network.dimensions[parameter.dimension];
  if (parameter.kind == EngineParameter::Kind::kLatency) return dimension.latency_ns;
  if (parameter.kind == EngineParameter::Kind::kBandwidth) {
    return dimension.bytes_per_ns / GibibytesPerSecondToBytesPerNs(1);
  }
  return static_cast<double>(fabric.system.endpoint_delay_ns);
}

void SetParameterValue(const EngineParameter& parameter, double value, Fabric* fabric) {
  NetworkDimension& dimension = fabric->network.dimensions[parameter.dimension];
  if (parameter.kind == EngineParameter::Kind::kLatency) {
    dimension.latency_ns = value;
  } else if (parameter.kind == EngineParameter::Kind::kBandwidth) {
    dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(value);
  } else {
    fabric->system.endpoint_delay_ns = std::llround(value);
  }
}

Fabric AssumedFabric(int32_t ranks, BlockShape shape) {
  Fabric fabric;
  fabric.network.dimensions = {{BlockShape::kRing, ranks,
                                GibibytesPerSecondToBytesPerNs(kAssumedGibibytesPerSecond),
                                kAssumedLatencyNs}};
  fabric.system = DefaultSystemConfig(fabric.network);
  fabric.network.dimensions[0].shape = shape;
  fabric.system.local_memory_bandwidth = kFreeReductions;
  fabric.system.algorithms[static_cast<size_t>(CollectiveKind::kAllToAll)][0].kind =
      CollectiveAlgorithm::Kind::kDirect;
  return fabric;
}

Fabric WithAssumedParameters(const Fabric& shape) {
  Fabric fabric = shape;
  const Fabric assumed = AssumedFabric(2);
  for (const EngineParameter& parameter : ParametersOf(shape)) {
    SetParameterValue(parameter, ParameterValue(assumed, {parameter.kind, 0}), &fabric);
  }
  return fabric;
}

Fabric FabricForRanks(const Fabric& fabric, int32_t ranks) {
  Fabric sized = fabric;
  if (sized.network.dimensions.size() == 1) sized.network.dimensions[0].npus = ranks;
  return sized;
}

std::unique_ptr<NetworkTiming> EngineForRanks(const Fabric& fabric, int32_t ranks) {
  return std::make_unique<EmbeddedTiming>(
      std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(fabric, ranks))),
      Congestion::kAware);
}

absl::StatusOr<std::vector<double>> EngineTimesNs(const Fabric& fabric,
                                                  absl::Span<const TransferCell> cells) {
  std::map<int32_t, std::unique_ptr<NetworkTiming>> engines;
  std::vector<double> times_ns;
  times_ns.reserve(cells.size());
  for (const TransferCell& cell : cells) {
    std::unique_ptr<NetworkTiming>& engine = engines[cell.ranks];
    if (engine == nullptr) engine = EngineForRanks(fabric, cell.ranks);
    ASSIGN_OR_RETURN(const EdgeEstimate estimate, engine->EstimateEdge(EdgeOf(cell)));
    times_ns.push_back(std::max(estimate.seconds * kNsPerSecond, kLeastEngineNs));
  }
  return times_ns;
}

TransferTraits TraitsOf(const TransferCell& cell) {
  return {cell.kind, cell.bytes, EffectiveRanksOf(cell), IsOneWay(cell), cell.ranks};
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

void ListCorrections(const Corrections& corrections, CalibrationReport* report) {
  const auto list = [&](absl::string_view kind, const std::vector<CorrectionPoint>& points) {
    for (const CorrectionPoint& point : points) {
      CalibratedCorrection* listed = report->add_corrections();
      listed->set_kind(std::string(kind));
      listed->set_bytes(point.bytes);
      listed->set_ratio(point.ratio);
      listed->set_ranks(point.ranks);
    }
  };
  for (size_t kind = 0; kind < kTimedKinds; ++kind) {
    list(CollectiveKindName(static_cast<CollectiveKind>(kind)), corrections.points[kind]);
  }
  list(kOneWayName, corrections.one_way);
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
