#include "xla_profiler/dependencies/device_dependencies_xspace.h"

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr absl::string_view kDeviceIdStatName = "device_id";

// Returns the stat's number, which may be given as text.
std::optional<int64_t> ReadNumber(const XStatVisitor& stat) {
  int64_t number = 0;
  if (absl::SimpleAtoi(stat.StrOrRefValue(), &number)) return number;
  return stat.IntOrUintValue();
}

void ReadStats(const XEventVisitor& event, SyncCall* sync) {
  for (const XStatVisitor& stat : event.Stats()) {
    if (stat.Type() == StatType::kStream) sync->stream = ReadNumber(stat);
    if (stat.Name() == kDeviceIdStatName) sync->device_id = ReadNumber(stat);
  }
}

}  // namespace

absl::StatusOr<std::vector<SyncCall>> ReadXSpaceSyncCalls(const XSpaceReader& reader,
                                                          const EventTable& table) {
  std::vector<SyncCall> syncs = FindSyncCalls(table);
  if (syncs.empty()) return syncs;
  absl::flat_hash_map<uint64_t, SyncCall*> sync_at_offset;
  for (SyncCall& sync : syncs) sync_at_offset[table.source_offset(*sync.call)] = &sync;
  const auto read_line = [&](const XLineVisitor& line) {
    return line.ForEachEvent([&](const XEventVisitor& event) {
      const auto it = sync_at_offset.find(event.FileOffset());
      if (it != sync_at_offset.end()) ReadStats(event, it->second);
    });
  };
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    if (absl::StartsWith(plane.Name(), kDevicePlanePrefix)) return absl::OkStatus();
    return plane.ForEachLine(read_line);
  }));
  return syncs;
}

absl::StatusOr<DeviceDependencies> FindXSpaceDependencies(const XSpaceReader& reader,
                                                          const EventTable& table) {
  ASSIGN_OR_RETURN(const std::vector<SyncCall> syncs, ReadXSpaceSyncCalls(reader, table));
  return FindDeviceDependencies(table, syncs);
}

}  // namespace meridian
