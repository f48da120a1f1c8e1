#include "trace_alignment/testing/cluster_profile.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

constexpr char kModule[] = "jit_step";
constexpr int64_t kLaunchPs = 5'000 * kPsPerNs;
// Of the f32 array that each rank puts into a collective.
constexpr int64_t kElements = 1 << 16;

// Program ids count per process, so nodes differ.
uint64_t ProgramId(int64_t node) { return 15 + static_cast<uint64_t>(node); }

struct KindNames {
  const char* opcode;
  const char* instruction;
  const char* kernel;
};

KindNames NamesOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {"all-reduce", "psum", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"};
    case CollectiveKind::kAllGather:
      return {"all-gather", "all_gather", "ncclDevKernel_AllGather_RING_LL"};
    case CollectiveKind::kReduceScatter:
      return {"reduce-scatter", "psum_scatter", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"};
    case CollectiveKind::kAllToAll:
      return {"all-to-all", "all_to_all", "ncclDevKernel_SendRecv"};
    case CollectiveKind::kCollectivePermute:
      return {"collective-permute", "ppermute", "ncclDevKernel_SendRecv"};
    case CollectiveKind::kCollectiveBroadcast:
      return {"collective-broadcast", "pbroadcast", "ncclDevKernel_Broadcast_RING_LL"};
    case CollectiveKind::kCollectiveReduce:
      return {"collective-reduce", "preduce", "ncclDevKernel_Reduce_Sum_f32_RING_LL"};
    default:
      break;
  }
  MERIDIAN_CHECK(false && "a synthetic cluster has no such collective");
  return {};
}

// The `kernel`-th before a collective.
std::string FusionName(size_t collective, int64_t kernel) {
  const std::string name = absl::StrCat("input_reduce_fusion.", collective + 1);
  return kernel == 0 ? name : absl::StrCat(name, ".", kernel);
}

int64_t OutputElements(CollectiveKind kind, int64_t group_size) {
  if (kind == CollectiveKind::kAllGather) return kElements * group_size;
  if (kind == CollectiveKind::kReduceScatter) return kElements / group_size;
  return kElements;
}

void SetParticipants(const SyntheticCluster& cluster, size_t collective,
                     xla::HloInstructionProto* instruction) {
  const CollectiveSpec& spec = cluster.options().collectives[collective];
  instruction->set_channel_id(static_cast<int64_t>(collective) + 1);
  for (const SourceTargetPair& pair : cluster.Pairs(collective)) {
    auto* proto = instruction->add_source_target_pairs();
    proto->set_source(pair.source);
    proto->set_target(pair.target);
  }
  if (HasPairs(spec.kind)) return;
  instruction->set_use_global_device_ids(true);
  const int64_t groups = static_cast<int64_t>(cluster.groups(collective).size());
  const int64_t size = cluster.ranks() / groups;
  auto* iota = instruction->mutable_iota_collective_device_list();
  iota->set_num_replica_groups(groups);
  iota->set_num_devices_per_group(size);
  for (int64_t dimension : {spec.strided ? size : groups, spec.strided ? groups : size}) {
    iota->add_iota_reshape_dims(dimension);
  }
  for (int32_t axis : {0, 1}) iota->add_iota_transpose_perm(spec.strided ? 1 - axis : axis);
}

std::string StepModule(const SyntheticCluster& cluster) {
  HloModuleBuilder builder(kModule);
  std::vector<std::vector<int64_t>> partitions;
  for (int64_t rank = 0; rank < cluster.ranks(); ++rank) partitions.push_back({rank});
  builder.SetDeviceAssignment(partitions);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {kElements});
  const xla::HloInstructionProto* last = builder.Add("param.0", "parameter", shape);
  for (size_t c = 0; c < cluster.options().collectives.size(); ++c) {
    const CollectiveKind kind = cluster.options().collectives[c].kind;
    const int64_t group_size = cluster.ranks() / static_cast<int64_t>(cluster.groups(c).size());
    for (int64_t k = 0; k < cluster.options().compute_kernels; ++k) {
      last = builder.Add(FusionName(c, k), "fusion", shape, {last});
    }
    auto* instruction =
        builder.Add(ClusterInstruction(cluster, c), NamesOf(kind).opcode,
                    ArrayShape(xla::F32, {OutputElements(kind, group_size)}), {last});
    SetParticipants(cluster, c, instruction);
    last = instruction;
  }
  return builder.Serialize();
}

