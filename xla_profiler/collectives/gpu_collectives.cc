// Collectives of a GPU plane: every kernel that its annotation says belongs to a collective.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/hlo/hlo_text.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Copies and fills carry the hlo_op of the collective they prepare; they do not communicate.
bool IsCopyOrFill(const XEventVisitor& event) {
  return event.GetEventOrMetadataStat(StatType::kMemcpyDetails) != nullptr ||
         event.GetEventOrMetadataStat(StatType::kMemsetDetails) != nullptr;
}

std::string TextStat(const XEventVisitor& event, StatType type) {
  return std::string(TextOf(event.GetEventOrMetadataStat(type)));
}

// Sets the bytes of an op from its annotated shape, which is what one participant gets out; an
// error when what it puts in does not fit.
absl::Status Measure(absl::string_view shape, CollectiveOp* op) {
  const int64_t group_size = op->groups.empty() ? 1 : static_cast<int64_t>(op->groups[0].size());
  ASSIGN_OR_RETURN(const int64_t output_bytes, ParseShapeBytes(shape));
  int64_t operand_bytes = output_bytes;
  if (op->kind == CollectiveKind::kAllGather) operand_bytes /= std::max<int64_t>(1, group_size);
  if (op->kind == CollectiveKind::kReduceScatter &&
      __builtin_mul_overflow(output_bytes, group_size, &operand_bytes)) {
    return InvalidArgument("operand is beyond 2^63 bytes");
  }
  op->operand_bytes = operand_bytes;
  op->output_bytes = output_bytes;
  return absl::OkStatus();
}

class GpuPlaneReader {
 public:
  GpuPlaneReader(const XPlaneVisitor& plane, const HostExecutions& host, const SessionClock& clock,
                 AnnotatedCollectives* annotated, CollectiveCollector* collector)
      : plane_(plane), host_(host), clock_(clock), annotated_(annotated), collector_(collector) {}

  absl::Status Run() {
    RETURN_IF_ERROR(plane_.ForEachLine([this](const XLineVisitor& line) {
      return line.ForEachEvent(selection_,
                               [&](const XEventVisitor& event) { return ReadEvent(line, event); });
    }));
    if (device_.has_value()) ResolveDevice(&collector_->device(*device_));
    return absl::OkStatus();
  }

 private:
  absl::Status ReadEvent(const XLineVisitor& line, const XEventVisitor& event) {
    if (event.IsAggregatedEvent() || IsCopyOrFill(event)) return absl::OkStatus();
    const std::optional<int64_t> correlation =
        NumberOf(event.GetEventOrMetadataStat(StatType::kCorrelationId));
    const HloProgram* program = ProgramOf(event, collector_->programs());
    const std::optional<uint32_t> op = FindOp(event, program);
    std::optional<HostLaunch> launch;
    if (correlation.has_value()) {
      launch = host_.FindLaunch(static_cast<uint64_t>(*correlation), &launch_hint_);
    }
    if (program != nullptr && launch.has_value()) CountPlacement(*program, *launch);
    if (!op.has_value()) {
      if (IsCommunicationKernel(event.Name())) CountHidden(event, program);
      return absl::OkStatus();
    }
    CollectivePiece piece;
    piece.op = *op;
    piece.line_id = line.Id();
    piece.correlation_id = static_cast<uint64_t>(correlation.value_or(0));
    if (!ReadTimes(clock_, line, event, collector_, &piece)) {
      return absl::OkStatus();
    }
    // Devices without collectives are not asked for their rank.
    if (!device_.has_value()) device_ = collector_->AddDevice({std::string(plane_.Name())});
    piece.local_device = *device_;
    if (!launch.has_value()) {
      collector_->AddUnresolved("launch of a collective is not in the profile",
                                std::string(event.Name()));
    } else {
      piece.run_id = launch->run_id;
      piece.step = launch->step;
      piece.execution = launch->thunk;
      if (!launch->run_id.has_value()) {
        collector_->AddUnresolved("run of a collective is not in the profile",
                                  std::string(event.Name()));
      }
    }
    collector_->AddPiece(piece);
    return absl::OkStatus();
  }

  // Returns the op that the event is a piece of; nullopt when it is no collective, as far as HLO
  // and annotations say.
  std::optional<uint32_t> FindOp(const XEventVisitor& event, const HloProgram* program) {
    const XStatVisitor* hlo_op = event.GetEventOrMetadataStat(StatType::kHloOp);
    if (hlo_op == nullptr) return std::nullopt;
    if (program == nullptr) return annotated_->FindOp(event, collector_);
    const HloCollective* collective = collector_->FindCollective(*program, hlo_op->StrOrRefValue());
    if (collective == nullptr) return std::nullopt;
    return collector_->OpOf(*program, *collective);
  }

