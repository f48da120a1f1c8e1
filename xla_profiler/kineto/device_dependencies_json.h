// SPDX-License-Identifier: Apache-2.0
// The dependencies of a Kineto trace.
#ifndef XLA_PROFILER_KINETO_DEVICE_DEPENDENCIES_JSON_H_
#define XLA_PROFILER_KINETO_DEVICE_DEPENDENCIES_JSON_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Reads the synchronising calls of a table that LoadTraceJson made from the text.
//
// Kineto describes them in events of category cuda_sync, which have the call's correlation id, the
// stream and, when it waits for an event, the record's stream and correlation id. Calls without
// one, because Kineto had not been told to write them or knew no work to wait for, are listed with
// what their own args tell: hardly ever the stream.
std::vector<SyncCall> ReadTraceJsonSyncCalls(absl::string_view text, const EventTable& table);

// Finds what the trace says, and infers the rest from times (inferred_waits.h).
DeviceDependencies FindTraceJsonDependencies(absl::string_view text, const EventTable& table);

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_DEVICE_DEPENDENCIES_JSON_H_
