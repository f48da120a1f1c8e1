#include "xla_profiler/collectives/collective_collector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace meridian {

const HloCollective* CollectiveCollector::FindCollective(const HloProgram& program,
                                                         absl::string_view instruction) {
  const absl::StatusOr<const HloCollectives*> collectives = program.Collectives();
  if (!collectives.ok()) {
    AddUnresolved("program cannot be decoded", std::string(collectives.status().message()));
    return nullptr;
  }
  return (*collectives)->Find(instruction);
}

uint32_t CollectiveCollector::OpOf(const HloProgram& program, const HloCollective& collective) {
  const auto it = ops_.find(&collective);
  if (it != ops_.end()) return it->second;
  CollectiveOp op;
  op.kind = collective.kind;
  op.module = std::string(program.name());
  op.instruction = std::string(collective.instruction->name());
  const absl::StatusOr<absl::uint128> fingerprint = program.Fingerprint();
  if (fingerprint.ok()) op.program_fingerprint = *fingerprint;
  ReportProgram(program, collective);
  op.operand_bytes = collective.operand_bytes;
  op.output_bytes = collective.output_bytes;
  op.groups = collective.participants->device_groups;
  op.pairs = collective.participants->device_pairs;
  if (!collective.status.ok()) {
    AddUnresolved("bytes or groups of a collective cannot be told",
                  absl::StrCat(op.module, ": ", std::string(collective.status.message())));
  }
  const uint32_t index = AddOp(std::move(op));
  ops_.emplace(&collective, index);
  return index;
}

void CollectiveCollector::ReportProgram(const HloProgram& program,
                                        const HloCollective& collective) {
  if (!seen_programs_.insert(&program).second) return;
  const std::string name(program.name());
  if (collective.participants->devices_are_logical_ids) {
    AddUnresolved("program without device assignment, its logical ids are taken for device ids",
                  name);
  }
  const absl::StatusOr<absl::uint128> fingerprint = program.Fingerprint();
  if (!fingerprint.ok()) {
    AddUnresolved("program has no fingerprint", std::string(fingerprint.status().message()));
  }
  const absl::StatusOr<const HloModule*> module = program.Module();
  if (module.ok() && (*module)->num_problems() > 0) {
    AddUnresolved("program is damaged",
                  absl::StrCat(name, ": ", (*module)->num_problems(), " bad references"));
  }
}

uint32_t CollectiveCollector::AddOp(CollectiveOp op) {
  out_->ops.push_back(std::move(op));
  return static_cast<uint32_t>(out_->ops.size() - 1);
}

uint32_t CollectiveCollector::AddDevice(LocalDevice device) {
  out_->devices.push_back(std::move(device));
  return static_cast<uint32_t>(out_->devices.size() - 1);
}

uint32_t CollectiveCollector::HostDevice(int64_t slice, int64_t device_of_slice) {
  // Slices have fewer devices than this.
  constexpr int64_t kDevicesPerSlice = 1 << 20;
  if (out_->devices.empty()) {
    return AddDevice({absl::StrCat("slice ", slice, " device ", device_of_slice),
                      (slice & (kDevicesPerSlice - 1)) * kDevicesPerSlice +
                          (device_of_slice & (kDevicesPerSlice - 1))});
  }
  return static_cast<uint32_t>(static_cast<uint64_t>(device_of_slice) % out_->devices.size());
}

void CollectiveCollector::Finish() {
  for (CollectiveEvent& event : out_->events) {
    event.device = out_->devices[event.local_device].global_id;
  }
  LookUpGroups(out_);
  std::stable_sort(
      out_->events.begin(), out_->events.end(),
      [](const CollectiveEvent& a, const CollectiveEvent& b) { return a.start_ps < b.start_ps; });
  NumberOccurrences();
  ListAssignedDevices();
}

void CollectiveCollector::AddPiece(const CollectivePiece& piece) {
  if (piece.execution.has_value()) {
    const ExecutionKey key{piece.op, piece.local_device, piece.run_id.value_or(0),
                           piece.run_id.has_value(), *piece.execution};
    const auto [it, inserted] = executions_.emplace(key, out_->events.size());
    if (!inserted) {
      CollectiveEvent& first = out_->events[it->second];
      if (piece.start_ps < first.start_ps) {
        first.line_id = piece.line_id;
        first.correlation_id = piece.correlation_id;
      }
      first.start_ps = std::min(first.start_ps, piece.start_ps);
      first.end_ps = std::max(first.end_ps, piece.end_ps);
      ++first.kernels;
      return;
    }
  }
  out_->events.push_back(piece);
  out_->events.back().kernels = 1;
}

void CollectiveCollector::NumberOccurrences() {
  absl::flat_hash_map<std::tuple<uint32_t, int64_t, int64_t, bool>, uint32_t> counts;
  for (CollectiveEvent& event : out_->events) {
    event.occurrence = counts[{event.op, event.local_device, event.run_id.value_or(0),
                               event.run_id.has_value()}]++;
  }
}

void CollectiveCollector::ListAssignedDevices() {
  // The programs of large runs all name the same thousands of devices.
  absl::flat_hash_set<int64_t> devices;
  absl::flat_hash_set<absl::string_view> read;
  for (const HloProgram& program : programs_.programs()) {
    const absl::StatusOr<std::optional<absl::string_view>> bytes = program.FindDeviceAssignment();
    if (bytes.ok() && bytes->has_value() && !read.insert(**bytes).second) continue;
    const absl::StatusOr<std::optional<DeviceAssignment>> assignment =
        program.ReadDeviceAssignment();
    if (!assignment.ok()) {
      AddUnresolved("program whose devices cannot be told", std::string(program.name()));
    } else if (assignment->has_value()) {
      devices.insert((*assignment)->device_ids().begin(), (*assignment)->device_ids().end());
    }
  }
  out_->assigned_devices.assign(devices.begin(), devices.end());
  std::sort(out_->assigned_devices.begin(), out_->assigned_devices.end());
}

}  // namespace meridian
