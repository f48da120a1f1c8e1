#include "trace_alignment/run/node_bytes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/clocks/node_clock.h"

namespace meridian {
namespace {

// Packs ids as runs of equal steps (first, step, count): mostly one for all ranks of a run.
void PackIds(PackedBytes& bytes, absl::Span<const int64_t> ids) {
  std::vector<int64_t> runs;
  for (size_t i = 0; i < ids.size();) {
    const int64_t step = i + 1 < ids.size() ? ids[i + 1] - ids[i] : 0;
    int64_t count = 1;
    while (i + count < ids.size() && ids[i + count] - ids[i + count - 1] == step) ++count;
    runs.insert(runs.end(), {ids[i], step, count});
    i += count;
  }
  bytes(runs);
}

std::vector<int64_t> UnpackIds(PackedBytes& bytes) {
  std::vector<int64_t> runs;
  std::vector<int64_t> ids;
  bytes(runs);
  for (size_t r = 0; r + 2 < runs.size(); r += 3) {
    const int64_t count = std::clamp<int64_t>(runs[r + 2], 0, kMaxGroupIds);
    for (int64_t i = 0; i < count; ++i) ids.push_back(runs[r] + i * runs[r + 1]);
  }
  return ids;
}

std::string GroupBytes(const IdGroups& groups) {
  PackedBytes packed;
  for (size_t g = 0; g < groups.size(); ++g) PackIds(packed, groups[g]);
  return packed.bytes();
}

IdGroups GroupsOf(size_t count, const std::string& packed) {
  IdGroups groups;
  PackedBytes bytes(packed);
  for (size_t g = 0; g < count; ++g) groups.Add(UnpackIds(bytes));
  return groups;
}

void PackMap(PackedBytes& bytes, std::optional<ClockMap>& map) {
  bool has_map = map.has_value();
  bytes(has_map);
  if (bytes.unpacks()) map.reset();
  if (!has_map) return;
  if (bytes.unpacks()) map = ClockMap::Identity();
  map->Pack(bytes);
}

}  // namespace

void Pack(PackedBytes& bytes, SessionInfo& session) {
  bytes(session.profile_start_ns, session.profile_stop_ns, session.process_id, session.hostnames);
}

void Pack(PackedBytes& bytes, SnapshotBracket& bracket) {
  bytes(bracket.sys_before_ns, bracket.sys_after_ns);
}

void Pack(PackedBytes& bytes, SnapshotPair& pair) {
  bytes(pair.sys_ns, pair.tracer_ns, pair.bracket);
}

void Pack(PackedBytes& bytes, SnapshotPairs& snapshots) {
  bytes(snapshots.pairs, snapshots.node_id, snapshots.identical_dropped);
}

void Pack(PackedBytes& bytes, AlignedNode& node) {
  int64_t base_ns = node.clock.run.base_ns();
  bytes(base_ns);
  node.clock.run = RunClock(base_ns);
  PackMap(bytes, node.clock.tracer_to_host);
  PackMap(bytes, node.clock.host_to_reference);
  PackMap(bytes, node.clock.reference_to_target);
  bytes(node.method, node.offset_at_ns, node.offset_ns, node.uncertainty_ns,
        node.uncertainty_max_ns, node.certified_uncertainty_ns, node.drift_ppm,
        node.drift_uncertainty_ppm);
}

void Pack(PackedBytes& bytes, SourceTargetPair& pair) { bytes(pair.source, pair.target); }

// Without groups, which ops share.
void Pack(PackedBytes& bytes, CollectiveOp& op) {
  bytes(op.kind, op.module, op.instruction, op.program_fingerprint, op.operand_bytes,
        op.output_bytes, op.pairs);
}

void Pack(PackedBytes& bytes, CollectiveEvent& event) {
  // The end as a duration is short.
  int64_t duration_ps = event.end_ps - event.start_ps;
  bytes(event.op, event.local_device, event.device, event.group, event.run_id, event.occurrence,
        event.step, event.start_ps, duration_ps, event.line_id, event.correlation_id, event.kernels,
        event.protocol);
  event.end_ps = event.start_ps + duration_ps;
}

void Pack(PackedBytes& bytes, LocalDevice& device) { bytes(device.name, device.global_id); }

void CollectivesPacker::PackGroups(PackedBytes& bytes, std::vector<CollectiveOp>& ops) {
  std::vector<IdGroups> different;
  std::vector<size_t> position;
  for (const CollectiveOp& op : ops) {
    const auto found = std::find(different.begin(), different.end(), op.groups);
    position.push_back(found - different.begin());
    if (found == different.end()) different.push_back(op.groups);
  }
  bytes(position);
  size_t count = different.size();
  bytes(count);
  for (size_t i = 0; i < count; ++i) {
    size_t size = bytes.unpacks() ? 0 : different[i].size();
    std::string packed = bytes.unpacks() ? "" : GroupBytes(different[i]);
    bytes(size, packed);
    if (!bytes.unpacks()) continue;
    const auto [known, is_new] = known_groups_.try_emplace(packed);
    if (is_new) known->second = GroupsOf(size, packed);
    for (size_t op = 0; op < std::min(ops.size(), position.size()); ++op) {
      if (position[op] == i) ops[op].groups = known->second;
    }
  }
}

void CollectivesPacker::Pack(PackedBytes& bytes, ProfileCollectives& profile) {
  bytes(profile.trace, profile.base_ns, profile.ops, profile.events, profile.devices,
        profile.protocols, profile.stated_ranks);
  PackGroups(bytes, profile.ops);
  PackedBytes devices;
  PackIds(devices, profile.assigned_devices);
  std::string packed = devices.bytes();
  bytes(packed);
  if (!bytes.unpacks() || packed == last_devices_) return;
  PackedBytes received(packed);
  profile.assigned_devices = UnpackIds(received);
  last_devices_ = std::move(packed);
}

}  // namespace meridian
