// Any bytes as a Kineto trace: its events and collectives do not end before they start.
#include "absl/status/statusor.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<TraceJsonTable> trace = LoadTraceJson(bytes, "fuzz.json");
  if (!trace.ok()) return absl::OkStatus();
  for (EventRow row = 0; row < trace->table.size(); ++row) {
    ReadTraceJsonArgs(bytes, trace->table, row);
  }
  for (const CollectiveEvent& event : ReadKinetoCollectives(*trace, bytes, "fuzz.json").events) {
    if (event.end_ps < event.start_ps)
      return absl::InternalError("a collective of negative length");
  }
  return absl::OkStatus();
}
