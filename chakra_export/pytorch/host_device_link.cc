#include "chakra_export/pytorch/host_device_link.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

// True for events that host traces have operators for.
bool IsHostOp(const EventTable& table, EventRow row) {
  const EventCategory category = table.category(row);
  const bool has_op = category == EventCategory::kCpuOp || category == EventCategory::kAnnotation ||
                      category == EventCategory::kStep;
  return has_op && table.track(table.track_id(row)).kind == TrackKind::kHost;
}

}  // namespace

HostDeviceLink LinkHostTrace(const HostTrace& host, const EventTable& table,
                             absl::string_view text) {
  HostDeviceLink link;
  link.op_of_row.assign(table.size(), kNoHostOp);
  link.row_of_op.assign(host.ops().size(), kNoRow);
  absl::flat_hash_map<uint64_t, HostOpIndex> op_of_id;
  for (HostOpIndex op = 0; op < host.ops().size(); ++op) {
    const uint64_t id = host.ops()[op].record_function_id;
    if (id != 0 && !host.IsStructural(op)) op_of_id.try_emplace(id, op);
  }
  for (EventRow row = 0; row < table.size(); ++row) {
    if (!IsHostOp(table, row)) continue;
    ++link.host_events;
    const std::optional<uint64_t> id =
        ReadTraceJsonArgs(text, table, row).Find("Record function id").AsUint64();
    const auto op = op_of_id.find(id.value_or(0));
    if (op == op_of_id.end() || host.name(op->second) != table.name(row)) continue;
    if (link.row_of_op[op->second] != kNoRow) continue;
    link.op_of_row[row] = op->second;
    link.row_of_op[op->second] = row;
    ++link.linked;
  }
  return link;
}

}  // namespace meridian
