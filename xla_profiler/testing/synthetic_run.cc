#include "xla_profiler/testing/synthetic_run.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

constexpr char kModule[] = "jit_step";
constexpr char kFusion[] = "loop_add_fusion";
constexpr char kAllReduce[] = "all-reduce.2";
constexpr char kNcclKernel[] =
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
// Sessions begin this long before the first step.
constexpr int64_t kWarmUpNs = 20000000;
constexpr int64_t kLaunchNs = 5000;

int64_t SessionStartNs(const SyntheticRunOptions& options, int rank) {
  return options.start_ns + rank * options.session_spread_ns;
}

// All ranks are in their sessions by then.
int64_t StepStartNs(const SyntheticRunOptions& options, int step) {
  return SessionStartNs(options, options.ranks) + kWarmUpNs + step * options.step_period_ns;
}

// program_id counts per process, so ranks differ.
int64_t ProgramId(int rank) { return 15 + rank; }

xla::HloProto StepModule(const SyntheticRunOptions& options) {
  xla::HloProto proto;
  xla::HloModuleProto* module = proto.mutable_hlo_module();
  module->set_name(kModule);
  module->set_entry_computation_name("main");
  module->set_entry_computation_id(1);
  xla::HloComputationProto* main = module->add_computations();
  main->set_name("main");
  main->set_id(1);
  main->set_root_id(3);
  const auto add = [&](int64_t id, const char* name, const char* opcode) {
    xla::HloInstructionProto* instruction = main->add_instructions();
    instruction->set_id(id);
    instruction->set_name(name);
    instruction->set_opcode(opcode);
    instruction->mutable_shape()->set_element_type(xla::F32);
    instruction->mutable_shape()->add_dimensions(options.elements);
    if (id > 1) instruction->add_operand_ids(id - 1);
    return instruction;
  };
  add(1, "param.0", "parameter");
  add(2, kFusion, "fusion");
  xla::HloInstructionProto* reduce = add(3, kAllReduce, "all-reduce");
  reduce->set_channel_id(1);
  reduce->set_use_global_device_ids(true);
  auto* groups = reduce->mutable_iota_collective_device_list();
  groups->set_num_replica_groups(1);
  groups->set_num_devices_per_group(options.ranks);
  groups->add_iota_reshape_dims(options.ranks);
  groups->add_iota_transpose_perm(0);
  xla::DeviceAssignmentProto* devices = module->mutable_device_assignment();
  devices->set_replica_count(1);
  devices->set_computation_count(options.ranks);
  for (int rank = 0; rank < options.ranks; ++rank) {
    devices->add_computation_devices()->add_replica_device_ids(rank);
  }
  return proto;
}

void AddMetadataPlane(const SyntheticRunOptions& options, int rank, XSpaceProto* space) {
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(space, kMetadataPlaneName));
  XEventMetadataProto* entry =
      plane.GetOrCreateEventMetadata(absl::StrCat(kModule, "(", ProgramId(rank), ")"));
  XStatsBuilder<XEventMetadataProto> stats(entry, &plane);
  stats.AddBytesValue(*plane.GetOrCreateStatMetadata(StatType::kHloProto),
                      StepModule(options).SerializeAsString());
  stats.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProgramId),
                     static_cast<uint64_t>(ProgramId(rank)));
}

// Builds one rank's device and host planes, step by step.
class RankBuilder {
 public:
  RankBuilder(const SyntheticRunOptions& options, int rank, XSpaceProto* space)
      : options_(options),
        rank_(rank),
        device_(FindOrAddMutablePlaneWithName(space, "/device:GPU:0")),
        host_(FindOrAddMutablePlaneWithName(space, kHostThreadsPlaneName)),
        stream_(device_.GetOrCreateLine(14)),
        thread_(host_.GetOrCreateLine(1000 + rank)) {
    stream_.SetName("Stream #14(Compute)");
    thread_.SetName("python3");
    // Bases differ within a file, as they do in real ones.
    stream_.SetTimestampNs(700000);
    thread_.SetTimestampNs(30000);
  }

  void AddStep(int step) {
    const int64_t begin_ns = StepStartNs(options_, step);
    const TrueCollective reduce = TrueAllReduce(options_, rank_, step);
    AddExecute(step, begin_ns - 4 * kLaunchNs);
    AddKernel(kFusion, kFusion, begin_ns, reduce.start_ns, 2 * step + 1);
    AddKernel(kNcclKernel, kAllReduce, reduce.start_ns, reduce.end_ns, 2 * step + 2);
  }

