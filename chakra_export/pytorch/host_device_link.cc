#include "chakra_export/pytorch/host_device_link.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
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

absl::Status CheckLink(const HostTrace& host, const EventTable& table, const HostDeviceLink& link) {
  if (link.linked == 0) {
    return InvalidArgument(
        "no operator of it is in the profile; are they of one run? PyTorch 2.1 and later record "
        "the ids that both have in common");
  }
  for (const auto& [key, pid] : host.header()) {
    const absl::string_view process = pid.text();
    if (key != "pid" || absl::c_any_of(table.tracks(), [&](const Track& track) {
          return track.kind == TrackKind::kHost && track.process == process;
        })) {
      continue;
    }
    return InvalidArgument("it is of process ", Printable(process),
                           ", of which the profile shows nothing: they are of different ranks or "
                           "runs; give execution traces in the order of the profiles");
  }
  return absl::OkStatus();
}

}  // namespace meridian
