#include "workload_model/calls/call_operation.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "chakra_export/et/collective_type.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using Kind = CallOperation::Kind;

}  // namespace

CallOperation OperationOf(absl::string_view name) {
  struct Entry {
    absl::string_view name;
    CallOperation operation;
  };
  const auto collective = [](CollectiveKind kind, bool is_per_member = false) {
    CallOperation operation;
    operation.kind = Kind::kCollective;
    operation.collective = kind;
    operation.is_per_member = is_per_member;
    return operation;
  };
  const auto other = [](Kind kind) {
    CallOperation operation;
    operation.kind = kind;
    return operation;
  };
  static const auto& entries = *new std::vector<Entry>{
      {"allreduce", collective(CollectiveKind::kAllReduce)},
      {"allgather", collective(CollectiveKind::kAllGather)},
      {"allgatherv", collective(CollectiveKind::kAllGather)},
      {"alltoall", collective(CollectiveKind::kAllToAll, /*is_per_member=*/true)},
      {"alltoallv", collective(CollectiveKind::kAllToAll)},
      {"alltoallw", collective(CollectiveKind::kAllToAll)},
      {"reduce_scatter", collective(CollectiveKind::kReduceScatter)},
      {"reduce_scatter_block", collective(CollectiveKind::kReduceScatter)},
      {"bcast", collective(CollectiveKind::kCollectiveBroadcast)},
      {"reduce", collective(CollectiveKind::kCollectiveReduce)},
      {"scan", collective(CollectiveKind::kCollectiveReduce)},
      {"exscan", collective(CollectiveKind::kCollectiveReduce)},
      {"gather", collective(CollectiveKind::kCollectiveGather)},
      {"gatherv", collective(CollectiveKind::kCollectiveGather)},
      {"scatter", collective(CollectiveKind::kCollectiveScatter)},
      {"scatterv", collective(CollectiveKind::kCollectiveScatter)},
      {"barrier", collective(CollectiveKind::kBarrier)},
      {"send", other(Kind::kSend)},
      {"bsend", other(Kind::kSend)},
      {"rsend", other(Kind::kSend)},
      {"ssend", other(Kind::kSend)},
      {"recv", other(Kind::kReceive)},
      {"sendrecv", other(Kind::kSendReceive)},
      {"sendrecv_replace", other(Kind::kSendReceive)},
      {"wait", other(Kind::kWait)},
      {"waitall", other(Kind::kWait)},
      {"waitany", other(Kind::kWait)},
      {"waitsome", other(Kind::kWait)}};
  const bool is_mpi = absl::ConsumePrefix(&name, "MPI_");
  if (!is_mpi) {
    // Chakra's names: those of its types, SEND and RECV.
    if (name == "SEND") return other(Kind::kSend);
    if (name == "RECV") return other(Kind::kReceive);
    ChakraProtoMsg::CollectiveCommType type;
    if (!ChakraProtoMsg::CollectiveCommType_Parse(std::string(name), &type)) {
      return other(Kind::kUnknown);
    }
    const std::optional<CollectiveKind> kind = CollectiveKindOf(type);
    return kind.has_value() ? collective(*kind) : other(Kind::kUnknown);
  }
  const auto find = [&](absl::string_view text) -> const Entry* {
    for (const Entry& entry : entries) {
      if (absl::EqualsIgnoreCase(entry.name, text)) return &entry;
    }
    return nullptr;
  };
  if (const Entry* entry = find(name)) return entry->operation;
  // MPI_Isend, MPI_Iallreduce.
  if (absl::ConsumePrefix(&name, "I")) {
    if (const Entry* entry = find(name)) {
      CallOperation operation = entry->operation;
      operation.is_asynchronous = operation.kind != Kind::kWait;
      return operation;
    }
  }
  // Communicators, topologies, types and the like, which other ranks at most agree about.
  for (absl::string_view prefix :
       {"Comm_",     "Cart_",    "Graph_",      "Dist_graph_", "Group_",
        "Type_",     "Op_",      "Info_",       "Topo_",       "Test",
        "Probe",     "Iprobe",   "Mprobe",      "Improbe",     "Request_",
        "Status_",   "Error_",   "Errhandler_", "Init",        "Finalize",
        "Wtime",     "Wtick",    "Pcontrol",    "Get_count",   "Get_processor_name",
        "Cancel",    "Pack",     "Unpack",      "Attr_",       "Keyval_",
        "Alloc_mem", "Free_mem", "File_"}) {
    if (absl::StartsWith(name, prefix)) return other(Kind::kLocal);
  }
  return other(Kind::kUnknown);
}

}  // namespace meridian
