// SPDX-License-Identifier: Apache-2.0
// How ranks carry out collectives: AstraSim's system configuration.
//
//   {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
//    "preferred-dataset-splits": 4, "collective-optimization": "localBWAware",
//    "local-mem-bw": 1600, "all-reduce-implementation": ["ring", "direct"], ...}
#ifndef ASTRA_BRIDGE_ENGINE_SYSTEM_CONFIG_H_
#define ASTRA_BRIDGE_ENGINE_SYSTEM_CONFIG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// How the collective is carried out along one dimension of the network.
struct CollectiveAlgorithm {
  enum class Kind : uint8_t { kRing, kDirect, kHalvingDoubling, kDoubleBinaryTree };

  Kind kind = Kind::kRing;
  // Direct: how many messages a rank has under way; 0 means all.
  int32_t window = 0;
  // One phase over all ranks in the order of their ids, whatever the dimensions ("oneRing").
  bool over_all_ranks = false;

  friend bool operator==(const CollectiveAlgorithm& a, const CollectiveAlgorithm& b) {
    return a.kind == b.kind && a.window == b.window && a.over_all_ranks == b.over_all_ranks;
  }
};

// Parses AstraSim's name for it: ring, direct, direct4, halvingDoubling, doubleBinaryTree, oneRing,
// oneDirect, oneDirect4, oneHalvingDoubling.
absl::StatusOr<CollectiveAlgorithm> ParseCollectiveAlgorithm(absl::string_view name);

// Returns the name that parses to it.
std::string CollectiveAlgorithmName(const CollectiveAlgorithm& algorithm);

// How an all-reduce over several dimensions is made up.
enum class CollectiveOptimization : uint8_t {
  // An all-reduce of everything in each dimension.
  kBaseline,
  // Reduce-scatter dimension by dimension, all-reduce in the last, all-gather on the way back.
  kLocalBandwidthAware,
};

// The collectives whose messages the engine simulates are the first so many of CollectiveKind. A
// broadcast is not simulated: it lasts as long as its Chakra node says.
inline constexpr int kSimulatedCollectives = 4;
static_assert(static_cast<int>(CollectiveKind::kAllToAll) == kSimulatedCollectives - 1);

// Memory beyond the devices' own, which memory nodes load from and store to: AstraSim's remote
// memory configuration.
//
//   {"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 50}
struct RemoteMemory {
  enum class Kind : uint8_t { kNone, kPerNpu, kPerNode, kPool };

  // Where it came from, for messages.
  std::string source;
  Kind kind = Kind::kNone;
  int64_t latency_ns = 0;
  // Whole bytes per nanosecond, as in AstraSim.
  int64_t bytes_per_ns = 1;
  // kPerNode: so many memories, each of so many neighbouring ranks.
  int64_t nodes = 0;
  int64_t npus_per_node = 0;
  // A note on keys of the file that mean nothing here; empty when there are none.
  std::string unknown_keys;

  // Returns which memory the rank uses; ranks of one memory take turns. With kPerNpu none has to
  // wait.
  int64_t MemoryOf(int32_t rank) const { return kind == Kind::kPerNode ? rank / npus_per_node : 0; }
  bool is_shared() const { return kind == Kind::kPerNode || kind == Kind::kPool; }
  // Returns how long one access lasts, cut to whole nanoseconds.
  double AccessNs(int64_t bytes) const;
};

// Parses the JSON text. Errors name the source and the key.
absl::StatusOr<RemoteMemory> ParseRemoteMemory(absl::string_view json, absl::string_view source);

// Returns the JSON that parses to it.
std::string RemoteMemoryToJson(const RemoteMemory& memory);

struct SystemConfig {
  // Where this came from, for messages; may be empty.
  std::string source;

  CollectiveOptimization collective_optimization = CollectiveOptimization::kLocalBandwidthAware;
  // The time that a rank needs to put a packet on the network.
  int64_t endpoint_delay_ns = 10;
  // How many chunks of collectives a rank works on at once, per dimension.
  int32_t active_chunks_per_dimension = 1;
  // Into how many chunks a collective is split.
  int32_t preferred_dataset_splits = 1;
  // For each CollectiveKind the algorithms by dimension of the network. Later dimensions without an
  // entry do not take part. Without any entry the workload must not use this collective.
  std::array<std::vector<CollectiveAlgorithm>, kSimulatedCollectives> algorithms;
  // For each CollectiveKind the prefix of the traces that it is carried out by instead, one per
  // member: PREFIX.<position>.et, from the working folder. Empty: by the algorithms.
  std::array<std::string, kSimulatedCollectives> custom;
  // In 1e9 bytes per second; with 0 reductions cost nothing.
  double local_memory_bandwidth = 0;

  // Peak performance in 1e12 operations per second.
  double peak_performance = 0;
  // Chakra nodes of computation last operations / min(peak, local memory bandwidth * operations per
  // byte).
  bool roofline_enabled = false;
  // Every Chakra node lasts the duration that the trace gives it, and nothing is simulated.
  bool replay_only = false;
  // Not part of the system's own file.
  RemoteMemory remote_memory;

  const std::vector<CollectiveAlgorithm>& algorithms_of(CollectiveKind op) const {
    return algorithms[static_cast<size_t>(op)];
  }
};

// Returns the key of SystemConfig::custom, e.g. "all-reduce-implementation-custom".
std::string CustomKey(CollectiveKind op);

// Returns InvalidArgument, naming source and key, unless all values are in range.
absl::Status CheckSystemConfig(const SystemConfig& system);

// Parses the JSON text. Keys that AstraSim ignores are ignored; those that change times there and
// are not modelled here are refused, as are keys that occur twice. Errors name the source and the key.
absl::StatusOr<SystemConfig> ParseSystemConfig(absl::string_view json, absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SYSTEM_CONFIG_H_