 private:
  void AddExecute(int step, int64_t begin_ns) {
    XEventBuilder execute =
        AddHostEvent(absl::StrCat("CommonPjRtLoadedExecutable::Execute (", kModule, ")"), begin_ns,
                     4 * kLaunchNs);
    execute.AddStatValue(*host_.GetOrCreateStatMetadata(StatType::kRunId), SyntheticRunId(step));
    execute.AddStatValue(*host_.GetOrCreateStatMetadata("name"),
                         *host_.GetOrCreateStatMetadata(kModule));
    XEventBuilder raw = AddHostEvent("PjRtStreamExecutorRawLoadedExecutable::Execute", begin_ns + 1,
                                     4 * kLaunchNs - 2);
    raw.AddStatValue(*host_.GetOrCreateStatMetadata(StatType::kReplica), int64_t{0});
    raw.AddStatValue(*host_.GetOrCreateStatMetadata(StatType::kPartition), int64_t{rank_});
    for (int launch : {1, 2}) {
      AddHostEvent(launch == 1 ? kFusion : kAllReduce, begin_ns + launch * kLaunchNs - 1,
                   kLaunchNs / 2 + 2);
      XEventBuilder event = AddHostEvent(launch == 1 ? kFusion : kNcclKernel,
                                         begin_ns + launch * kLaunchNs, kLaunchNs / 2);
      event.AddStatValue(*host_.GetOrCreateStatMetadata(StatType::kCorrelationId),
                         static_cast<uint64_t>(2 * step + launch));
    }
  }

  XEventBuilder AddHostEvent(const std::string& name, int64_t begin_ns, int64_t duration_ns) {
    XEventBuilder event = thread_.AddEvent(*host_.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan(OffsetPs(thread_, begin_ns), duration_ns * kPsPerNs));
    return event;
  }

  void AddKernel(const char* name, const char* hlo_op, int64_t begin_ns, int64_t end_ns,
                 uint64_t correlation_id) {
    XEventBuilder event = stream_.AddEvent(*device_.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan(OffsetPs(stream_, begin_ns), (end_ns - begin_ns) * kPsPerNs));
    event.AddStatValue(*device_.GetOrCreateStatMetadata(StatType::kCorrelationId), correlation_id);
    event.AddStatValue(*device_.GetOrCreateStatMetadata(StatType::kHloOp),
                       *device_.GetOrCreateStatMetadata(hlo_op));
    event.AddStatValue(*device_.GetOrCreateStatMetadata(StatType::kHloModule),
                       *device_.GetOrCreateStatMetadata(kModule));
    event.AddStatValue(*device_.GetOrCreateStatMetadata(StatType::kProgramId),
                       static_cast<uint64_t>(ProgramId(rank_)));
  }

  int64_t OffsetPs(const XLineBuilder& line, int64_t unix_ns) const {
    return (unix_ns - SessionStartNs(options_, rank_) - line.TimestampNs()) * kPsPerNs;
  }

  const SyntheticRunOptions& options_;
  const int rank_;
  XPlaneBuilder device_;
  XPlaneBuilder host_;
  XLineBuilder stream_;
  XLineBuilder thread_;
};

void AddTaskEnvironment(const SyntheticRunOptions& options, int rank, XSpaceProto* space) {
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(space, kTaskEnvPlaneName));
  plane.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProfileStartTime),
                     static_cast<uint64_t>(SessionStartNs(options, rank)));
  plane.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProfileStopTime),
                     static_cast<uint64_t>(StepStartNs(options, options.steps)));
}

}  // namespace

int64_t SyntheticRunId(int step) { return 1000 + step; }

TrueCollective TrueAllReduce(const SyntheticRunOptions& options, int rank, int step) {
  const auto start_ns = [&](int r) {
    return StepStartNs(options, step) + options.compute_ns + r * options.straggle_ns;
  };
  return {start_ns(rank), start_ns(options.ranks - 1) + options.transfer_ns};
}

std::vector<XSpaceProto> SyntheticRun(const SyntheticRunOptions& options) {
  std::vector<XSpaceProto> spaces(options.ranks);
  for (int rank = 0; rank < options.ranks; ++rank) {
    XSpaceProto* space = &spaces[rank];
    space->add_hostnames(absl::StrCat("host-", rank));
    AddMetadataPlane(options, rank, space);
    // In the order of real files.
    FindOrAddMutablePlaneWithName(space, "/device:GPU:0");
    FindOrAddMutablePlaneWithName(space, kHostThreadsPlaneName);
    AddTaskEnvironment(options, rank, space);
    RankBuilder builder(options, rank, space);
    for (int step = 0; step < options.steps; ++step) builder.AddStep(step);
  }
  return spaces;
}

}  // namespace meridian