  void CountHidden(const XEventVisitor& event, const HloProgram* program) {
    const std::string example = absl::StrCat(std::string(event.Name()), " of hlo_op '",
                                             TextStat(event, StatType::kHloOp), "'");
    const bool in_graph = event.GetEventOrMetadataStat(StatType::kCudaGraphId) != nullptr;
    collector_->AddUnresolved(in_graph ? "collective hidden in a command buffer"
                              : program == nullptr
                                  ? "communication kernel without HLO or annotation"
                                  : "communication kernel whose hlo_op is no collective",
                              example);
  }

  // A launch says which replica and partition it was for; the program says which device that is.
  void CountPlacement(const HloProgram& program, const HostLaunch& launch) {
    if (!launch.replica.has_value() || !launch.partition.has_value()) return;
    const absl::StatusOr<const HloModule*> module = program.Module();
    if (!module.ok() || (*module)->device_assignment() == nullptr) return;
    const DeviceAssignment& assignment = *(*module)->device_assignment();
    if (*launch.replica < 0 || *launch.replica >= assignment.replica_count() ||
        *launch.partition < 0 || *launch.partition >= assignment.partition_count()) {
      return;
    }
    ++placements_[assignment.Device(*launch.replica, *launch.partition)];
  }

  // Most launches win; of two ids with as many, the smaller.
  void ResolveDevice(LocalDevice* device) {
    int64_t votes = 0;
    for (const auto& [id, count] : placements_) {
      if (count < votes || (count == votes && id > device->global_id)) continue;
      device->global_id = id;
      votes = count;
    }
    if (placements_.size() > 1) {
      collector_->AddUnresolved(
          "launches disagree on the device",
          absl::StrCat(device->name, ": most say device ", device->global_id));
    }
  }

  // What is asked of events.
  const StatSelection selection_{
      StatType::kMemcpyDetails, StatType::kMemsetDetails, StatType::kCorrelationId,
      StatType::kProgramId,     StatType::kHloModule,     StatType::kHloOp,
      StatType::kCudaGraphId,   StatType::kReplicaGroups, StatType::kShape};
  const XPlaneVisitor& plane_;
  const HostExecutions& host_;
  const SessionClock& clock_;
  AnnotatedCollectives* annotated_;
  CollectiveCollector* collector_;
  std::optional<uint32_t> device_;
  size_t launch_hint_ = 0;
  // Global device id -> kernels whose launch names it.
  absl::flat_hash_map<int64_t, int64_t> placements_;
};

}  // namespace

std::optional<uint32_t> AnnotatedCollectives::FindOp(const XEventVisitor& event,
                                                     CollectiveCollector* collector) {
  const std::string groups_text = TextStat(event, StatType::kReplicaGroups);
  if (groups_text.empty()) return std::nullopt;
  const std::string module = TextStat(event, StatType::kHloModule);
  const std::string instruction = TextStat(event, StatType::kHloOp);
  const auto [it, inserted] = ops_.try_emplace({module, instruction});
  if (!inserted) return it->second;

  CollectiveOp op;
  op.module = module;
  op.instruction = instruction;
  const std::optional<CollectiveKind> kind = KindOfKernel(event.Name(), true);
  const absl::StatusOr<IdGroups> groups = ParseReplicaGroups(groups_text);
  if (!kind.has_value() || !groups.ok()) {
    collector->AddUnresolved("annotation of a collective cannot be read",
                             absl::StrCat(instruction, ": ",
                                          groups.ok() ? std::string(event.Name())
                                                      : std::string(groups.status().message())));
    return std::nullopt;
  }
  op.kind = *kind;
  op.groups = *groups;
  const absl::Status measured = Measure(TextStat(event, StatType::kShape), &op);
  if (!measured.ok()) {
    collector->AddUnresolved("bytes of an annotated collective cannot be told",
                             absl::StrCat(instruction, ": ", std::string(measured.message())));
  }
  it->second = collector->AddOp(std::move(op));
  return it->second;
}

absl::Status ReadGpuCollectives(const XPlaneVisitor& plane, const HostExecutions& host,
                                const SessionClock& clock, AnnotatedCollectives* annotated,
                                CollectiveCollector* collector) {
  return GpuPlaneReader(plane, host, clock, annotated, collector).Run();
}

}  // namespace meridian
