#include "xla_profiler/kineto/device_dependencies_json.h"

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/dependencies/inferred_waits.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

// Returns what a cuda_sync event of that name tells about.
std::optional<DeviceDependencyKind> KinetoSyncKind(absl::string_view name) {
  if (name == "Stream Wait Event") return DeviceDependencyKind::kEventWait;
  if (name == "Event Sync") return DeviceDependencyKind::kEventSync;
  if (name == "Stream Sync") return DeviceDependencyKind::kStreamSync;
  if (name == "Context Sync") return DeviceDependencyKind::kDeviceSync;
  return std::nullopt;
}

// Kineto writes -1 for a stream that it does not know.
std::optional<int64_t> ReadStream(const JsonValue& args, absl::string_view key) {
  const std::optional<int64_t> stream = args.Find(key).AsInt64();
  return stream.value_or(-1) < 0 ? std::nullopt : stream;
}

SyncCall ReadCudaSync(DeviceDependencyKind kind, const JsonValue& args, const CallIndex& calls) {
  SyncCall sync;
  sync.kind = kind;
  sync.call = calls.Find(args.Find("correlation").AsUint64());
  sync.device_id = args.Find("device").AsInt64();
  sync.stream = ReadStream(args, "stream");
  sync.record = calls.Find(args.Find("wait_on_cuda_event_record_corr_id").AsUint64());
  sync.record_stream = ReadStream(args, "wait_on_stream");
  return sync;
}

}  // namespace

std::vector<SyncCall> ReadTraceJsonSyncCalls(absl::string_view text, const EventTable& table) {
  const CallIndex calls(table);
  std::vector<SyncCall> syncs;
  absl::flat_hash_set<EventRow> described;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kDeviceSync) continue;
    const std::optional<DeviceDependencyKind> kind = KinetoSyncKind(table.name(row));
    if (!kind.has_value()) continue;
    syncs.push_back(ReadCudaSync(*kind, ReadTraceJsonArgs(text, table, row), calls));
    if (syncs.back().call.has_value()) described.insert(*syncs.back().call);
  }
  for (SyncCall& sync : FindSyncCalls(table)) {
    if (described.contains(*sync.call)) continue;
    sync.stream = ReadStream(ReadTraceJsonArgs(text, table, *sync.call), "stream");
    syncs.push_back(sync);
  }
  return syncs;
}

DeviceDependencies FindTraceJsonDependencies(absl::string_view text, const EventTable& table) {
  const std::vector<SyncCall> sync_calls = ReadTraceJsonSyncCalls(text, table);
  DeviceDependencies dependencies = FindDeviceDependencies(table, sync_calls);
  AddInferredWaits(table, sync_calls, &dependencies);
  return dependencies;
}

}  // namespace meridian
