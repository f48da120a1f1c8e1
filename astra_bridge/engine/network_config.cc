#include "astra_bridge/engine/network_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "yaml-cpp/yaml.h"

namespace meridian {
namespace {

// Bounds within which the longest message of a simulation takes less than 2^60 ns.
constexpr double kMinBytesPerNs = 1.0 / 1024;
constexpr double kMaxBytesPerNs = 1e12;
constexpr double kMaxLatencyNs = 1e12;

constexpr size_t kMaxYamlBytes = size_t{1} << 20;

struct ShapeName {
  absl::string_view name;
  BlockShape shape;
};

constexpr absl::string_view kKeys[] = {"topology", "npus_count", "bandwidth", "latency",
                                       "bandwidth_unit"};

constexpr ShapeName kShapeNames[] = {
    {"Ring", BlockShape::kRing},     {"FullyConnected", BlockShape::kFullyConnected},
    {"Switch", BlockShape::kSwitch}, {"Mesh", BlockShape::kMesh},
    {"Torus", BlockShape::kRing},
};

absl::Status KeyError(absl::string_view source, absl::string_view key, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, source.empty() ? "" : ": ", key, ": ", reason));
}

absl::StatusOr<BlockShape> ParseShape(absl::string_view name) {
  for (const ShapeName& known : kShapeNames) {
    if (known.name == name) return known.shape;
  }
  const std::string names = absl::StrJoin(
      kShapeNames, ", ",
      [](std::string* out, const ShapeName& known) { absl::StrAppend(out, known.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown shape \"", Printable(name), "\"; expected one of ", names));
}

// Reads the lists of the document. yaml-cpp reports by exceptions; they end in ParseNetworkConfig.
class Reader {
 public:
  Reader(const YAML::Node& document, absl::string_view source)
      : document_(document), source_(source) {}

  absl::StatusOr<NetworkConfig> Read() {
    NetworkConfig network;
    network.source = std::string(source_);
    ASSIGN_OR_RETURN(const std::vector<std::string> shapes, ReadList("topology", "[ Ring ]"));
    ASSIGN_OR_RETURN(const std::vector<std::string> counts, ReadList("npus_count", "[ 8 ]"));
    ASSIGN_OR_RETURN(const std::vector<std::string> bandwidths, ReadList("bandwidth", "[ 50.0 ]"));
    ASSIGN_OR_RETURN(const std::vector<std::string> latencies, ReadList("latency", "[ 500 ]"));
    ASSIGN_OR_RETURN(const bool is_decimal, ReadUnit());
    RETURN_IF_ERROR(CheckLength("npus_count", counts.size(), shapes.size()));
    RETURN_IF_ERROR(CheckLength("bandwidth", bandwidths.size(), shapes.size()));
    RETURN_IF_ERROR(CheckLength("latency", latencies.size(), shapes.size()));
    for (size_t d = 0; d < shapes.size(); ++d) {
      NetworkDimension dimension;
      const absl::StatusOr<BlockShape> shape = ParseShape(shapes[d]);
      if (!shape.ok()) return KeyError(source_, "topology", shape.status().message());
      dimension.shape = *shape;
      if (!absl::SimpleAtoi(counts[d], &dimension.npus)) return NoNumber("npus_count", counts[d]);
      double bandwidth = 0;
      if (!absl::SimpleAtod(bandwidths[d], &bandwidth)) return NoNumber("bandwidth", bandwidths[d]);
      // 1e9 bytes per second are one byte per nanosecond.
      dimension.bytes_per_ns = is_decimal ? bandwidth : GibibytesPerSecondToBytesPerNs(bandwidth);
      if (!absl::SimpleAtod(latencies[d], &dimension.latency_ns)) {
        return NoNumber("latency", latencies[d]);
      }
      network.dimensions.push_back(dimension);
    }
    RETURN_IF_ERROR(CheckNetworkConfig(network));
    network.unknown_keys = UnknownKeys();
    return network;
  }

 private:
  absl::StatusOr<std::vector<std::string>> ReadList(const char* key, absl::string_view example) {
    if (!document_.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source_, ": no network: expected the keys topology, npus_count, bandwidth and latency"));
    }
    const YAML::Node list = document_[key];
    if (!list.IsDefined()) return KeyError(source_, key, absl::StrCat("missing; e.g. ", example));
    if (!list.IsSequence() || list.size() == 0) {
      return KeyError(source_, key,
                      absl::StrCat("expected a list with an entry per dimension, e.g. ", example));
    }
    std::vector<std::string> values;
    for (const YAML::Node& value : list) {
      if (!value.IsScalar()) {
        return KeyError(source_, key,
                        absl::StrCat("has an entry that is no value; e.g. ", example));
      }
      values.push_back(value.Scalar());
    }
    return values;
  }

  std::vector<std::string> UnknownKeys() const {
    std::vector<std::string> unknown;
    for (const auto& member : document_) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "(no text)";
      if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
        unknown.push_back(key);
      }
    }
    return unknown;
  }

  // True for GB, false for GiB.
  absl::StatusOr<bool> ReadUnit() {
    const YAML::Node unit = document_["bandwidth_unit"];
    if (!unit.IsDefined()) return false;
    if (unit.IsScalar() && unit.Scalar() == "GB") return true;
    if (unit.IsScalar() && unit.Scalar() == "GiB") return false;
    return KeyError(source_, "bandwidth_unit", "expected GB (1e9 bytes) or GiB (2^30 bytes)");
  }

  absl::Status CheckLength(absl::string_view key, size_t length, size_t dimensions) const {
    if (length == dimensions) return absl::OkStatus();
    return KeyError(source_, key,
                    absl::StrCat("has ", length, " entries, but topology has ", dimensions));
  }

  absl::Status NoNumber(absl::string_view key, const std::string& text) const {
    return KeyError(source_, key, absl::StrCat("\"", Printable(text), "\" is no number"));
  }

  const YAML::Node& document_;
  const absl::string_view source_;
};

}  // namespace

