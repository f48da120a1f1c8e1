#include "astra_bridge/sidecar/astra_files.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_workload_writer.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

using ChakraProtoMsg::Node;

// Beyond these AstraSim's stream ids of different groups collide.
constexpr int32_t kMaxGroupId = 499;

std::string ExactNumber(double number) { return absl::StrFormat("%.17g", number); }

// Returns the GiB/s that the conversion to bytes per nanosecond turns into just this number.
double GibibytesPerSecond(double bytes_per_ns) {
  constexpr int kNeighbours = 8;
  const double guess = bytes_per_ns / GibibytesPerSecondToBytesPerNs(1);
  double below = guess, above = guess;
  for (int i = 0; i < kNeighbours; ++i) {
    if (GibibytesPerSecondToBytesPerNs(below) == bytes_per_ns) return below;
    if (GibibytesPerSecondToBytesPerNs(above) == bytes_per_ns) return above;
    below = std::nextafter(below, 0);
    above = std::nextafter(above, std::numeric_limits<double>::infinity());
  }
  return guess;
}

// AstraSim divides by it, also where 0 stands for reductions that cost nothing, and then never
// ends.
double LocalMemoryBandwidth(const SystemConfig& system) {
  constexpr double kAsGoodAsInfinite = 1e30;
  const bool is_free = system.local_memory_bandwidth == 0 && !system.roofline_enabled;
  return is_free ? kAsGoodAsInfinite : system.local_memory_bandwidth;
}

// Returns the prefix of the traces of a custom algorithm.
std::string CustomPrefix(CollectiveKind op) {
  return absl::StrCat("custom-", CollectiveKindName(op));
}

template <typename Function>
std::string YamlList(const NetworkConfig& network, absl::string_view key, Function value) {
  return absl::StrCat(key, ": [ ",
                      absl::StrJoin(network.dimensions, ", ",
                                    [&](std::string* out, const NetworkDimension& d) {
                                      absl::StrAppend(out, value(d));
                                    }),
                      " ]\n");
}

std::string GroupsJson(const WorkloadGroups& groups) {
  CommGroups named;
  for (const auto& [id, members] : groups) {
    named[absl::StrCat(id)].assign(members.begin(), members.end());
  }
  return CommGroupsJson(named);
}

void AddCollective(const WorkloadNode& node, size_t dimensions, Node* out) {
  out->set_type(ChakraProtoMsg::COMM_COLL_NODE);
  SetIntAttribute(kCommTypeAttribute, *CommTypeOf(node.op), out->mutable_attr());
  SetIntAttribute(kCommSizeAttribute, node.bytes, out->mutable_attr());
  if (node.group != kWorldGroup) {
    SetStringAttribute(kPgNameAttribute, absl::StrCat(node.group), out->mutable_attr());
  }
  std::vector<bool> involved(dimensions);
  for (size_t d = 0; d < dimensions; ++d) involved[d] = (node.involved_dimensions >> d & 1) != 0;
  SetBoolListAttribute(kInvolvedDimAttribute, involved, out->mutable_attr());
}

void AddPointToPoint(const WorkloadNode& node, int32_t rank, Node* out) {
  const bool is_send = node.type == WorkloadNodeType::kSend;
  out->set_type(is_send ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE);
  SetIntAttribute(kCommSrcAttribute, is_send ? rank : node.peer, out->mutable_attr());
  SetIntAttribute(kCommDstAttribute, is_send ? node.peer : rank, out->mutable_attr());
  SetIntAttribute(kCommSizeAttribute, node.bytes, out->mutable_attr());
  SetIntAttribute(kCommTagAttribute, node.tag, out->mutable_attr());
}

Node ToEtNode(const WorkloadNode& node, absl::Span<const uint64_t> dependencies, int32_t rank,
              size_t dimensions) {
  Node out;
  out.set_id(node.id);
  out.set_name(node.name);
  for (uint64_t dependency : dependencies) out.add_data_deps(dependency);
  out.set_duration_micros(static_cast<uint64_t>(node.duration_ns / 1000));
  SetBoolAttribute(kIsCpuOpAttribute, node.on_host, out.mutable_attr());
  switch (node.type) {
    case WorkloadNodeType::kCompute:
      out.set_type(ChakraProtoMsg::COMP_NODE);
      SetIntAttribute(kNumOpsAttribute, node.operations, out.mutable_attr());
      SetIntAttribute(kTensorSizeAttribute, node.tensor_bytes, out.mutable_attr());
      break;
    case WorkloadNodeType::kMemory:
      out.set_type(ChakraProtoMsg::MEM_LOAD_NODE);
      SetIntAttribute(kTensorSizeAttribute, node.tensor_bytes, out.mutable_attr());
      break;
    case WorkloadNodeType::kCollective:
      AddCollective(node, dimensions, &out);
      break;
    case WorkloadNodeType::kSend:
    case WorkloadNodeType::kReceive:
      AddPointToPoint(node, rank, &out);
      break;
  }
  return out;
}

std::string RankEt(const RankWorkload& workload, int32_t rank, size_t dimensions) {
  std::string bytes;
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);
  AppendEtRecord(metadata, &bytes);
  for (size_t i = 0; i < workload.nodes().size(); ++i) {
    AppendEtRecord(ToEtNode(workload.nodes()[i], workload.dependencies(i), rank, dimensions),
                   &bytes);
  }
  return bytes;
}

