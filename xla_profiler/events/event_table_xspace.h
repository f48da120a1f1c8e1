// SPDX-License-Identifier: Apache-2.0
// The event table of an XSpace.
#ifndef XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_
#define XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_

#include "absl/status/statusor.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Makes a row of each event and a track of each line that has any, in file order. Aggregated events
// have no time of their own and are left out. The base is the earliest line's Unix time
// (session_clock.h); a profile that does not say when it began has lines' times only, and its base
// is the earliest of these. InvalidArgument for times that lie further from it than picoseconds can
// tell, or events beyond kMaxRows.
absl::StatusOr<EventTable> LoadXSpace(const XSpaceReader& reader);

}  // namespace meridian

#endif  // XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_