// What turns true time into the times of a file, from start_ns.
struct FileClocks {
  std::function<int64_t(int64_t true_ps)> host;
  std::function<int64_t(int64_t true_ps)> tracer;
};

// Writes events that are given in true time onto a line. Its base is the first event's start, as in
// real files, so that bases differ.
class LineWriter {
 public:
  // The plane and the clock must outlive this. The session's start is what the host clock shows.
  LineWriter(XPlaneBuilder* plane, int64_t line_id, const std::string& name,
             const std::function<int64_t(int64_t)>& clock, int64_t session_start_ns)
      : plane_(plane),
        line_(plane->GetOrCreateLine(line_id)),
        clock_(clock),
        session_start_ns_(session_start_ns) {
    line_.SetName(name);
  }

  XEventBuilder Add(const std::string& name, int64_t begin_ps, int64_t end_ps) {
    const int64_t shown_ps = clock_(begin_ps);
    if (line_.NumEvents() == 0) line_.SetTimestampNs(FloorToNs(shown_ps) - session_start_ns_);
    const int64_t base_ps = (session_start_ns_ + line_.TimestampNs()) * kPsPerNs;
    XEventBuilder event = line_.AddEvent(*plane_->GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan(shown_ps - base_ps, clock_(end_ps) - shown_ps));
    return event;
  }

 private:
  XPlaneBuilder* plane_;
  XLineBuilder line_;
  const std::function<int64_t(int64_t)>& clock_;
  const int64_t session_start_ns_;
};

class ProfileWriter {
 public:
  ProfileWriter(const SyntheticCluster& cluster, int64_t node, FileClocks clocks)
      : cluster_(cluster),
        node_(node),
        clocks_(std::move(clocks)),
        session_start_ps_(cluster.node(node).session_start_ps),
        session_start_ns_(FloorToNs(clocks_.host(session_start_ps_))) {}

  // Planes come when they are whole, in the order of real files.
  void Write(const PlaneSink& take) {
    take(Metadata());
    XPlaneProto host_plane = Plane(kHostThreadsPlaneName);
    XPlaneBuilder host(&host_plane);
    for (int64_t d = 0; d < cluster_.options().devices_per_node; ++d) take(Device(d, &host));
    take(std::move(host_plane));
    take(TaskEnvironment());
  }

 private:
  static XPlaneProto Plane(absl::string_view name) {
    XPlaneProto plane;
    plane.set_name(std::string(name));
    return plane;
  }

