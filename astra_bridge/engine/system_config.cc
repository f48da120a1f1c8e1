#include "astra_bridge/engine/system_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Kind = CollectiveAlgorithm::Kind;

// Bounds within which times fit into 64 bits.
constexpr int64_t kMaxEndpointDelayNs = int64_t{1} << 40;
constexpr int32_t kMaxChunks = 1 << 20;
constexpr double kMinMemoryBandwidth = 1e-3;
constexpr double kMaxRate = 1e15;

absl::Status KeyError(absl::string_view source, absl::string_view key, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, source.empty() ? "" : ": ", key, ": ", reason));
}

std::string AlgorithmsKey(CollectiveKind op) {
  return absl::StrCat(CollectiveKindName(op), "-implementation");
}

// The members of the document's object, by key.
class Reader {
 public:
  Reader(absl::string_view json, absl::string_view source) : document_(json), source_(source) {}

  absl::StatusOr<SystemConfig> Read() {
    SystemConfig system;
    system.source = std::string(source_);
    RETURN_IF_ERROR(RefuseUnmodelled());
    RETURN_IF_ERROR(ReadPolicy());
    RETURN_IF_ERROR(ReadOptimization(&system.collective_optimization));
    RETURN_IF_ERROR(ReadInteger("endpoint-delay", &system.endpoint_delay_ns));
    int64_t active_chunks = system.active_chunks_per_dimension;
    RETURN_IF_ERROR(ReadInteger("active-chunks-per-dimension", &active_chunks));
    int64_t splits = 0;
    RETURN_IF_ERROR(ReadInteger("preferred-dataset-splits", &splits));
    if (splits == 0) return Error("preferred-dataset-splits", "missing or 0; expected e.g. 4");
    system.active_chunks_per_dimension =
        static_cast<int32_t>(std::min<int64_t>(active_chunks, kMaxChunks));
    system.preferred_dataset_splits =
        static_cast<int32_t>(std::min<int64_t>(splits, kMaxChunks + 1));
    RETURN_IF_ERROR(ReadNumber("local-mem-bw", &system.local_memory_bandwidth));
    RETURN_IF_ERROR(ReadNumber("peak-perf", &system.peak_performance));
    RETURN_IF_ERROR(ReadSwitch("roofline-enabled", &system.roofline_enabled));
    RETURN_IF_ERROR(ReadSwitch("replay-only", &system.replay_only));
    for (int op = 0; op < kSimulatedCollectives; ++op) {
      RETURN_IF_ERROR(ReadAlgorithms(static_cast<CollectiveKind>(op), &system.algorithms[op]));
    }
    RETURN_IF_ERROR(CheckSystemConfig(system));
    return system;
  }

 private:
  absl::Status Error(absl::string_view key, absl::string_view reason) const {
    return KeyError(source_, key, reason);
  }

  absl::Status RefuseUnmodelled() const {
    bool shared_bus = false;
    RETURN_IF_ERROR(ReadSwitch("model-shared-bus", &shared_bus));
    if (shared_bus) return Error("model-shared-bus", "the shared bus is not modelled; expected 0");
    for (int op = 0; op < kSimulatedCollectives; ++op) {
      const std::string key =
          absl::StrCat(AlgorithmsKey(static_cast<CollectiveKind>(op)), "-custom");
      if (document_.Find(key).exists()) return Error(key, "custom collectives are not modelled");
    }
    if (document_.Find("per-node-custom-implementation").exists()) {
      return Error("per-node-custom-implementation", "custom collectives are not modelled");
    }
    return absl::OkStatus();
  }

  // Ranks run one collective per comm stream at a time, so that all policies give the same times.
  absl::Status ReadPolicy() const {
    const JsonValue value = document_.Find("scheduling-policy");
    if (!value.exists()) return absl::OkStatus();
    const std::optional<std::string> policy = value.AsString();
    if (policy == "LIFO" || policy == "FIFO" || policy == "EXPLICIT") return absl::OkStatus();
    return Error("scheduling-policy", "expected \"LIFO\", \"FIFO\" or \"EXPLICIT\"");
  }

  absl::Status ReadOptimization(CollectiveOptimization* optimization) const {
    const JsonValue value = document_.Find("collective-optimization");
    if (!value.exists()) return absl::OkStatus();
    const std::optional<std::string> name = value.AsString();
    if (name == "baseline") {
      *optimization = CollectiveOptimization::kBaseline;
    } else if (name == "localBWAware") {
      *optimization = CollectiveOptimization::kLocalBandwidthAware;
    } else {
      return Error("collective-optimization", "expected \"baseline\" or \"localBWAware\"");
    }
    return absl::OkStatus();
  }

  absl::Status ReadInteger(absl::string_view key, int64_t* number) const {
    const JsonValue value = document_.Find(key);
    if (!value.exists()) return absl::OkStatus();
    const std::optional<int64_t> integer = value.AsInt64();
    if (!integer.has_value()) return Error(key, "expected a whole number");
    *number = *integer;
    return absl::OkStatus();
  }

  absl::Status ReadNumber(absl::string_view key, double* number) const {
    const JsonValue value = document_.Find(key);
    if (!value.exists()) return absl::OkStatus();
    const std::optional<double> found = value.AsDouble();
    if (!found.has_value()) return Error(key, "expected a number");
    *number = *found;
    return absl::OkStatus();
  }

