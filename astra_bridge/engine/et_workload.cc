#include "astra_bridge/engine/et_workload.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

// Longer durations might not fit into 64 bits of nanoseconds.
constexpr uint64_t kMaxDurationMicros = uint64_t{1} << 50;

class RankReader {
 public:
  RankReader(int32_t rank, const NetworkConfig& network, const SystemConfig& system,
             const EtWorkloadOptions& options)
      : rank_(rank), network_(network), system_(system), options_(options) {}

  absl::StatusOr<RankWorkload> Read(EtReader& reader) {
    RankWorkload rank;
    rank.source = reader.path();
    std::vector<uint64_t> dependencies;
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
      ASSIGN_OR_RETURN(WorkloadNode converted, Convert(node));
      dependencies.assign(node.data_deps().begin(), node.data_deps().end());
      dependencies.insert(dependencies.end(), node.ctrl_deps().begin(), node.ctrl_deps().end());
      rank.Add(std::move(converted), dependencies);
      return absl::OkStatus();
    }));
    if (rank.nodes().empty()) {
      return InvalidArgument(rank.source, ": has no nodes; give an idle rank one COMP node");
    }
    return rank;
  }

 private:
  absl::StatusOr<WorkloadNode> Convert(const Node& node) const {
    WorkloadNode result;
    result.id = node.id();
    if (options_.names) result.name = node.name();
    if (node.duration_micros() > kMaxDurationMicros) {
      return InvalidArgument("duration_micros ", node.duration_micros(), " is out of range");
    }
    result.duration_ns = static_cast<int64_t>(node.duration_micros() * 1000);
    ASSIGN_OR_RETURN(const int64_t start_ns, StartNsOf(node));
    if (start_ns > 0) result.measured_start_ns = start_ns;
    result.is_host_gap = node.name() == kHostGapOpKind;
    ASSIGN_OR_RETURN(const std::optional<bool> is_cpu_op,
                     GetBoolAttribute(node.attr(), kIsCpuOpAttribute));
    result.on_host = is_cpu_op.value_or(false);
    switch (node.type()) {
      case ChakraProtoMsg::COMP_NODE:
        RETURN_IF_ERROR(ConvertCompute(node, &result));
        return result;
      case ChakraProtoMsg::MEM_LOAD_NODE:
      case ChakraProtoMsg::MEM_STORE_NODE:
        RETURN_IF_ERROR(ConvertMemory(node, &result));
        return result;
      case ChakraProtoMsg::COMM_COLL_NODE:
        result.type = WorkloadNodeType::kCollective;
        break;
      case ChakraProtoMsg::COMM_SEND_NODE:
        result.type = WorkloadNodeType::kSend;
        break;
      case ChakraProtoMsg::COMM_RECV_NODE:
        result.type = WorkloadNodeType::kReceive;
        break;
      default:
        return InvalidArgument(
            "type ", TypeName(node),
            " is not simulated; chakra_export --flavor=simulation leaves out what is not");
    }
    if (result.on_host) {
      return InvalidArgument("is_cpu_op is set; communication runs on the device");
    }
    if (system_.replay_only) return result;
    ASSIGN_OR_RETURN(result.bytes, Required(node, kCommSizeAttribute));
    if (result.type == WorkloadNodeType::kCollective) {
      RETURN_IF_ERROR(ConvertCollective(node, &result));
    } else {
      RETURN_IF_ERROR(ConvertPointToPoint(node, &result));
    }
    return result;
  }

  static std::string TypeName(const Node& node) {
    const std::string name(ChakraProtoMsg::NodeType_Name(node.type()));
    return name.empty() ? absl::StrCat(static_cast<int>(node.type())) : name;
  }

  static absl::StatusOr<int64_t> Required(const Node& node, absl::string_view name) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, GetIntAttribute(node.attr(), name));
    if (!value.has_value()) return InvalidArgument("attribute ", name, " is missing");
    return *value;
  }

  absl::Status ConvertCompute(const Node& node, WorkloadNode* result) const {
    if (!system_.roofline_enabled || system_.replay_only || result->on_host) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(result->operations, Required(node, kNumOpsAttribute));
    ASSIGN_OR_RETURN(result->tensor_bytes, Required(node, kTensorSizeAttribute));
    return absl::OkStatus();
  }

  absl::Status ConvertMemory(const Node& node, WorkloadNode* result) const {
    result->type = WorkloadNodeType::kMemory;
    if (system_.replay_only) return absl::OkStatus();
    ASSIGN_OR_RETURN(result->tensor_bytes, Required(node, kTensorSizeAttribute));
    return absl::OkStatus();
  }

  absl::Status ConvertCollective(const Node& node, WorkloadNode* result) const {
    ASSIGN_OR_RETURN(const int64_t type, Required(node, kCommTypeAttribute));
    const std::optional<CollectiveKind> kind = CollectiveKindOf(type);
    if (type == ChakraProtoMsg::REDUCE_SCATTER_BLOCK || !kind.has_value() ||
        !(static_cast<int>(*kind) < kSimulatedCollectives ||
          *kind == CollectiveKind::kCollectiveBroadcast)) {
      return InvalidArgument("comm_type ", type,
                             " is not simulated; expected ALL_REDUCE (0), ALL_GATHER (2), "
                             "BROADCAST (5), ALL_TO_ALL (6) or REDUCE_SCATTER (7)");
    }
    result->op = *kind;
    ASSIGN_OR_RETURN(const std::optional<std::string> group,
                     GetStringAttribute(node.attr(), kPgNameAttribute));
    if (group.has_value() && !IsWorldGroup(*group) &&
        !absl::SimpleAtoi(PlainGroupName(*group), &result->group)) {
      return InvalidArgument("pg_name \"", Printable(*group),
                             "\" is no group id; expected e.g. \"1\"");
    }
    ASSIGN_OR_RETURN(const std::optional<std::vector<bool>> involved,
                     GetBoolListAttribute(node.attr(), kInvolvedDimAttribute));
    if (!involved.has_value()) return absl::OkStatus();
    if (involved->size() < network_.dimensions.size()) {
      return InvalidArgument("involved_dim has ", involved->size(), " entries, but the network ",
                             network_.dimensions.size(), " dimensions");
    }
    result->involved_dimensions = 0;
    for (size_t d = 0; d < network_.dimensions.size(); ++d) {
      if ((*involved)[d]) result->involved_dimensions |= uint64_t{1} << d;
    }
    return absl::OkStatus();
  }

  absl::Status ConvertPointToPoint(const Node& node, WorkloadNode* result) const {
    const bool is_send = result->type == WorkloadNodeType::kSend;
    const absl::string_view own_name = is_send ? kCommSrcAttribute : kCommDstAttribute;
    const absl::string_view peer_name = is_send ? kCommDstAttribute : kCommSrcAttribute;
    ASSIGN_OR_RETURN(const std::optional<int64_t> own, GetIntAttribute(node.attr(), own_name));
    if (own.has_value() && *own != rank_) {
      return InvalidArgument(own_name, " is ", *own, ", but this is rank ", rank_);
    }
    ASSIGN_OR_RETURN(const int64_t peer, Required(node, peer_name));
    ASSIGN_OR_RETURN(const int64_t tag, Required(node, kCommTagAttribute));
    // The limits of int32 are no ranks and no tags either, and are refused as such later on.
    result->peer = static_cast<int32_t>(std::clamp<int64_t>(peer, -1, kMaxNpus));
    if (tag > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("comm_tag ", tag, " is out of range");
    }
    result->tag = static_cast<int32_t>(std::max<int64_t>(tag, -1));
    return absl::OkStatus();
  }

  const int32_t rank_;
  const NetworkConfig& network_;
  const SystemConfig& system_;
  const EtWorkloadOptions& options_;
};

