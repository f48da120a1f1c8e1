// SPDX-License-Identifier: Apache-2.0
// Loads an XSpace into an event table.
#ifndef XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_
#define XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct XSpaceTableOptions {
  // When the session began, for files that do not say it. Unix time.
  std::optional<int64_t> profile_start_ns;
};

struct XSpaceTable {
  EventTable table;
  // Events that are no rows: those that stand for several and have no start, those of negative
  // duration, and those more than 106 days from the session's start.
  uint64_t aggregated = 0;
  uint64_t negative_durations = 0;
  uint64_t out_of_range = 0;
};

// Makes a row of each event and a track of each line, in file order. The table's base is the
// session's start; without one in file or options this is FailedPrecondition. A track's process is
// its plane. Source offsets are XEventVisitor::FileOffset. Errors begin with the reader's name.
absl::StatusOr<XSpaceTable> LoadXSpace(const XSpaceReader& reader,
                                       const XSpaceTableOptions& options = {});

}  // namespace meridian

#endif  // XLA_PROFILER_EVENTS_EVENT_TABLE_XSPACE_H_
