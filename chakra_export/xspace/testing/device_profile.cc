#include "chakra_export/xspace/testing/device_profile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

constexpr uint64_t kProgramId = 15;
constexpr int64_t kCallNs = 1000;

std::string NameOf(const HloModuleBuilder& program) {
  xla::HloProto proto;
  proto.ParseFromString(program.Serialize());
  return proto.hlo_module().name();
}

XSpaceProto NewSpace(const HloModuleBuilder& program) {
  XSpaceProto space;
  XPlaneBuilder metadata(FindOrAddMutablePlaneWithName(&space, kMetadataPlaneName));
  XStatsBuilder<XEventMetadataProto> stats(
      metadata.GetOrCreateEventMetadata(absl::StrCat(NameOf(program), "(", kProgramId, ")")),
      &metadata);
  stats.AddBytesValue(*metadata.GetOrCreateStatMetadata(StatType::kHloProto), program.Serialize());
  stats.AddStatValue(*metadata.GetOrCreateStatMetadata(StatType::kProgramId), kProgramId);
  XPlaneBuilder environment(FindOrAddMutablePlaneWithName(&space, kTaskEnvPlaneName));
  environment.AddStatValue(*environment.GetOrCreateStatMetadata(StatType::kProfileStartTime),
                           static_cast<uint64_t>(kProfileStartNs));
  return space;
}

XEventBuilder AddEvent(const std::string& name, int64_t start_ns, int64_t end_ns,
                       XPlaneBuilder* plane, XLineBuilder* line) {
  XEventBuilder event = line->AddEvent(*plane->GetOrCreateEventMetadata(name));
  event.SetTimespan(Timespan(start_ns * kPsPerNs, (end_ns - start_ns) * kPsPerNs));
  return event;
}

// The call of a run, and the launches in it; correlation ids count up from *correlation.
void AddCalls(const std::string& module, int64_t partition, const ProfileRun& run,
              uint64_t correlation, XPlaneBuilder* host, XLineBuilder* thread) {
  const int64_t end_ns = run.launch_ns + kCallNs * static_cast<int64_t>(run.kernels.size() + 2);
  XEventBuilder execute =
      AddEvent(absl::StrCat("CommonPjRtLoadedExecutable::Execute (", module, ")"), run.launch_ns,
               end_ns, host, thread);
  execute.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kRunId), run.run_id);
  execute.AddStatValue(*host->GetOrCreateStatMetadata("name"),
                       *host->GetOrCreateStatMetadata(module));
  XEventBuilder raw = AddEvent("PjRtStreamExecutorRawLoadedExecutable::Execute", run.launch_ns + 1,
                               end_ns - 1, host, thread);
  raw.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kReplica), int64_t{0});
  raw.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kPartition), partition);
  for (size_t i = 0; i < run.kernels.size(); ++i) {
    const int64_t start_ns = run.launch_ns + kCallNs * static_cast<int64_t>(i + 1);
    const bool is_first = i == 0 || run.kernels[i - 1].hlo_op != run.kernels[i].hlo_op;
    if (is_first && !run.kernels[i].hlo_op.empty()) {
      // The thunk around the launches of one instruction.
      size_t last = i;
      while (last + 1 < run.kernels.size() &&
             run.kernels[last + 1].hlo_op == run.kernels[i].hlo_op) {
        ++last;
      }
      AddEvent(run.kernels[i].hlo_op, start_ns - 1,
               start_ns + kCallNs * static_cast<int64_t>(last - i) + kCallNs / 2 + 1, host, thread);
    }
    AddEvent(run.kernels[i].name, start_ns, start_ns + kCallNs / 2, host, thread)
        .AddStatValue(*host->GetOrCreateStatMetadata(StatType::kCorrelationId), correlation + i);
  }
}

}  // namespace