absl::StatusOr<EtReader> OpenRank(FileSystem& file_system, const std::string& prefix, int32_t rank,
                                  const NetworkConfig& network, const EtWorkloadOptions& options) {
  const std::string path = EtPath(prefix, rank);
  absl::StatusOr<EtReader> reader = EtReader::Open(file_system, path, {options.input, nullptr});
  if (!absl::IsNotFound(reader.status())) return reader;
  absl::StatusOr<EtReader> compressed =
      EtReader::Open(file_system, absl::StrCat(path, ".gz"), {options.input, nullptr});
  if (!absl::IsNotFound(compressed.status())) return compressed;
  return NotFound(path, ": no such file, nor ", path, ".gz; ", network.source, " has ",
                  network.npus(), " NPUs (npus_count), each needs one");
}

// Names the file of a member that others exchange messages with. Members that no collective of the
// network could have are no ranks, and are refused as such later on.
absl::Status CheckPeersHaveTraces(const std::string& prefix, const NetworkConfig& network,
                                  const std::vector<RankWorkload>& members) {
  for (const RankWorkload& member : members) {
    for (const WorkloadNode& node : member.nodes()) {
      const bool is_send = node.type == WorkloadNodeType::kSend;
      if (!is_send && node.type != WorkloadNodeType::kReceive) continue;
      if (node.peer < static_cast<int64_t>(members.size()) || node.peer >= network.npus()) continue;
      const std::string path = EtPath(prefix, node.peer);
      return NotFound(prefix, ": no file for rank ", node.peer, ", which node ", node.id, " of ",
                      member.source, is_send ? " sends to" : " receives from", "; expected ", path,
                      " or ", path, ".gz");
    }
  }
  return absl::OkStatus();
}