  absl::Status ReadSwitch(absl::string_view key, bool* on) const {
    const JsonValue value = document_.Find(key);
    if (!value.exists()) return absl::OkStatus();
    if (value.text() == "true" || value.text() == "false") {
      *on = value.text() == "true";
      return absl::OkStatus();
    }
    const std::optional<int64_t> integer = value.AsInt64();
    if (!integer.has_value()) return Error(key, "expected 0 or 1");
    *on = *integer != 0;
    return absl::OkStatus();
  }

  absl::Status ReadAlgorithms(CollectiveKind op,
                              std::vector<CollectiveAlgorithm>* algorithms) const {
    const std::string key = AlgorithmsKey(op);
    const JsonValue value = document_.Find(key);
    if (!value.exists()) return absl::OkStatus();
    JsonCutter cutter(value.text());
    if (cutter.Peek() != '[') {
      return Error(key, "expected a list with an entry per dimension, e.g. [\"ring\"]");
    }
    cutter.Enter('[');
    while (cutter.NextElement()) {
      const absl::string_view element = cutter.CutValue();
      const std::optional<std::string> name = JsonValue(element).AsString();
      if (!name.has_value()) return Error(key, "expected names, e.g. [\"ring\"]");
      const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(*name);
      if (!algorithm.ok()) return Error(key, algorithm.status().message());
      algorithms->push_back(*algorithm);
    }
    return Annotate(cutter.status(), absl::StrCat(source_, ": ", key));
  }

  const JsonValue document_;
  const absl::string_view source_;
};

}  // namespace

absl::StatusOr<CollectiveAlgorithm> ParseCollectiveAlgorithm(absl::string_view name) {
  CollectiveAlgorithm algorithm;
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "one")) algorithm.over_all_ranks = true;
  const bool is_one = algorithm.over_all_ranks;
  if (rest == (is_one ? "Ring" : "ring")) {
    algorithm.kind = Kind::kRing;
    return algorithm;
  }
  if (rest == (is_one ? "HalvingDoubling" : "halvingDoubling")) {
    algorithm.kind = Kind::kHalvingDoubling;
    return algorithm;
  }
  if (!is_one && rest == "doubleBinaryTree") {
    algorithm.kind = Kind::kDoubleBinaryTree;
    return algorithm;
  }
  if (absl::ConsumePrefix(&rest, is_one ? "Direct" : "direct")) {
    algorithm.kind = Kind::kDirect;
    if (rest.empty()) return algorithm;
    if (absl::SimpleAtoi(rest, &algorithm.window) && algorithm.window > 0) return algorithm;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown algorithm \"", Printable(name),
      "\"; expected ring, direct, direct<N>, halvingDoubling, doubleBinaryTree, oneRing, "
      "oneDirect, oneDirect<N> or oneHalvingDoubling"));
}

std::string CollectiveAlgorithmName(const CollectiveAlgorithm& algorithm) {
  const bool is_one = algorithm.over_all_ranks;
  switch (algorithm.kind) {
    case Kind::kRing:
      return is_one ? "oneRing" : "ring";
    case Kind::kHalvingDoubling:
      return is_one ? "oneHalvingDoubling" : "halvingDoubling";
    case Kind::kDoubleBinaryTree:
      return "doubleBinaryTree";
    case Kind::kDirect:
      break;
  }
  std::string name = is_one ? "oneDirect" : "direct";
  if (algorithm.window > 0) absl::StrAppend(&name, algorithm.window);
  return name;
}

absl::Status CheckSystemConfig(const SystemConfig& system) {
  const auto error = [&](absl::string_view key, absl::string_view reason) {
    return KeyError(system.source, key, reason);
  };
  if (system.endpoint_delay_ns < 0 || system.endpoint_delay_ns > kMaxEndpointDelayNs) {
    return error("endpoint-delay", absl::StrCat("must be from 0 to ", kMaxEndpointDelayNs, " ns"));
  }
  if (system.active_chunks_per_dimension < 1) {
    return error("active-chunks-per-dimension", "must be at least 1");
  }
  if (system.preferred_dataset_splits < 1 || system.preferred_dataset_splits > kMaxChunks) {
    return error("preferred-dataset-splits", absl::StrCat("must be from 1 to ", kMaxChunks));
  }
  // Written so that NaN fails too.
  const double memory = system.local_memory_bandwidth;
  if (!(memory == 0 || (memory >= kMinMemoryBandwidth && memory <= kMaxRate))) {
    return error("local-mem-bw",
                 absl::StrCat("must be 0 or from ", kMinMemoryBandwidth, " to ", kMaxRate));
  }
  if (!(system.peak_performance >= 0 && system.peak_performance <= kMaxRate)) {
    return error("peak-perf", absl::StrCat("must be from 0 to ", kMaxRate));
  }
  return absl::OkStatus();
}

absl::StatusOr<SystemConfig> ParseSystemConfig(absl::string_view json, absl::string_view source) {
  JsonCutter cutter(json);
  if (cutter.Peek() != '{') {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": no system configuration: expected a JSON object"));
  }
  const absl::string_view document = cutter.CutValue();
  if (cutter.status().ok() && !cutter.AtEnd()) cutter.Fail("text after the end of the object");
  // Once through all members, so that broken syntax is found wherever it is.
  JsonCutter members(document);
  members.Enter('{');
  for (absl::string_view key; members.NextMember(&key);) members.CutValue();
  RETURN_IF_ERROR(Annotate(cutter.status(), source));
  RETURN_IF_ERROR(Annotate(members.status(), source));
  return Reader(document, source).Read();
}

}  // namespace meridian
