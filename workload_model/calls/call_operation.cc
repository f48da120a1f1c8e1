#include "workload_model/calls/call_operation.h"

#include <map>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "chakra_export/et/collective_type.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using Kind = CallOperation::Kind;

CallOperation Collective(CollectiveKind kind, bool is_per_member = false) {
  return {Kind::kCollective, kind, /*is_asynchronous=*/false, is_per_member};
}

// The operations of MPI by name, in small letters and without MPI_.
std::map<std::string, CallOperation> MpiOperations() {
  std::map<std::string, CallOperation> operations;
  const auto add = [&](absl::string_view names, const CallOperation& operation) {
    for (absl::string_view name : absl::StrSplit(names, ' ')) {
      operations[std::string(name)] = operation;
    }
  };
  add("allreduce", Collective(CollectiveKind::kAllReduce));
  add("allgather allgatherv", Collective(CollectiveKind::kAllGather));
  add("alltoall", Collective(CollectiveKind::kAllToAll, /*is_per_member=*/true));
  add("alltoallv alltoallw", Collective(CollectiveKind::kAllToAll));
  add("reduce_scatter reduce_scatter_block", Collective(CollectiveKind::kReduceScatter));
  add("bcast", Collective(CollectiveKind::kCollectiveBroadcast));
  add("reduce scan exscan", Collective(CollectiveKind::kCollectiveReduce));
  add("gather gatherv", Collective(CollectiveKind::kCollectiveGather));
  add("scatter scatterv", Collective(CollectiveKind::kCollectiveScatter));
  add("barrier", Collective(CollectiveKind::kBarrier));
  add("send bsend rsend ssend", {Kind::kSend});
  add("recv", {Kind::kReceive});
  add("sendrecv sendrecv_replace", {Kind::kSendReceive});
  add("wait waitall waitany waitsome", {Kind::kWait});
  return operations;
}

// Communicators, topologies, types and the like, which other ranks at most agree about.
bool IsLocal(absl::string_view name) {
  constexpr absl::string_view kPrefixes[] = {
      "Comm_",     "Cart_",    "Graph_",      "Dist_graph_", "Group_",
      "Type_",     "Op_",      "Info_",       "Topo_",       "Test",
      "Probe",     "Iprobe",   "Mprobe",      "Improbe",     "Request_",
      "Status_",   "Error_",   "Errhandler_", "Init",        "Finalize",
      "Wtime",     "Wtick",    "Pcontrol",    "Get_count",   "Get_processor_name",
      "Cancel",    "Pack",     "Unpack",      "Attr_",       "Keyval_",
      "Alloc_mem", "Free_mem", "File_"};
  for (absl::string_view prefix : kPrefixes) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

// Chakra's names: those of its types, SEND and RECV.
CallOperation ChakraOperation(absl::string_view name) {
  if (name == "SEND") return {Kind::kSend};
  if (name == "RECV") return {Kind::kReceive};
  ChakraProtoMsg::CollectiveCommType type;
  if (!ChakraProtoMsg::CollectiveCommType_Parse(std::string(name), &type)) return {Kind::kUnknown};
  const std::optional<CollectiveKind> kind = CollectiveKindOf(type);
  return kind.has_value() ? Collective(*kind) : CallOperation{Kind::kUnknown};
}

}  // namespace

CallOperation OperationOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "MPI_")) return ChakraOperation(name);
  static const auto& operations = *new std::map<std::string, CallOperation>(MpiOperations());
  const auto found = operations.find(absl::AsciiStrToLower(name));
  if (found != operations.end()) return found->second;
  // MPI_Isend, MPI_Iallreduce.
  if (absl::StartsWith(name, "I")) {
    const auto begun = operations.find(absl::AsciiStrToLower(name.substr(1)));
    if (begun != operations.end()) {
      CallOperation operation = begun->second;
      operation.is_asynchronous = operation.kind != Kind::kWait;
      return operation;
    }
  }
  return {IsLocal(name) ? Kind::kLocal : Kind::kUnknown};
}

}  // namespace meridian
