#include "workload_model/evaluated_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chakra_export/et/collective_type.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kNsPerUs = 1000;
constexpr double kMaxComputeUs = 1e12;
constexpr double kMaxBytes = 1e15;

using Kind = CallOperation::Kind;

int64_t Nanoseconds(double us) {
  return std::llround(kNsPerUs * std::clamp(us, 0.0, kMaxComputeUs));
}

bool IsOfKind(const CallModel& call, const CellKind& kind) {
  return call.threads() == kind.threads &&
         std::max<int64_t>(1, call.ranks_per_node()) == kind.ranks_per_node &&
         (call.rank_class() == kind.rank_class ||
          (call.rank_class().empty() && kind.rank_class == "all"));
}

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
    if (!ChakraProtoMsg::CollectiveCommType_Parse(std::string(name), &type)) return {};
    const std::optional<CollectiveKind> kind = CollectiveKindOf(type);
    return kind.has_value() ? collective(*kind) : CallOperation();
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
  return {};
}

absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell) {
  cell.kind.rank_class = flow.rank_class();
  EvaluatedFlow result;
  for (const CallModel& call : model.models()) {
    if (!IsOfKind(call, cell.kind)) continue;
    const double value = EvaluateModel(call.value(), cell);
    const double compute = call.has_compute() ? EvaluateModel(call.compute(), cell) : value;
    const double call_us = std::max(0.0, value - compute);
    result.times[{call.source(), call.destination()}] = {
        Nanoseconds(EvaluateModel(call.first(), cell) - call_us), Nanoseconds(compute)};
    result.has_call_times &= call.has_compute();
    // A callsite that is reached from several takes what it takes from the last.
    result.call_ns[call.destination()] = Nanoseconds(call_us);
  }
  if (result.times.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "there is no model of ", cell.kind.threads, " threads and ", cell.kind.ranks_per_node,
        " ranks per node for ranks '", Printable(cell.kind.rank_class), "'"));
  }
  for (const CallModel& call : model.messages()) {
    if (!IsOfKind(call, cell.kind)) continue;
    result.bytes[call.source()] =
        std::llround(std::clamp(EvaluateModel(call.value(), cell), 0.0, kMaxBytes));
  }
  for (const CallsiteModel& callsite : flow.callsites()) {
    if (!callsite.unexplained().empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("callsite ", callsite.callsite(), " (", Printable(callsite.operation()),
                       ") can not be generated: ", Printable(callsite.unexplained())));
    }
    result.callsites[callsite.callsite()] = &callsite;
  }
  return result;
}

absl::StatusOr<const ControlFlow*> FlowOf(const WorkloadModel& model,
                                          absl::string_view rank_class) {
  for (const ControlFlow& flow : model.flows()) {
    if (flow.rank_class() == rank_class) return &flow;
  }
  return absl::FailedPreconditionError(
      model.flows_size() == 0
          ? "the model has no control flow: trace models do not say in which order calls come; "
            "fit it to traces of A-mpiP, to profiles of a job or to its Chakra traces"
          : absl::StrCat("ranks '", Printable(rank_class), "' were never measured"));
}

}  // namespace meridian