// For files that nobody needs after a crash.
}  // namespace

absl::Status WriteScratchFile(FileSystem& file_system, const std::string& path,
                              absl::string_view contents) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.CreateFile(path));
  RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

absl::StatusOr<std::string> NetworkConfigToYaml(const NetworkConfig& network) {
  for (const NetworkDimension& dimension : network.dimensions) {
    if (dimension.shape != BlockShape::kMesh && dimension.shape != BlockShape::kLinks) continue;
    return absl::UnimplementedError(absl::StrCat(network.source, ": topology: AstraSim knows no ",
                                                 BlockShapeName(dimension.shape)));
  }
  using Dimension = NetworkDimension;
  return absl::StrCat(
      YamlList(network, "topology", [](const Dimension& d) { return BlockShapeName(d.shape); }),
      YamlList(network, "npus_count", [](const Dimension& d) { return absl::StrCat(d.npus); }),
      YamlList(network, "bandwidth",
               [](const Dimension& d) { return ExactNumber(GibibytesPerSecond(d.bytes_per_ns)); }),
      YamlList(network, "latency", [](const Dimension& d) { return ExactNumber(d.latency_ns); }));
}

std::string SystemConfigToJson(const SystemConfig& system, bool trace_enabled) {
  std::string text;
  JsonWriter json(&text, JsonSpacing::kSpaced);
  json.BeginObject(JsonLayout::kIndented);
  json.Member("scheduling-policy", "LIFO");
  const bool baseline = system.collective_optimization == CollectiveOptimization::kBaseline;
  json.Member("collective-optimization", baseline ? "baseline" : "localBWAware");
  json.Member("endpoint-delay", system.endpoint_delay_ns);
  json.Member("active-chunks-per-dimension", system.active_chunks_per_dimension);
  json.Member("preferred-dataset-splits", system.preferred_dataset_splits);
  json.Key("local-mem-bw");
  json.Raw(ExactNumber(LocalMemoryBandwidth(system)));
  json.Key("peak-perf");
  json.Raw(ExactNumber(system.peak_performance));
  // AstraSim wants its switches as numbers.
  json.Member("roofline-enabled", int{system.roofline_enabled});
  json.Member("replay-only", int{system.replay_only});
  json.Member("trace-enabled", int{trace_enabled});
  for (int op = 0; op < kSimulatedCollectives; ++op) {
    if (!system.custom[op].empty()) {
      const CollectiveKind kind = static_cast<CollectiveKind>(op);
      json.BeginArray(CustomKey(kind));
      json.Value(CustomPrefix(kind));
      json.EndArray();
    }
    const std::vector<CollectiveAlgorithm>& algorithms = system.algorithms[op];
    if (algorithms.empty()) continue;
    json.BeginArray(
        absl::StrCat(CollectiveKindName(static_cast<CollectiveKind>(op)), "-implementation"));
    for (const CollectiveAlgorithm& algorithm : algorithms) {
      json.Value(CollectiveAlgorithmName(algorithm));
    }
    json.EndArray();
  }
  json.EndObject();
  return text + "\n";
}

absl::Status WriteAstraFiles(FileSystem& file_system, const std::string& folder,
                             const Workload& workload, const NetworkConfig& network,
                             const SystemConfig& system, bool node_times) {
  if (!workload.groups.empty() && workload.groups.rbegin()->first > kMaxGroupId) {
    return absl::UnimplementedError(absl::StrCat("AstraSim takes group ids up to ", kMaxGroupId,
                                                 ", not ", workload.groups.rbegin()->first));
  }
  ASSIGN_OR_RETURN(const std::string yaml, NetworkConfigToYaml(network));
  const auto write = [&](absl::string_view name, absl::string_view contents) {
    return WriteScratchFile(file_system, absl::StrCat(folder, "/", name), contents);
  };
  RETURN_IF_ERROR(write(kNetworkFile, yaml));
  RETURN_IF_ERROR(write(kSystemFile, SystemConfigToJson(system, node_times)));
  RETURN_IF_ERROR(write(kMemoryFile, RemoteMemoryToJson(system.remote_memory)));
  if (!workload.groups.empty()) RETURN_IF_ERROR(write(kGroupsFile, GroupsJson(workload.groups)));
  const auto write_traces = [&](absl::string_view prefix, const std::vector<RankWorkload>& ranks) {
    absl::Status status;
    for (size_t rank = 0; rank < ranks.size() && status.ok(); ++rank) {
      status = write(EtPath(prefix, static_cast<int64_t>(rank)),
                     RankEt(ranks[rank], static_cast<int32_t>(rank), network.dimensions.size()));
    }
    return status;
  };
  RETURN_IF_ERROR(write_traces(kWorkloadPrefix, workload.ranks));
  for (size_t op = 0; op < kSimulatedCollectives; ++op) {
    RETURN_IF_ERROR(
        write_traces(CustomPrefix(static_cast<CollectiveKind>(op)), workload.custom[op]));
  }
  return file_system.CreateDirectories(absl::StrCat(folder, "/", kLogFolder));
}

}  // namespace meridian
