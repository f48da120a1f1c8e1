#include "astra_bridge/engine/system_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Kind = CollectiveAlgorithm::Kind;

// Bounds within which times fit into 64 bits.
constexpr int64_t kMaxEndpointDelayNs = int64_t{1} << 40;
constexpr int32_t kMaxChunks = 1 << 20;
constexpr double kMinMemoryBandwidth = 1e-3;
constexpr double kMaxRate = 1e15;
constexpr size_t kMaxJsonBytes = size_t{1} << 20;
constexpr int64_t kMaxMemoryNumber = int64_t{1} << 40;

// Names of RemoteMemory::Kind.
constexpr absl::string_view kMemoryTypes[] = {"NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION",
                                              "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"};
constexpr absl::string_view kMemoryKeys[] = {"memory-type", "remote-mem-latency", "remote-mem-bw",
                                             "num-nodes", "num-npus-per-node"};

struct AlgorithmName {
  absl::string_view name;
  Kind kind;
  bool over_all_ranks;
};

// Direct may be followed by its window.
constexpr AlgorithmName kAlgorithmNames[] = {
    {"ring", Kind::kRing, false},
    {"direct", Kind::kDirect, false},
    {"halvingDoubling", Kind::kHalvingDoubling, false},
    {"doubleBinaryTree", Kind::kDoubleBinaryTree, false},
    {"oneRing", Kind::kRing, true},
    {"oneDirect", Kind::kDirect, true},
    {"oneHalvingDoubling", Kind::kHalvingDoubling, true},
};

std::string AlgorithmsKey(CollectiveKind op) {
  return absl::StrCat(CollectiveKindName(op), "-implementation");
}

absl::Status RefuseUnmodelled(const ConfigValue& document) {
  bool shared_bus = false;
  RETURN_IF_ERROR(document.Find("model-shared-bus").ReadIfThere(&shared_bus));
  if (shared_bus) {
    return document.Find("model-shared-bus").Error("the shared bus is not modelled; expected 0");
  }
  const ConfigValue per_node = document.Find("per-node-custom-implementation");
  if (!per_node.exists()) return absl::OkStatus();
  return per_node.Error("not modelled; all-reduce-implementation-custom and others like it are");
}

absl::Status ReadCustomPrefix(const ConfigValue& list, std::string* prefix) {
  if (!list.exists()) return absl::OkStatus();
  size_t elements = 0;
  if (list.IsList()) {
    RETURN_IF_ERROR(list.ForEachElement([&](const ConfigValue& element) -> absl::Status {
      ++elements;
      ASSIGN_OR_RETURN(*prefix, element.Text());
      return absl::OkStatus();
    }));
  }
  if (elements == 1 && !prefix->empty()) return absl::OkStatus();
  return list.Error("expected a list of one prefix of traces, e.g. [\"et/ring\"]");
}

// Reads one of several names; an absent value leaves the choice as it is.
template <typename Enum>
absl::Status ReadChoice(const ConfigValue& value,
                        std::initializer_list<std::pair<absl::string_view, Enum>> choices,
                        absl::string_view reason, Enum* choice) {
  if (!value.exists()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string name, value.Text(reason));
  for (const auto& [known, meaning] : choices) {
    if (name != known) continue;
    *choice = meaning;
    return absl::OkStatus();
  }
  return value.Error(reason);
}

absl::Status ReadAlgorithms(const ConfigValue& list, std::vector<CollectiveAlgorithm>* algorithms) {
  if (!list.exists()) return absl::OkStatus();
  if (!list.IsList()) {
    return list.Error("expected a list with an entry per dimension, e.g. [\"ring\"]");
  }
  return list.ForEachElement([&](const ConfigValue& element) -> absl::Status {
    const absl::StatusOr<std::string> name = element.Text();
    if (!name.ok()) return list.Error("expected names, e.g. [\"ring\"]");
    const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(*name);
    if (!algorithm.ok()) return list.Error(algorithm.status().message());
    algorithms->push_back(*algorithm);
    return absl::OkStatus();
  });
}

}  // namespace

std::string CustomKey(CollectiveKind op) { return absl::StrCat(AlgorithmsKey(op), "-custom"); }

absl::StatusOr<CollectiveAlgorithm> ParseCollectiveAlgorithm(absl::string_view name) {
  for (const AlgorithmName& known : kAlgorithmNames) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, known.name)) continue;
    CollectiveAlgorithm algorithm;
    algorithm.kind = known.kind;
    algorithm.over_all_ranks = known.over_all_ranks;
    if (rest.empty()) return algorithm;
    if (known.kind == Kind::kDirect && absl::SimpleAtoi(rest, &algorithm.window) &&
        algorithm.window > 0) {
      return algorithm;
    }
  }
  const std::string names =
      absl::StrJoin(kAlgorithmNames, ", ", [](std::string* out, const AlgorithmName& known) {
        absl::StrAppend(out, known.name, known.kind == Kind::kDirect ? "[N]" : "");
      });
  return InvalidArgument("unknown algorithm \"", Printable(name), "\"; expected one of ", names);
}

std::string CollectiveAlgorithmName(const CollectiveAlgorithm& algorithm) {
  for (const AlgorithmName& known : kAlgorithmNames) {
    if (known.kind != algorithm.kind || known.over_all_ranks != algorithm.over_all_ranks) continue;
    if (algorithm.kind != Kind::kDirect || algorithm.window == 0) return std::string(known.name);
    return absl::StrCat(known.name, algorithm.window);
  }
  return "";
}

double RemoteMemory::AccessNs(int64_t bytes) const {
  return static_cast<double>(latency_ns) +
         std::trunc(static_cast<double>(bytes) / static_cast<double>(bytes_per_ns));
}

