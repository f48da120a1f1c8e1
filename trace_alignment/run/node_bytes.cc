#include "trace_alignment/run/node_bytes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/clocks/node_clock.h"

namespace meridian {
namespace {

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
  bytes(session.profile_start_ns, session.profile_stop_ns, session.hostnames);
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
  std::string stated = node.stated.SerializeAsString();
  bytes(stated);
  node.stated.ParseFromString(stated);
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
  // By op: which of the different groups it has.
  std::vector<size_t> position;
  for (const CollectiveOp& op : ops) {
    const auto found = std::find(different.begin(), different.end(), op.groups);
    position.push_back(found - different.begin());
    if (found == different.end()) different.push_back(op.groups);
  }
  std::vector<GroupLists> lists(different.size());
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t g = 0; g < different[i].size(); ++g) {
      lists[i].emplace_back(different[i][g].begin(), different[i][g].end());
    }
  }
  bytes(position, lists);
  if (!bytes.unpacks()) return;
  different.clear();
  for (const GroupLists& groups : lists) {
    const auto [known, is_new] = known_groups_.try_emplace(groups);
    for (size_t g = 0; g < groups.size() && is_new; ++g) known->second.Add(groups[g]);
    different.push_back(known->second);
  }
  for (size_t op = 0; op < std::min(ops.size(), position.size()); ++op) {
    if (position[op] < different.size()) ops[op].groups = different[position[op]];
  }
}

void CollectivesPacker::Pack(PackedBytes& bytes, ProfileCollectives& profile) {
  std::vector<int64_t> devices = profile.assigned_devices;
  bytes(profile.trace, profile.base_ns, profile.ops, profile.events, profile.devices,
        profile.protocols, profile.stated_ranks, devices);
  PackGroups(bytes, profile.ops);
  if (!bytes.unpacks() || devices == last_devices_) return;
  profile.assigned_devices = last_devices_ = std::move(devices);
}

}  // namespace meridian
