#include "astra_bridge/engine/network_config.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/engine/infra_graph.h"
#include "astra_bridge/engine/links_config.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kMaxYamlBytes = size_t{1} << 20;

struct ShapeName {
  absl::string_view name;
  BlockShape shape;
};

constexpr absl::string_view kKeys[] = {"topology", "npus_count",     "bandwidth",
                                       "latency",  "bandwidth_unit", "links"};

constexpr ShapeName kShapeNames[] = {
    {"Ring", BlockShape::kRing},     {"FullyConnected", BlockShape::kFullyConnected},
    {"Switch", BlockShape::kSwitch}, {"Mesh", BlockShape::kMesh},
    {"Torus", BlockShape::kRing},    {"Links", BlockShape::kLinks},
};

absl::StatusOr<BlockShape> ReadShape(const ConfigValue& list, absl::string_view name) {
  for (const ShapeName& known : kShapeNames) {
    if (known.name == name) return known.shape;
  }
  const std::string names = absl::StrJoin(
      kShapeNames, ", ",
      [](std::string* out, const ShapeName& known) { absl::StrAppend(out, known.name); });
  return list.Error(
      absl::StrCat("unknown shape \"", Printable(name), "\"; expected one of ", names));
}

absl::Status NoNumber(const ConfigValue& list, absl::string_view text) {
  return list.Error(absl::StrCat("\"", Printable(text), "\" is no number"));
}

absl::StatusOr<double> ReadNumber(const ConfigValue& list, absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return NoNumber(list, text);
  return number;
}

absl::StatusOr<std::vector<std::string>> ReadList(const ConfigValue& list,
                                                  absl::string_view example) {
  if (!list.exists()) return list.Error(absl::StrCat("missing; e.g. ", example));
  std::vector<std::string> entries;
  if (list.IsList()) {
    ASSIGN_OR_RETURN(entries,
                     list.Texts(absl::StrCat("has an entry that is no value; e.g. ", example)));
  }
  if (!entries.empty()) return entries;
  return list.Error(absl::StrCat("expected a list with an entry per dimension, e.g. ", example));
}

// Returns whether bandwidths are in GB rather than GiB per second.
absl::StatusOr<bool> ReadIsDecimal(const ConfigValue& unit) {
  constexpr absl::string_view kReason = "expected GB (1e9 bytes) or GiB (2^30 bytes)";
  if (!unit.exists()) return false;
  ASSIGN_OR_RETURN(const std::string name, unit.Text(kReason));
  if (name != "GB" && name != "GiB") return unit.Error(kReason);
  return name == "GB";
}

}  // namespace

absl::string_view BlockShapeName(BlockShape shape) {
  return std::find_if(std::begin(kShapeNames), std::end(kShapeNames),
                      [&](const ShapeName& known) { return known.shape == shape; })
      ->name;
}

int32_t NetworkConfig::npus() const {
  int32_t npus = 1;
  for (const NetworkDimension& dimension : dimensions) npus *= dimension.npus;
  return npus;
}

std::string NetworkConfig::DeviceName(int32_t device) const {
  const int32_t number = device - npus();
  return number < 0 ? absl::StrCat(device) : Printable(switches[number]);
}

double GibibytesPerSecondToBytesPerNs(double gibibytes_per_second) {
  return gibibytes_per_second * (1 << 30) / 1'000'000'000;
}

std::string RateFault(double bytes_per_ns, double latency_ns) {
  // Written so that NaN fails too.
  if (!(bytes_per_ns >= kMinBytesPerNs && bytes_per_ns <= kMaxBytesPerNs)) {
    return absl::StrCat("bandwidth: must be positive and from ", kMinBytesPerNs, " to ",
                        kMaxBytesPerNs, " bytes per ns; is ", bytes_per_ns, " bytes per ns");
  }
  if (latency_ns >= 0 && latency_ns <= kMaxLatencyNs) return "";
  return absl::StrCat("latency: must be from 0 to ", kMaxLatencyNs, " ns; is ", latency_ns);
}