absl::StatusOr<RemoteMemory> ParseRemoteMemory(absl::string_view json, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(json, source, kMaxJsonBytes, "a memory configuration"));
  if (!document.IsMap()) return document.Error("no memory configuration: expected a JSON object");
  RemoteMemory memory;
  memory.source = std::string(source);
  ASSIGN_OR_RETURN(memory.unknown_keys, document.NoteUnknownKeys(kMemoryKeys));
  const ConfigValue type = document.Find("memory-type");
  const std::string types = absl::StrCat("expected one of ", absl::StrJoin(kMemoryTypes, ", "));
  if (!type.exists()) return type.Error(types);
  using MemoryKind = RemoteMemory::Kind;
  RETURN_IF_ERROR(ReadChoice(type,
                             {{kMemoryTypes[0], MemoryKind::kNone},
                              {kMemoryTypes[1], MemoryKind::kPerNpu},
                              {kMemoryTypes[2], MemoryKind::kPerNode},
                              {kMemoryTypes[3], MemoryKind::kPool}},
                             types, &memory.kind));
  if (memory.kind == MemoryKind::kNone) return memory;
  const auto read = [&](absl::string_view key, int64_t min, int64_t* number) -> absl::Status {
    const ConfigValue value = document.Find(key);
    if (!value.exists() && min == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(*number, value.Integer(absl::StrCat("expected a whole number from ", min,
                                                         " to ", kMaxMemoryNumber),
                                            min, kMaxMemoryNumber));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read("remote-mem-latency", 0, &memory.latency_ns));
  RETURN_IF_ERROR(read("remote-mem-bw", 1, &memory.bytes_per_ns));
  if (memory.kind != MemoryKind::kPerNode) return memory;
  RETURN_IF_ERROR(read("num-nodes", 1, &memory.nodes));
  RETURN_IF_ERROR(read("num-npus-per-node", 1, &memory.npus_per_node));
  return memory;
}

std::string RemoteMemoryToJson(const RemoteMemory& memory) {
  std::string text =
      absl::StrCat("{\"memory-type\": \"", kMemoryTypes[static_cast<size_t>(memory.kind)], "\"");
  if (memory.kind != RemoteMemory::Kind::kNone) {
    absl::StrAppend(&text, ", \"remote-mem-latency\": ", memory.latency_ns,
                    ", \"remote-mem-bw\": ", memory.bytes_per_ns);
  }
  if (memory.kind == RemoteMemory::Kind::kPerNode) {
    absl::StrAppend(&text, ", \"num-nodes\": ", memory.nodes,
                    ", \"num-npus-per-node\": ", memory.npus_per_node);
  }
  return text + "}\n";
}

absl::Status CheckSystemConfig(const SystemConfig& system) {
  const auto error = [&](absl::string_view key, absl::string_view reason) {
    return ConfigError(system.source, key, reason);
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
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(json, source, kMaxJsonBytes, "a system configuration"));
  if (!document.IsMap()) return document.Error("no system configuration: expected a JSON object");
  // AstraSim ignores most keys of its own files.
  RETURN_IF_ERROR(document.NoteUnknownKeys({}).status());
  RETURN_IF_ERROR(RefuseUnmodelled(document));
  // Ranks run one collective per comm stream at a time, so that all policies give the same times.
  bool is_policy = true;
  RETURN_IF_ERROR(ReadChoice(document.Find("scheduling-policy"),
                             {{"LIFO", true}, {"FIFO", true}, {"EXPLICIT", true}},
                             "expected \"LIFO\", \"FIFO\" or \"EXPLICIT\"", &is_policy));
  SystemConfig system;
  system.source = std::string(source);
  RETURN_IF_ERROR(ReadChoice(document.Find("collective-optimization"),
                             {{"baseline", CollectiveOptimization::kBaseline},
                              {"localBWAware", CollectiveOptimization::kLocalBandwidthAware}},
                             "expected \"baseline\" or \"localBWAware\"",
                             &system.collective_optimization));
  RETURN_IF_ERROR(document.Find("endpoint-delay").ReadIfThere(&system.endpoint_delay_ns));
  int64_t active_chunks = system.active_chunks_per_dimension;
  RETURN_IF_ERROR(document.Find("active-chunks-per-dimension").ReadIfThere(&active_chunks));
  int64_t splits = 0;
  const ConfigValue preferred_splits = document.Find("preferred-dataset-splits");
  RETURN_IF_ERROR(preferred_splits.ReadIfThere(&splits));
  if (splits == 0) return preferred_splits.Error("missing or 0; expected e.g. 4");
  system.active_chunks_per_dimension =
      static_cast<int32_t>(std::min<int64_t>(active_chunks, kMaxChunks));
  system.preferred_dataset_splits = static_cast<int32_t>(std::min<int64_t>(splits, kMaxChunks + 1));
  RETURN_IF_ERROR(document.Find("local-mem-bw").ReadIfThere(&system.local_memory_bandwidth));
  RETURN_IF_ERROR(document.Find("peak-perf").ReadIfThere(&system.peak_performance));
  RETURN_IF_ERROR(document.Find("roofline-enabled").ReadIfThere(&system.roofline_enabled));
  RETURN_IF_ERROR(document.Find("replay-only").ReadIfThere(&system.replay_only));
  for (int op = 0; op < kSimulatedCollectives; ++op) {
    RETURN_IF_ERROR(ReadAlgorithms(document.Find(AlgorithmsKey(static_cast<CollectiveKind>(op))),
                                   &system.algorithms[op]));
    RETURN_IF_ERROR(ReadCustomPrefix(document.Find(CustomKey(static_cast<CollectiveKind>(op))),
                                     &system.custom[op]));
  }
  RETURN_IF_ERROR(CheckSystemConfig(system));
  return system;
}

}  // namespace meridian
