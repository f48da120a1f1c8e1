// SPDX-License-Identifier: Apache-2.0
// The dependencies of an XSpace.
#ifndef XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_XSPACE_H_
#define XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_XSPACE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Reads the synchronising calls of a table that LoadXSpace made from the reader: host events with
// the names of calls, their stats `device_id` and `stream`. XLA's profiler writes no events' ids,
// so that no wait for an event is resolved. Reads the file's host planes again if there is any
// call.
absl::StatusOr<std::vector<SyncCall>> ReadXSpaceSyncCalls(const XSpaceReader& reader,
                                                          const EventTable& table);

absl::StatusOr<DeviceDependencies> FindXSpaceDependencies(const XSpaceReader& reader,
                                                          const EventTable& table);

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_XSPACE_H_
