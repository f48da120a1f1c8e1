#include "astra_bridge/engine/workload_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/simulation.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// How many queues of chunks all ranks may have together; each takes memory.
constexpr int64_t kMaxQueues = int64_t{1} << 26;

std::string SourceOr(const std::string& source, absl::string_view otherwise) {
  return source.empty() ? std::string(otherwise) : source;
}

// Returns what is wrong with the node, or "".
std::string FindFault(const WorkloadNode& node, int32_t rank, size_t ranks, size_t algorithms,
                      const SystemConfig& system) {
  if (node.duration_ns < 0 || node.duration_ns > kMaxDurationNs) {
    return absl::StrCat("duration of ", node.duration_ns, " ns is out of range");
  }
  if (node.delay_ns < 0 || node.delay_ns > kMaxDurationNs) {
    return absl::StrCat("delay of ", node.delay_ns, " ns is out of range");
  }
  if (node.type == WorkloadNodeType::kCompute) {
    if (!system.roofline_enabled) return "";
    if (node.operations < 0 || node.tensor_bytes < 0) return "num_ops or tensor_size is negative";
    if (!HasRoofline(node, system) || node.tensor_bytes == 0) return "";
    if (node.operations == 0) return "num_ops is 0; a roofline divides by it: write 1 or more";
    const double roofline_ns = RooflineNs(node, system);
    if (roofline_ns <= kMaxDurationNs) return "";
    return absl::StrCat("num_ops ", node.operations, " and tensor_size ", node.tensor_bytes,
                        " take ", roofline_ns, " ns by the roofline, which is out of range");
  }
  if (system.replay_only) return "";
  if (node.type == WorkloadNodeType::kMemory) {
    const RemoteMemory& memory = system.remote_memory;
    if (memory.kind == RemoteMemory::Kind::kNone) {
      return "loads from or stores to remote memory, and there is none; describe it with "
             "astra_simulate --remote_memory";
    }
    if (node.tensor_bytes >= 0 && memory.AccessNs(node.tensor_bytes) <= kMaxDurationNs) return "";
    return absl::StrCat("tensor_size ", node.tensor_bytes, " is out of range");
  }
  if (node.bytes < 0 || node.bytes > kMaxMessageBytes) {
    return absl::StrCat("comm_size ", node.bytes, " is out of range; at most ", kMaxMessageBytes,
                        " bytes are possible");
  }
  if (node.type == WorkloadNodeType::kCollective) {
    const bool has_algorithms =
        node.algorithms >= kSystemAlgorithms && node.algorithms < static_cast<int32_t>(algorithms);
    return has_algorithms ? "" : absl::StrCat("has no algorithms number ", node.algorithms);
  }
  const char* const key = node.type == WorkloadNodeType::kSend ? "comm_dst" : "comm_src";
  if (node.peer < 0 || node.peer >= static_cast<int32_t>(ranks)) {
    return absl::StrCat(key, " ", node.peer, " is no rank; there are ranks 0 to ", ranks - 1);
  }
  if (node.peer == rank) return absl::StrCat(key, " ", node.peer, " is the rank itself");
  if (node.bytes == 0) return "comm_size 0: a message has at least one byte";
  if (node.tag < 0) return absl::StrCat("comm_tag ", node.tag, " is negative");
  return "";
}

absl::Status CheckConfig(const Workload& workload, const NetworkConfig& network,
                         const SystemConfig& system, const SimulationOptions& options) {
  if (workload.ranks.size() != static_cast<size_t>(network.npus())) {
    return InvalidArgument(SourceOr(network.source, "network"), ": npus_count: the network has ",
                           network.npus(), " NPUs, but the workload ", workload.ranks.size(),
                           " ranks");
  }
  const int64_t max_streams = std::min<int64_t>(kMaxCommStreams, kMaxQueues / network.npus());
  if (options.comm_streams < 1 || options.comm_streams > max_streams) {
    return InvalidArgument("comm_streams is ", options.comm_streams, "; expected 1 to ",
                           max_streams);
  }
  const RemoteMemory& memory = system.remote_memory;
  if (memory.kind == RemoteMemory::Kind::kPerNode &&
      memory.MemoryOf(network.npus() - 1) >= memory.nodes) {
    return InvalidArgument(SourceOr(memory.source, "remote memory"), ": num-nodes ", memory.nodes,
                           " x num-npus-per-node ", memory.npus_per_node, " are fewer than the ",
                           network.npus(), " NPUs of ", SourceOr(network.source, "the network"));
  }
  if (system.roofline_enabled && !system.replay_only &&
      (system.peak_performance == 0 || system.local_memory_bandwidth == 0)) {
    return InvalidArgument(SourceOr(system.source, "system"),
                           ": roofline-enabled: peak-perf and local-mem-bw must be positive");
  }
  return absl::OkStatus();
}

// Checks each node on its own. Ranks have their sources as names.
absl::Status CheckNodes(const std::vector<RankWorkload>& ranks, size_t algorithms,
                        const SystemConfig& system) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::string name = SourceOr(ranks[r].source, absl::StrCat("rank ", r));
    if (ranks[r].nodes().size() > kFirstOperation) {
      return InvalidArgument(name, ": has more than ", kFirstOperation, " nodes");
    }
    for (const WorkloadNode& node : ranks[r].nodes()) {
      const std::string fault =
          FindFault(node, static_cast<int32_t>(r), ranks.size(), algorithms, system);
      if (!fault.empty()) return InvalidArgument(name, ": node ", node.id, ": ", fault);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string RankName(const Workload& workload, int32_t rank) {
  return SourceOr(workload.ranks[rank].source, absl::StrCat("rank ", rank));
}

bool HasRoofline(const WorkloadNode& node, const SystemConfig& system) {
  return system.roofline_enabled && !system.replay_only &&
         node.type == WorkloadNodeType::kCompute && !node.on_host;
}

double RooflineNs(const WorkloadNode& node, const SystemConfig& system) {
  const double operations = static_cast<double>(node.operations);
  const double intensity = operations / static_cast<double>(node.tensor_bytes);
  const double per_second =
      std::min(system.local_memory_bandwidth * 1e9 * intensity, system.peak_performance * 1e12);
  return operations / per_second * 1e9;
}

absl::Status CheckWorkload(const Workload& workload, const NetworkConfig& network,
                           const SystemConfig& system, const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckNetworkConfig(network));
  RETURN_IF_ERROR(CheckSystemConfig(system));
  RETURN_IF_ERROR(CheckConfig(workload, network, system, options));
  for (size_t op = 0; op < kSimulatedCollectives; ++op) {
    // Memory nodes are refused with the algorithm (CustomAlgorithm).
    SystemConfig plain;
    plain.remote_memory.kind = RemoteMemory::Kind::kPool;
    RETURN_IF_ERROR(CheckNodes(workload.custom[op], 0, plain));
    if (system.custom[op].empty() || !workload.custom[op].empty() || system.replay_only) continue;
    return InvalidArgument(SourceOr(system.source, "system"), ": ",
                           CustomKey(static_cast<CollectiveKind>(op)),
                           ": the traces of the algorithm were not read");
  }
  return CheckNodes(workload.ranks, workload.algorithms.size(), system);
}

}  // namespace meridian