XSpaceProto GpuProfile(int64_t partition, const HloModuleBuilder& program,
                       const std::vector<ProfileRun>& runs) {
  XSpaceProto space = NewSpace(program);
  const std::string module = NameOf(program);
  FindOrAddMutablePlaneWithName(&space, "/device:GPU:0");
  XPlaneBuilder host(FindOrAddMutablePlaneWithName(&space, kHostThreadsPlaneName));
  XPlaneBuilder device(FindOrAddMutablePlaneWithName(&space, "/device:GPU:0"));
  XLineBuilder thread = host.GetOrCreateLine(1);
  thread.SetName("python3");
  uint64_t correlation = 1;
  for (const ProfileRun& run : runs) {
    AddCalls(module, partition, run, correlation, &host, &thread);
    for (const ProfileKernel& kernel : run.kernels) {
      XLineBuilder stream = device.GetOrCreateLine(kernel.stream);
      stream.SetNameIfEmpty(absl::StrCat("Stream #", kernel.stream));
      XEventBuilder event = AddEvent(kernel.name, kernel.start_ns, kernel.end_ns, &device, &stream);
      event.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kCorrelationId), correlation++);
      event.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kProgramId), kProgramId);
      if (!kernel.hlo_op.empty()) {
        event.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kHloOp),
                           *device.GetOrCreateStatMetadata(kernel.hlo_op));
        event.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kHloModule),
                           *device.GetOrCreateStatMetadata(module));
      }
      if (!kernel.copy_details.empty()) {
        event.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kMemcpyDetails),
                           *device.GetOrCreateStatMetadata(kernel.copy_details));
      }
    }
  }
  return space;
}

XSpaceProto TpuProfile(int64_t device, const HloModuleBuilder& program,
                       const std::vector<ProfileRun>& runs) {
  XSpaceProto space = NewSpace(program);
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space, "/device:TPU:0"));
  // CoreDetails with the core's number in the whole system.
  std::string details;
  StringOutput output(&details);
  WriteVarintField(6, static_cast<uint64_t>(device), &output);
  plane.AddBytesValue(*plane.GetOrCreateStatMetadata(StatType::kCoreDetails), details);
  XLineBuilder modules = plane.GetOrCreateLine(1);
  modules.SetName("XLA Modules");
  XLineBuilder ops = plane.GetOrCreateLine(2);
  ops.SetName("XLA Ops");
  for (const ProfileRun& run : runs) {
    int64_t end_ns = run.launch_ns;
    for (const ProfileKernel& op : run.kernels) {
      end_ns = std::max(end_ns, op.end_ns);
      AddEvent(absl::StrCat("%", op.hlo_op, " = f32[8] op()"), op.start_ns, op.end_ns, &plane, &ops)
          .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProgramId), kProgramId);
    }
    AddEvent(absl::StrCat(NameOf(program), "(", kProgramId, ")"), run.launch_ns, end_ns, &plane,
             &modules)
        .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRunId), run.run_id);
  }
  return space;
}

xla::HloInstructionProto* AddAllReduce(const std::string& name, const xla::ShapeProto& shape,
                                       const std::vector<const xla::HloInstructionProto*>& operands,
                                       const std::vector<std::vector<int64_t>>& groups,
                                       HloModuleBuilder* program) {
  xla::HloInstructionProto* reduce = program->Add(name, "all-reduce", shape, operands);
  reduce->set_channel_id(1);
  reduce->set_use_global_device_ids(true);
  for (const std::vector<int64_t>& group : groups) {
    xla::ReplicaGroup* added = reduce->add_replica_groups();
    for (const int64_t member : group) added->add_replica_ids(member);
  }
  return reduce;
}

xla::HloInstructionProto* AddPermute(const std::string& name, const xla::ShapeProto& shape,
                                     const std::vector<const xla::HloInstructionProto*>& operands,
                                     const std::vector<std::pair<int64_t, int64_t>>& pairs,
                                     HloModuleBuilder* program) {
  xla::HloInstructionProto* permute = program->Add(name, "collective-permute", shape, operands);
  permute->set_channel_id(2);
  for (const auto& [source, target] : pairs) {
    auto* pair = permute->add_source_target_pairs();
    pair->set_source(source);
    pair->set_target(target);
  }
  return permute;
}

HloModuleBuilder PartitionedProgram(int64_t count) {
  HloModuleBuilder program("jit_step");
  std::vector<std::vector<int64_t>> partitions;
  for (int64_t i = 0; i < count; ++i) partitions.push_back({i});
  program.SetDeviceAssignment(partitions);
  return program;
}

}  // namespace meridian