  XPlaneProto Metadata() {
    XPlaneProto proto = Plane(kMetadataPlaneName);
    XPlaneBuilder plane(&proto);
    XEventMetadataProto* entry =
        plane.GetOrCreateEventMetadata(absl::StrCat(kModule, "(", ProgramId(node_), ")"));
    XStatsBuilder<XEventMetadataProto> stats(entry, &plane);
    stats.AddBytesValue(*plane.GetOrCreateStatMetadata(StatType::kHloProto), StepModule(cluster_));
    stats.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kProgramId), ProgramId(node_));
    return proto;
  }

  XPlaneProto TaskEnvironment() {
    XPlaneProto proto = Plane(kTaskEnvPlaneName);
    XPlaneBuilder plane(&proto);
    const auto add = [&](StatType type, int64_t ns) {
      plane.AddStatValue(*plane.GetOrCreateStatMetadata(type),
                         static_cast<uint64_t>(cluster_.options().start_ns + ns));
    };
    add(StatType::kProfileStartTime, session_start_ns_);
    add(StatType::kProfileStopTime, FloorToNs(clocks_.host(cluster_.end_ps())));
    return proto;
  }

  // Returns the plane of a device; what its thread did goes to the host's.
  XPlaneProto Device(int64_t device, XPlaneBuilder* host) {
    XPlaneProto proto = Plane(absl::StrCat(kGpuPlanePrefix, device));
    XPlaneBuilder plane(&proto);
    LineWriter compute(&plane, 14, "Stream #14(Compute)", clocks_.tracer, session_start_ns_);
    LineWriter communication(&plane, 20, "Stream #20(Collective)", clocks_.tracer,
                             session_start_ns_);
    LineWriter thread(host, 1000 + device, "python3", clocks_.host, session_start_ns_);
    LineWriter driver(host, 2000 + device, absl::StrCat(kApiLinePrefix, 2000 + device),
                      clocks_.tracer, session_start_ns_);
    const int64_t rank = node_ * cluster_.options().devices_per_node + device;
    for (int64_t step = 0; step < cluster_.options().steps; ++step) {
      // The host is done with its launches when the first kernel starts.
      const size_t collectives = cluster_.options().collectives.size();
      const int64_t kernels = cluster_.options().compute_kernels;
      const int64_t launches = (kernels + 1) * static_cast<int64_t>(collectives);
      const int64_t begin_ps = cluster_.StepStartPs(step, rank) - (launches + 2) * kLaunchPs;
      const int64_t end_ps = cluster_.StepStartPs(step, rank) - kLaunchPs;
      if (IsRecorded(begin_ps)) AddExecution(step, rank, begin_ps, end_ps, host, &thread);
      int64_t launch_ps = begin_ps;
      const auto launch = [&](const std::string& op, const std::string& kernel) {
        ++correlation_id_;
        launch_ps += kLaunchPs;
        AddLaunch(op, kernel, launch_ps, host, &thread, &driver);
      };
      for (size_t c = 0; c < collectives; ++c) {
        const ClusterWork& work = cluster_.Work(step, c, rank);
        const int64_t kernel_ps = (work.start_ps - work.compute_start_ps) / kernels;
        for (int64_t k = 0; k < kernels; ++k) {
          const std::string fusion = FusionName(c, k);
          const int64_t start_ps = work.compute_start_ps + k * kernel_ps;
          launch(fusion, fusion);
          AddKernel(fusion, fusion, start_ps,
                    k + 1 == kernels ? work.start_ps : start_ps + kernel_ps, &plane, &compute);
        }
        const std::string op = ClusterInstruction(cluster_, c);
        const std::string kernel = NamesOf(cluster_.options().collectives[c].kind).kernel;
        launch(op, kernel);
        AddKernel(op, kernel, work.start_ps, work.end_ps, &plane, &communication);
      }
    }
    return proto;
  }

  // Profilers do not see what began before them.
  bool IsRecorded(int64_t begin_ps) const { return begin_ps >= session_start_ps_; }

  void AddExecution(int64_t step, int64_t rank, int64_t begin_ps, int64_t end_ps,
                    XPlaneBuilder* host, LineWriter* thread) {
    XEventBuilder execute = thread->Add(
        absl::StrCat("CommonPjRtLoadedExecutable::Execute (", kModule, ")"), begin_ps, end_ps);
    execute.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kRunId), ClusterRunId(step));
    XEventBuilder raw = thread->Add("PjRtStreamExecutorRawLoadedExecutable::Execute",
                                    begin_ps + kPsPerNs, end_ps - kPsPerNs);
    raw.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kReplica), int64_t{0});
    raw.AddStatValue(*host->GetOrCreateStatMetadata(StatType::kPartition), rank);
  }

  // A thunk around its launch, and the driver's call on a line of its own. The thunk starts when
  // the one before ends; its launch starts with it.
  void AddLaunch(const std::string& op, const std::string& kernel, int64_t begin_ps,
                 XPlaneBuilder* host, LineWriter* thread, LineWriter* driver) {
    if (!IsRecorded(begin_ps)) return;
    const int64_t end_ps = begin_ps + kLaunchPs;
    thread->Add(op, begin_ps, end_ps);
    const XStatMetadataProto& id = *host->GetOrCreateStatMetadata(StatType::kCorrelationId);
    thread->Add(kernel, begin_ps, end_ps - kLaunchPs / 2).AddStatValue(id, correlation_id_);
    XEventBuilder call = driver->Add("cuLaunchKernelEx", begin_ps, end_ps - kLaunchPs / 2);
    call.AddStatValue(id, correlation_id_);
    AddContext(host, &call);
  }

  void AddKernel(const std::string& op, const std::string& kernel, int64_t begin_ps, int64_t end_ps,
                 XPlaneBuilder* plane, LineWriter* stream) {
    if (!IsRecorded(begin_ps)) return;
    XEventBuilder event = stream->Add(kernel, begin_ps, end_ps);
    event.AddStatValue(*plane->GetOrCreateStatMetadata(StatType::kCorrelationId), correlation_id_);
    event.AddStatValue(*plane->GetOrCreateStatMetadata(StatType::kHloOp),
                       *plane->GetOrCreateStatMetadata(op));
    event.AddStatValue(*plane->GetOrCreateStatMetadata(StatType::kHloModule),
                       *plane->GetOrCreateStatMetadata(kModule));
    event.AddStatValue(*plane->GetOrCreateStatMetadata(StatType::kProgramId), ProgramId(node_));
    // What real files say besides, for its length.
    AddContext(plane, &event);
    event.AddStatValue(*plane->GetOrCreateStatMetadata("theoretical_occupancy_pct"), 62.5);
    event.AddStatValue(*plane->GetOrCreateStatMetadata("occupancy_min_grid_size"), int64_t{264});
    event.AddStatValue(*plane->GetOrCreateStatMetadata("occupancy_suggested_block_size"),
                       int64_t{1024});
    event.AddStatValue(
        *plane->GetOrCreateStatMetadata("kernel_details"),
        *plane->GetOrCreateStatMetadata("regs:32 static_shared:0 dynamic_shared:0 grid:264,1,1 "
                                        "block:1024,1,1 occ_pct:62.5"));
    event.AddStatValue(*plane->GetOrCreateStatMetadata("tf_op"),
                       *plane->GetOrCreateStatMetadata("jit(step)/reduce_sum"));
  }

  void AddContext(XPlaneBuilder* plane, XEventBuilder* event) {
    event->AddStatValue(*plane->GetOrCreateStatMetadata("scope_range_id"),
                        static_cast<int64_t>((int64_t{1} << 48) + correlation_id_));
    event->AddStatValue(*plane->GetOrCreateStatMetadata("context_id"), "$$1");
  }

  const SyntheticCluster& cluster_;
  const int64_t node_;
  const FileClocks clocks_;
  const int64_t session_start_ps_;
  // What the host clock shows then, from start_ns.
  const int64_t session_start_ns_;
  // Of the launch at hand.
  uint64_t correlation_id_ = 0;
};