int32_t NetworkConfig::npus() const {
  int32_t npus = 1;
  for (const NetworkDimension& dimension : dimensions) npus *= dimension.npus;
  return npus;
}

double GibibytesPerSecondToBytesPerNs(double gibibytes_per_second) {
  return gibibytes_per_second * (1 << 30) / 1'000'000'000;
}

absl::Status CheckNetworkConfig(const NetworkConfig& network) {
  if (network.dimensions.empty()) {
    return KeyError(network.source, "topology", "has no dimensions");
  }
  int64_t npus = 1;
  for (const NetworkDimension& dimension : network.dimensions) {
    if (dimension.npus < 2) {
      return KeyError(network.source, "npus_count",
                      absl::StrCat(dimension.npus, " in a dimension; at least 2 are needed"));
    }
    npus *= dimension.npus;
    if (npus > kMaxNpus) {
      return KeyError(network.source, "npus_count",
                      absl::StrCat("more than ", kMaxNpus, " NPUs in all"));
    }
    // Written so that NaN fails too.
    if (!(dimension.bytes_per_ns >= kMinBytesPerNs && dimension.bytes_per_ns <= kMaxBytesPerNs)) {
      return KeyError(
          network.source, "bandwidth",
          absl::StrCat("must be positive and from ", kMinBytesPerNs, " to ", kMaxBytesPerNs,
                       " bytes per ns; is ", dimension.bytes_per_ns, " bytes per ns"));
    }
    if (!(dimension.latency_ns >= 0 && dimension.latency_ns <= kMaxLatencyNs)) {
      return KeyError(
          network.source, "latency",
          absl::StrCat("must be from 0 to ", kMaxLatencyNs, " ns; is ", dimension.latency_ns));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NetworkConfig> ParseNetworkConfig(absl::string_view yaml, absl::string_view source) {
  if (yaml.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": too long for a network configuration: ", yaml.size(), " bytes"));
  }
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    return Reader(document, source).Read();
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ":", error.mark.line + 1, ": ",
                                                   Printable(error.msg), "; expected YAML"));
  }
}

std::string UnknownKeysWarning(const NetworkConfig& network) {
  if (network.unknown_keys.empty()) return "";
  const size_t others = network.unknown_keys.size() - 1;
  return absl::StrCat(network.source, network.source.empty() ? "" : ": ",
                      Printable(network.unknown_keys[0]), ": not known and ignored",
                      others == 0 ? "" : absl::StrCat(", as are ", others, " more"), "; there are ",
                      absl::StrJoin(kKeys, ", "));
}

}  // namespace meridian