// Reads the traces of a custom algorithm, from that of the first member on.
absl::Status ReadCustomTraces(FileSystem& file_system, const std::string& prefix,
                              CollectiveKind kind, const NetworkConfig& network,
                              const EtWorkloadOptions& options, std::vector<RankWorkload>* members,
                              std::optional<int64_t>* bytes) {
  ASSIGN_OR_RETURN(const EtFiles found, FindEtFiles(file_system, prefix));
  if (!found.is_prefix) return InvalidArgument(prefix, ": is a file; expected a prefix of traces");
  RETURN_IF_ERROR(CheckNoRankIsMissing(found, prefix));
  for (const EtFile& file : found.files) {
    ASSIGN_OR_RETURN(EtReader reader,
                     EtReader::Open(file_system, file.path, {options.input, nullptr}));
    ASSIGN_OR_RETURN(
        *bytes, Annotate(GetIntAttribute(reader.metadata().attr(), kCommSizeAttribute), file.path));
    ASSIGN_OR_RETURN(
        const std::optional<int64_t> type,
        Annotate(GetIntAttribute(reader.metadata().attr(), kCommTypeAttribute), file.path));
    const std::optional<CollectiveKind> made_for =
        type.has_value() ? CollectiveKindOf(*type) : std::nullopt;
    if (made_for.has_value() && SimulatedCommTypeOf(*made_for) != CommTypeOf(kind)) {
      return InvalidArgument(file.path, ": is for ", CollectiveKindName(*made_for), ", not for ",
                             CollectiveKindName(kind));
    }
    // Neither a roofline nor replay-only is about what happens within a collective.
    const SystemConfig plain;
    ASSIGN_OR_RETURN(
        RankWorkload nodes,
        RankReader(static_cast<int32_t>(file.rank), network, plain, options).Read(reader));
    members->push_back(std::move(nodes));
  }
  return CheckPeersHaveTraces(prefix, network, *members);
}

}  // namespace