XSpaceProto Profile(int64_t node, ProfileWriter writer) {
  XSpaceProto space;
  space.add_hostnames(ClusterHostName(node));
  writer.Write([&](XPlaneProto plane) { *space.add_planes() = std::move(plane); });
  return space;
}

ProfileWriter Recorder(const SyntheticCluster& cluster, int64_t node) {
  return ProfileWriter(
      cluster, node,
      {[&cluster, node](int64_t true_ps) { return cluster.HostPs(node, true_ps); },
       [&cluster, node](int64_t true_ps) { return cluster.FilePs(node, true_ps); }});
}

}  // namespace

void ForEachRecordedPlane(const SyntheticCluster& cluster, int64_t node, const PlaneSink& take) {
  Recorder(cluster, node).Write(take);
}

XSpaceProto RecordedProfile(const SyntheticCluster& cluster, int64_t node) {
  return Profile(node, Recorder(cluster, node));
}

XSpaceProto TrueProfile(const SyntheticCluster& cluster, int64_t node) {
  const auto identity = [](int64_t true_ps) { return true_ps; };
  return Profile(node, ProfileWriter(cluster, node, {identity, identity}));
}

std::string ClusterHostName(int64_t node) { return absl::StrCat("host-", node); }

int64_t ClusterRunId(int64_t step) { return 1000 + step; }

std::string ClusterInstruction(const SyntheticCluster& cluster, size_t collective) {
  return absl::StrCat(NamesOf(cluster.options().collectives[collective].kind).instruction, ".",
                      collective + 1);
}

}  // namespace meridian
