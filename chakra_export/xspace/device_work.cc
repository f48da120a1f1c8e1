#include "chakra_export/xspace/device_work.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "chakra_export/xspace/host_pace.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/sorted.h"
#include "xla_profiler/collectives/host_executions.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

// Returns how much a copy moves, of the profiler's "kind_src:pinned kind_dst:device size:4096 dest:0
// async:1"; 0 when that does not say.
int64_t CopiedBytes(absl::string_view details) {
  int64_t bytes = 0;
  for (absl::string_view field : absl::StrSplit(details, ' ', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&field, "size:") && absl::SimpleAtoi(field, &bytes)) {
      return std::max<int64_t>(0, bytes);
    }
  }
  return 0;
}

// The stream of asynchronous work on TPUs, whose lines have no such id.
constexpr int64_t kAsynchronousStream = -1;

class WorkReader {
 public:
  WorkReader(std::optional<int64_t> profile_start_ns, FileSystem& file_system,
             const std::string& temporary_directory, ProfileWork* out)
      : profile_start_ns_(profile_start_ns),
        file_system_(file_system),
        temporary_directory_(temporary_directory),
        out_(out) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(out_->reader));
    ASSIGN_OR_RETURN(clock_, SessionClock::Create(out_->reader.name(), info, profile_start_ns_));
    out_->base_ns = clock_->start_ns();
    ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> metadata,
                     out_->reader.FindPlane(kMetadataPlaneName));
    if (metadata.has_value()) out_->programs = HloModuleIndex(*metadata);
    RETURN_IF_ERROR(ReadHost());
    RETURN_IF_ERROR(out_->reader.ForEachPlane([&](const XPlaneVisitor& plane) {
      if (absl::StartsWith(plane.Name(), kGpuPlanePrefix)) return ReadGpuPlane(plane);
      if (absl::StartsWith(plane.Name(), kTpuPlanePrefix)) return ReadTpuPlane(plane);
      return absl::OkStatus();
    }));
    for (WorkingDevice& device : out_->devices) Sort(&device.work.elements());
    RETURN_IF_ERROR(AssignSteps());
    for (WorkingDevice& device : out_->devices) {
      device.work.Store(file_system_, temporary_directory_);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadHost() {
    ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> host,
                     out_->reader.FindPlane(kHostThreadsPlaneName));
    if (!host.has_value()) return absl::OkStatus();
    const auto read = [this](const XLineVisitor& line, uint32_t thread,
                             const XEventVisitor& event) { ReadHostEvent(line, thread, event); };
    const HostExecutions::Also also = {host_stats_, read};
    ASSIGN_OR_RETURN(executions_,
                     Annotate(HostExecutions::Read(*host, &also), out_->reader.name()));
    SortCalls();
    for (auto& [ordinal, device] : cpus_) {
      Sort(&device.work.elements());
      DropSurrounding("thunk that surrounds others", &device.work.elements());
      NumberThreads(&device.work.elements());
      out_->devices.push_back(std::move(device));
    }
    return absl::OkStatus();
  }

  // Calls nest; of those of one id the innermost comes last and is the launch itself.
  void SortCalls() {
    StableSortUnlessSorted(&read_calls_, [](const ReadCall& a, const ReadCall& b) {
      return a.correlation < b.correlation;
    });
    correlations_.reserve(read_calls_.size());
    std::vector<HostCall>& calls = out_->calls.elements();
    calls.reserve(read_calls_.size());
    for (size_t i = 0; i < read_calls_.size(); ++i) {
      const int64_t correlation = read_calls_[i].correlation;
      if (i + 1 < read_calls_.size() && read_calls_[i + 1].correlation == correlation) continue;
      correlations_.push_back(correlation);
      calls.push_back(read_calls_[i].call);
    }
    read_calls_ = std::vector<ReadCall>();
    out_->calls.Store(file_system_, temporary_directory_);
  }

  // Returns null when the profile does not hold the call. Work mostly has the next call of its thread.
  const HostCall* FindCall(int64_t correlation) {
    const auto is_at = [&](size_t i) {
      return i < correlations_.size() && correlations_[i] == correlation;
    };
    if (!is_at(call_hint_) && !is_at(++call_hint_)) {
      call_hint_ = absl::c_lower_bound(correlations_, correlation) - correlations_.begin();
    }
    return is_at(call_hint_) ? &out_->calls[call_hint_] : nullptr;
  }

  void ReadHostEvent(const XLineVisitor& line, uint32_t thread, const XEventVisitor& event) {
    if (event.IsAggregatedEvent()) return;
    DeviceWork work;
    if (const std::optional<int64_t> correlation =
            NumberOf(event.GetEventOrMetadataStat(StatType::kCorrelationId))) {
      if (!ReadTimes(line, event, &work)) return;
      const auto [name, is_new] =
          known_names_.try_emplace(event.Name(), static_cast<uint32_t>(out_->call_names.size()));
      if (is_new) out_->call_names.push_back(Keep(event.Name()));
      read_calls_.push_back({*correlation, {work.start_ps, work.end_ps, name->second, thread}});
      return;
    }
    const std::optional<int64_t> ordinal = NumberOf(event.GetStat(StatType::kDeviceOrdinal));
    DeviceOp said;
    said.hlo_op = TextOf(event.GetStat(StatType::kHloOp));
    if (!ordinal.has_value() || said.hlo_op.empty()) return;
    if (!ReadTimes(line, event, &work)) {
      Drop("times that cannot be true");
      return;
    }
    work.run_id = NumberOf(event.GetStat(StatType::kRunId));
    said.name = event.Name();
    said.stream = line.Id();
    said.kind = WorkKind::kThunk;
    work.op = OpOf(event, said);
    WorkingDevice& device = cpus_[*ordinal];
    device.name = absl::StrCat("CPU ", *ordinal);
    device.work.elements().push_back(work);
  }

  absl::Status ReadGpuPlane(const XPlaneVisitor& plane) {
    WorkingDevice device;
    device.name = std::string(plane.Name());
    size_t events = 0;
    RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) {
      events += line.NumEvents();
      // Other lines repeat the streams' events in other groupings.
      if (!absl::StartsWith(line.Name(), kStreamLinePrefix)) return absl::OkStatus();
      // Growing by copying would take three times the room.
      std::vector<DeviceWork>& work = device.work.elements();
      work.reserve(work.size() + line.NumEvents());
      return line.ForEachEvent(gpu_stats_, [&](const XEventVisitor& event) {
        if (const std::optional<DeviceWork> read = ReadGpuEvent(line, event)) {
          work.push_back(*read);
        }
      });
    }));
    if (events == 0) out_->idle_devices.push_back(device.name);
    if (device.work.size() > 0) out_->devices.push_back(std::move(device));
    return absl::OkStatus();
  }

  std::optional<DeviceWork> ReadGpuEvent(const XLineVisitor& line, const XEventVisitor& event) {
    DeviceWork work;
    if (!CanBeTimed(line, event, &work)) return std::nullopt;
    if (const std::optional<int64_t> correlation =
            NumberOf(event.GetEventOrMetadataStat(StatType::kCorrelationId))) {
      work.correlation = static_cast<uint32_t>(*correlation);
      work.call = FindCall(*correlation);
      if (const std::optional<HostLaunch> launch =
              executions_.FindLaunch(static_cast<uint64_t>(*correlation), &launch_hint_)) {
        work.run_id = launch->run_id;
      }
    }
    DeviceOp said;
    said.name = event.Name();
    said.stream = line.Id();
    said.hlo_op = TextOf(event.GetEventOrMetadataStat(StatType::kHloOp));
    if (const XStatVisitor* details = event.GetEventOrMetadataStat(StatType::kMemcpyDetails)) {
      said.kind = WorkKind::kMemcpy;
      said.copied_bytes = CopiedBytes(details->StrOrRefValue());
    } else if (event.GetEventOrMetadataStat(StatType::kMemsetDetails) != nullptr) {
      said.kind = WorkKind::kMemset;
    }
    said.in_command_buffer = event.GetEventOrMetadataStat(StatType::kCudaGraphId) != nullptr;
    work.op = OpOf(event, said);
    return work;
  }

  absl::Status ReadTpuPlane(const XPlaneVisitor& plane) {
    WorkingDevice device;
    device.name = std::string(plane.Name());
    RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) {
      if (line.Name() != kXlaOpsLineName) return absl::OkStatus();
      return line.ForEachEvent([&](const XEventVisitor& event) {
        DeviceWork work;
        if (!CanBeTimed(line, event, &work)) return;
        DeviceOp said;
        said.name = said.hlo_op = TpuInstruction(event.Metadata());
        said.stream = line.Id();
        DeviceOp* op = OpOf(event, said);
        const bool is_asynchronous = op->collective != nullptr && op->collective->done != nullptr;
        if (is_asynchronous) op->stream = kAsynchronousStream;
        work.op = op;
        device.work.elements().push_back(work);
      });
    }));
    if (device.work.size() == 0) return absl::OkStatus();
    Sort(&device.work.elements());
    DropSurrounding("op that surrounds others", &device.work.elements());
    out_->devices.push_back(std::move(device));
    return absl::OkStatus();
  }

  bool CanBeTimed(const XLineVisitor& line, const XEventVisitor& event, DeviceWork* work) {
    if (event.IsAggregatedEvent()) {
      Drop("aggregated event without a start");
      return false;
    }
    if (ReadTimes(line, event, work)) return true;
    Drop("times that cannot be true");
    return false;
  }

  bool ReadTimes(const XLineVisitor& line, const XEventVisitor& event, DeviceWork* work) const {
    return clock_->ReadTimes(line.Header(), event, &work->start_ps, &work->end_ps);
  }

  // Returns what an event ran, given what it says; the rest is found out once for all that say the
  // same.
  DeviceOp* OpOf(const XEventVisitor& event, DeviceOp said) {
    said.module = TextOf(event.GetEventOrMetadataStat(StatType::kHloModule));
    const auto [known, is_new] = known_ops_.try_emplace(
        OpKey(said.name.data(), said.name.size(), said.stream, said.module, said.hlo_op,
              NumberOf(event.GetEventOrMetadataStat(StatType::kProgramId)), said.copied_bytes,
              said.kind, said.in_command_buffer));
    if (!is_new) return known->second;
    known->second = &out_->ops.emplace_back(said);
    known->second->program = ProgramOf(event, out_->programs);
    if (known->second->program != nullptr) FindInstruction(known->second);
    for (absl::string_view* text :
         {&known->second->name, &known->second->module, &known->second->hlo_op}) {
      *text = Keep(*text);
    }
    return known->second;
  }

  absl::string_view Keep(absl::string_view text) {
    return out_->texts.Get(out_->texts.Intern(text));
  }

  static void FindInstruction(DeviceOp* op) {
    // Decoded here for all that follows, which may look at it from several threads.
    const absl::StatusOr<const HloModule*> module = op->program->Module();
    const absl::StatusOr<const HloCollectives*> collectives = op->program->Collectives();
    if (op->hlo_op.empty()) return;
    op->module = op->program->name();
    if (!module.ok() || !collectives.ok()) return;
    const HloCollective* collective = (*collectives)->Find(op->hlo_op);
    if (collective != nullptr) {
      op->instruction = collective->instruction;
      // Copies and fills prepare a collective under its name; they do not communicate.
      const bool communicates = op->kind == WorkKind::kKernel || op->kind == WorkKind::kThunk;
      if (communicates) op->collective = collective;
      op->prepares_collective = !communicates;
    } else {
      op->instruction = (*module)->FindInstruction(op->hlo_op);
    }
  }

  // Steps that the host marks hold the launches; those of devices hold the work itself.
  absl::Status AssignSteps() {
    ASSIGN_OR_RETURN(out_->steps, FindXSpaceSteps(out_->reader));
    const std::vector<StepEvent>& steps = out_->steps;
    if (steps.empty()) return absl::OkStatus();
    const StepSource source = steps[0].source;
    const bool on_host = source == StepSource::kAnnotation || source == StepSource::kHostModule;
    for (WorkingDevice& device : out_->devices) {
      for (DeviceWork& work : device.work.elements()) {
        const int64_t time_ps = on_host ? work.LaunchPs() : work.start_ps;
        const StepEvent* step = StepAt(steps, time_ps);
        if (step != nullptr) work.step = step->number;
      }
      MarkHostWaits(&device.work.elements());
    }
    return absl::OkStatus();
  }

  static void Sort(std::vector<DeviceWork>* work) {
    StableSortUnlessSorted(work, [](const DeviceWork& a, const DeviceWork& b) {
      // Of equal starts the longer first, so that it can surround the other.
      return std::make_tuple(a.start_ps, -a.end_ps) < std::make_tuple(b.start_ps, -b.end_ps);
    });
  }

  // Numbers the threads by their first work.
  void NumberThreads(std::vector<DeviceWork>* work) {
    absl::flat_hash_map<int64_t, int64_t> numbers;
    absl::flat_hash_map<const DeviceOp*, const DeviceOp*> numbered;
    for (DeviceWork& item : *work) {
      const auto [op, is_new] = numbered.try_emplace(item.op);
      if (is_new) {
        const auto next = static_cast<int64_t>(numbers.size());
        DeviceOp& copy = out_->ops.emplace_back(*item.op);
        copy.stream = numbers.emplace(copy.stream, next).first->second;
        op->second = &copy;
      }
      item.op = op->second;
    }
  }

  void Drop(const std::string& reason) { ++out_->dropped[reason]; }

  // Drops events that have others within them on their stream. `work` is in order.
  void DropSurrounding(const std::string& reason, std::vector<DeviceWork>* work) {
    absl::flat_hash_map<int64_t, std::vector<size_t>> open;
    std::vector<bool> surrounds(work->size(), false);
    for (size_t i = 0; i < work->size(); ++i) {
      std::vector<size_t>& stack = open[(*work)[i].op->stream];
      while (!stack.empty() && (*work)[stack.back()].end_ps <= (*work)[i].start_ps) {
        stack.pop_back();
      }
      if (!stack.empty() && (*work)[i].end_ps <= (*work)[stack.back()].end_ps) {
        surrounds[stack.back()] = true;
      }
      stack.push_back(i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < work->size(); ++i) {
      if (surrounds[i]) {
        Drop(reason);
      } else {
        (*work)[kept++] = (*work)[i];
      }
    }
    work->resize(kept);
  }

  // A call with its correlation id.
  struct ReadCall {
    int64_t correlation = 0;
    HostCall call;
  };
  // What decides on a DeviceOp. A name is in one place of the file, other texts may be in many.
  using OpKey = std::tuple<const char*, size_t, int64_t, absl::string_view, absl::string_view,
                           std::optional<int64_t>, int64_t, WorkKind, bool>;

  const StatSelection host_stats_{StatType::kCorrelationId, StatType::kDeviceOrdinal,
                                  StatType::kHloOp,         StatType::kHloModule,
                                  StatType::kProgramId,     StatType::kRunId};
  const StatSelection gpu_stats_{StatType::kCorrelationId, StatType::kMemcpyDetails,
                                 StatType::kMemsetDetails, StatType::kCudaGraphId,
                                 StatType::kHloOp,         StatType::kHloModule,
                                 StatType::kProgramId};
  const std::optional<int64_t> profile_start_ns_;
  FileSystem& file_system_;
  const std::string& temporary_directory_;
  ProfileWork* out_;
  std::optional<SessionClock> clock_;
  HostExecutions executions_;
  size_t launch_hint_ = 0;
  std::vector<ReadCall> read_calls_;
  // By position in ProfileWork::calls.
  std::vector<int64_t> correlations_;
  size_t call_hint_ = 0;
  absl::flat_hash_map<absl::string_view, uint32_t> known_names_;
  absl::flat_hash_map<OpKey, DeviceOp*> known_ops_;
  // The devices of a CPU by ordinal, which is the global device id.
  std::map<int64_t, WorkingDevice> cpus_;
};

}  // namespace

