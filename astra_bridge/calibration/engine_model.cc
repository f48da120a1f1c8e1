#include "astra_bridge/calibration/engine_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kAssumedGibibytesPerSecond = 50;
constexpr double kAssumedLatencyNs = 500;
constexpr double kNsPerSecond = 1e9;

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
  switch (parameter.kind) {
    case EngineParameter::Kind::kLatency:
      return absl::StrCat("latency_ns[", parameter.dimension, "]");
    case EngineParameter::Kind::kBandwidth:
      return absl::StrCat("bandwidth_gib_per_s[", parameter.dimension, "]");
    case EngineParameter::Kind::kEndpointDelay:
      return "endpoint_delay_ns";
  }
  return "";
}

double ParameterValue(const Fabric& fabric, const EngineParameter& parameter) {
  switch (parameter.kind) {
    case EngineParameter::Kind::kLatency:
      return fabric.network.dimensions[parameter.dimension].latency_ns;
    case EngineParameter::Kind::kBandwidth:
      return fabric.network.dimensions[parameter.dimension].bytes_per_ns /
             GibibytesPerSecondToBytesPerNs(1);
    case EngineParameter::Kind::kEndpointDelay:
      return static_cast<double>(fabric.system.endpoint_delay_ns);
  }
  return 0;
}

void SetParameterValue(const EngineParameter& parameter, double value, Fabric* fabric) {
  switch (parameter.kind) {
    case EngineParameter::Kind::kLatency:
      fabric->network.dimensions[parameter.dimension].latency_ns = value;
      break;
    case EngineParameter::Kind::kBandwidth:
      fabric->network.dimensions[parameter.dimension].bytes_per_ns =
          GibibytesPerSecondToBytesPerNs(value);
      break;
    case EngineParameter::Kind::kEndpointDelay:
      fabric->system.endpoint_delay_ns = std::llround(value);
      break;
  }
}

Fabric AssumedFabric(int32_t ranks) {
  Fabric fabric;
  fabric.network.dimensions = {{BlockShape::kRing, ranks,
                                GibibytesPerSecondToBytesPerNs(kAssumedGibibytesPerSecond),
                                kAssumedLatencyNs}};
  fabric.system = DefaultSystemConfig(fabric.network);
  fabric.system.local_memory_bandwidth = kFreeReductions;
  fabric.system.algorithms[static_cast<size_t>(CollectiveKind::kAllToAll)][0].kind =
      CollectiveAlgorithm::Kind::kDirect;
  return fabric;
}

Fabric WithAssumedParameters(const Fabric& shape) {
  Fabric fabric = shape;
  const Fabric assumed = AssumedFabric(2);
  for (EngineParameter parameter : ParametersOf(shape)) {
    const EngineParameter of_one{parameter.kind, 0};
    SetParameterValue(parameter, ParameterValue(assumed, of_one), &fabric);
  }
  return fabric;
}

Fabric FabricForRanks(const Fabric& fabric, int32_t ranks) {
  Fabric sized = fabric;
  if (sized.network.dimensions.size() == 1) sized.network.dimensions[0].npus = ranks;
  return sized;
}

absl::StatusOr<std::vector<double>> EngineTimesNs(const Fabric& fabric,
                                                  absl::Span<const TransferCell> cells) {
  std::map<int32_t, std::unique_ptr<EmbeddedTiming>> engines;
  std::vector<double> times_ns;
  times_ns.reserve(cells.size());
  for (const TransferCell& cell : cells) {
    std::unique_ptr<EmbeddedTiming>& engine = engines[cell.ranks];
    if (engine == nullptr) {
      engine = std::make_unique<EmbeddedTiming>(
          std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(fabric, cell.ranks))),
          Congestion::kAware);
    }
    ASSIGN_OR_RETURN(const EdgeEstimate estimate, engine->EstimateEdge(EdgeOf(cell)));
    times_ns.push_back(std::max(estimate.seconds * kNsPerSecond, kLeastEngineNs));
  }
  return times_ns;
}

}  // namespace meridian