std::string DescribeRanksLeftOut(FileSystem& file_system, const std::string& prefix,
                                 const NetworkConfig& network) {
  const absl::StatusOr<std::vector<EtFile>> files = ListEtFiles(file_system, prefix);
  // Reading says better what is missing.
  if (!files.ok()) return "";
  int64_t left_out = 0;
  for (const EtFile& file : *files) left_out += file.rank >= network.npus() ? 1 : 0;
  if (left_out == 0) return "";
  return absl::StrCat(left_out, " of ", files->size(), " ranks are left out: ", network.source,
                      " has ", network.npus(), " NPUs (npus_count)");
}

absl::StatusOr<Workload> ReadEtWorkload(FileSystem& file_system, const std::string& prefix,
                                        const NetworkConfig& network, const SystemConfig& system,
                                        const EtWorkloadOptions& options) {
  Workload workload;
  workload.ranks.reserve(network.npus());
  for (int32_t rank = 0; rank < network.npus(); ++rank) {
    ASSIGN_OR_RETURN(EtReader reader, OpenRank(file_system, prefix, rank, network, options));
    ASSIGN_OR_RETURN(RankWorkload nodes, RankReader(rank, network, system, options).Read(reader));
    workload.ranks.push_back(std::move(nodes));
    if (options.progress) options.progress(workload.ranks.size());
  }
  for (size_t op = 0; op < kSimulatedCollectives; ++op) {
    if (system.custom[op].empty() || system.replay_only) continue;
    RETURN_IF_ERROR(Annotate(
        ReadCustomTraces(file_system, system.custom[op], static_cast<CollectiveKind>(op), network,
                         options, &workload.custom[op], &workload.custom_bytes[op]),
        absl::StrCat(system.source, ": ", CustomKey(static_cast<CollectiveKind>(op)))));
  }
  return workload;
}

std::vector<std::string> DescribeCustomSizes(const Workload& workload, const SystemConfig& system) {
  std::array<std::set<int64_t>, kSimulatedCollectives> sizes;
  for (const RankWorkload& rank : workload.ranks) {
    for (const WorkloadNode& node : rank.nodes()) {
      const size_t op = static_cast<size_t>(node.op);
      if (node.type != WorkloadNodeType::kCollective || op >= kSimulatedCollectives) continue;
      if (!workload.custom[op].empty()) sizes[op].insert(node.bytes);
    }
  }
  std::vector<std::string> notes;
  for (size_t op = 0; op < kSimulatedCollectives; ++op) {
    const std::optional<int64_t>& written_for = workload.custom_bytes[op];
    if (sizes[op].empty() || (sizes[op].size() == 1 && *sizes[op].begin() == written_for)) continue;
    notes.push_back(absl::StrCat(
        system.custom[op], " moves the bytes of its traces whatever the size of the ",
        CollectiveKindName(static_cast<CollectiveKind>(op)), ": written for ",
        written_for.has_value() ? absl::StrCat(WithThousands(*written_for), " bytes")
                                : std::string("a size that they do not say"),
        ", used for ", WithThousands(*sizes[op].begin()),
        sizes[op].size() == 1 ? "" : absl::StrCat(" to ", WithThousands(*sizes[op].rbegin())),
        " bytes"));
  }
  return notes;
}

absl::Status ReadWorkloadGroups(FileSystem& file_system, const std::string& path,
                                Workload* workload) {
  ASSIGN_OR_RETURN(const CommGroups groups, ReadCommGroups(file_system, path));
  workload->groups_source = path;
  for (const auto& [name, ranks] : groups) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(name, &id)) {
      return InvalidArgument(path, ": \"", Printable(name),
                             "\" is no group id; expected e.g. \"1\"");
    }
    std::vector<int32_t>& members = workload->groups[id];
    for (const int64_t rank : ranks) {
      members.push_back(static_cast<int32_t>(std::clamp<int64_t>(rank, -1, kMaxNpus)));
    }
  }
  return absl::OkStatus();
}

}  // namespace meridian