absl::Status CheckNetworkConfig(const NetworkConfig& network) {
  if (network.dimensions.empty()) {
    return ConfigError(network.source, "topology", "has no dimensions");
  }
  int64_t npus = 1;
  for (const NetworkDimension& dimension : network.dimensions) {
    if (dimension.npus < 2) {
      return ConfigError(network.source, "npus_count",
                         absl::StrCat(dimension.npus, " in a dimension; at least 2 are needed"));
    }
    npus *= dimension.npus;
    if (npus > kMaxNpus) {
      return ConfigError(network.source, "npus_count",
                         absl::StrCat("more than ", kMaxNpus, " NPUs in all"));
    }
    if (dimension.shape == BlockShape::kLinks) continue;
    const std::string fault = RateFault(dimension.bytes_per_ns, dimension.latency_ns);
    if (!fault.empty()) {
      return InvalidArgument(network.source, network.source.empty() ? "" : ": ", fault);
    }
  }
  if (!network.has_links()) return absl::OkStatus();
  for (const NetworkLink& link : network.links) {
    if (link.bandwidth_factor == 0 && link.latency_factor == 0) continue;
    return ConfigError(
        link.line == 0 ? network.source : absl::StrCat(network.source, ":", link.line),
        link.bandwidth_factor == 0 ? "latency" : "bandwidth",
        "is that of a calibrated link, times a number: name the calibration (--calibration=DIR), "
        "or give bandwidth in GiB/s and latency in ns");
  }
  return CheckLinks(network);
}

absl::StatusOr<NetworkConfig> ParseNetworkConfig(absl::string_view yaml, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(yaml, source, kMaxYamlBytes, "a network configuration"));
  if (!document.IsMap()) {
    return document.Error(
        "no network: expected the keys topology, npus_count, bandwidth and latency");
  }
  if (IsInfraGraph(document)) return ReadInfraGraph(document, source);
  NetworkConfig network;
  network.source = std::string(source);
  ASSIGN_OR_RETURN(network.unknown_keys, document.NoteUnknownKeys(kKeys));
  const ConfigValue topology = document.Find("topology");
  const ConfigValue npus_count = document.Find("npus_count");
  const ConfigValue bandwidth = document.Find("bandwidth");
  const ConfigValue latency = document.Find("latency");
  ASSIGN_OR_RETURN(const std::vector<std::string> shapes, ReadList(topology, "[ Ring ]"));
  ASSIGN_OR_RETURN(const std::vector<std::string> counts, ReadList(npus_count, "[ 8 ]"));
  ASSIGN_OR_RETURN(const bool is_decimal, ReadIsDecimal(document.Find("bandwidth_unit")));
  if (absl::c_linear_search(shapes, BlockShapeName(BlockShape::kLinks))) {
    if (shapes.size() > 1) return topology.Error("Links stands alone: [ Links ]");
    for (const std::string& count : counts) {
      NetworkDimension& dimension = network.dimensions.emplace_back();
      dimension.shape = BlockShape::kLinks;
      if (!absl::SimpleAtoi(count, &dimension.npus)) return NoNumber(npus_count, count);
    }
    RETURN_IF_ERROR(CheckNetworkConfig(network));
    RETURN_IF_ERROR(ReadLinks(document.Find("links"), !is_decimal, &network));
    return network;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> bandwidths, ReadList(bandwidth, "[ 50.0 ]"));
  ASSIGN_OR_RETURN(const std::vector<std::string> latencies, ReadList(latency, "[ 500 ]"));
  const auto check_length = [&](const ConfigValue& list, const std::vector<std::string>& entries) {
    if (entries.size() == shapes.size()) return absl::OkStatus();
    return list.Error(
        absl::StrCat("has ", entries.size(), " entries, but topology has ", shapes.size()));
  };
  RETURN_IF_ERROR(check_length(npus_count, counts));
  RETURN_IF_ERROR(check_length(bandwidth, bandwidths));
  RETURN_IF_ERROR(check_length(latency, latencies));
  for (size_t d = 0; d < shapes.size(); ++d) {
    NetworkDimension& dimension = network.dimensions.emplace_back();
    ASSIGN_OR_RETURN(dimension.shape, ReadShape(topology, shapes[d]));
    if (!absl::SimpleAtoi(counts[d], &dimension.npus)) return NoNumber(npus_count, counts[d]);
    ASSIGN_OR_RETURN(const double per_second, ReadNumber(bandwidth, bandwidths[d]));
    // 1e9 bytes per second are one byte per nanosecond.
    dimension.bytes_per_ns = is_decimal ? per_second : GibibytesPerSecondToBytesPerNs(per_second);
    ASSIGN_OR_RETURN(dimension.latency_ns, ReadNumber(latency, latencies[d]));
  }
  RETURN_IF_ERROR(CheckNetworkConfig(network));
  return network;
}

}  // namespace meridian