void ProfileWork::Forget() const {
  reader.Forget(reader.source().bytes);
  calls.Forget();
  for (const WorkingDevice& device : devices) device.work.Forget();
}

absl::StatusOr<std::unique_ptr<ProfileWork>> ReadDeviceWork(
    XSpaceReader reader, std::optional<int64_t> profile_start_ns, FileSystem& file_system,
    const std::string& temporary_directory) {
  auto profile = std::make_unique<ProfileWork>(std::move(reader));
  RETURN_IF_ERROR(
      WorkReader(profile_start_ns, file_system, temporary_directory, profile.get()).Run());
  profile->Forget();
  return profile;
}

// Profiles of so many bytes are read one at a time: while its work is read, one takes about as much
// memory as its file.
constexpr size_t kLargeProfile = size_t{256} << 20;

absl::StatusOr<ProfiledRun> ReadProfiledRun(FileSystem& file_system,
                                            const std::vector<std::string>& traces,
                                            const ProfiledRunOptions& options) {
  // By file: its nodes.
  struct Node {
    ProfileCollectives collectives;
    std::unique_ptr<ProfileWork> work;
  };
  std::vector<std::vector<Node>> files(traces.size());
  const bool are_known = options.collectives != nullptr && !options.collectives->profiles.empty();
  std::mutex of_large;
  const auto read_file = [&](size_t i) -> absl::Status {
    std::optional<int64_t> start_ns;
    if (i < options.profile_starts_ns.size()) start_ns = options.profile_starts_ns[i];
    const auto read = [&](XSpaceReader reader) -> absl::Status {
      std::unique_lock<std::mutex> lock(of_large, std::defer_lock);
      if (reader.source().bytes.size() >= kLargeProfile) lock.lock();
      ProfileCollectives collectives;
      if (!are_known) {
        ASSIGN_OR_RETURN(collectives, ReadXSpaceCollectives(reader, {start_ns}));
      }
      ASSIGN_OR_RETURN(std::unique_ptr<ProfileWork> work,
                       ReadDeviceWork(std::move(reader), start_ns, file_system,
                                      options.reader.input.temporary_directory));
      files[i].push_back({std::move(collectives), std::move(work)});
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(XSpaceReader reader,
                     XSpaceReader::Open(file_system, traces[i], options.reader));
    ASSIGN_OR_RETURN(std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
    if (start_ns.has_value() && !nodes.empty()) {
      return InvalidArgument(traces[i],
                             ": is a combined file, which says when each of its sessions began");
    }
    if (!start_ns.has_value() && nodes.empty() && options.start_may_be_unknown) {
      ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
      start_ns = info.profile_start_ns.value_or(0);
    }
    for (NodeProfile& node : nodes) RETURN_IF_ERROR(read(std::move(node.reader)));
    if (nodes.empty()) RETURN_IF_ERROR(read(std::move(reader)));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ParallelFor(traces.size(), read_file, options.progress));
  ProfiledRun run;
  std::vector<ProfileCollectives> collectives;
  for (std::vector<Node>& nodes : files) {
    for (Node& node : nodes) {
      collectives.push_back(std::move(node.collectives));
      run.profiles.push_back(std::move(node.work));
    }
  }
  if (are_known) {
    run.collectives = std::exchange(*options.collectives, {});
  } else {
    ASSIGN_OR_RETURN(run.collectives, MatchCollectives(std::move(collectives), options.ranks));
  }
  return run;
}

}  // namespace meridian
