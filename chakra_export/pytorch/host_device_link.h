// SPDX-License-Identifier: Apache-2.0
// Which operator of a host trace is which event of the profile (Kineto) of the same run. Both number
// the calls alike: the profile's "Record function id" is the host trace's rf_id.
#ifndef CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
#define CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_trace.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Row of what is no event.
inline constexpr EventRow kNoRow = std::numeric_limits<EventRow>::max();

struct HostDeviceLink {
  // The operator of each row of the table; kNoHostOp where there is none.
  std::vector<HostOpIndex> op_of_row;
  // The row of each operator; kNoRow where there is none.
  std::vector<EventRow> row_of_op;
  // How many events of the profile may be operators, and how many are.
  int64_t host_events = 0;
  int64_t linked = 0;
};

// A pair is linked only when the names are equal, too; of several events with one id the first is.
// The table must have been loaded from the text.
HostDeviceLink LinkHostTrace(const HostTrace& host, const EventTable& table,
                             absl::string_view text);

// Returns an error when nothing was linked, or the host trace names a process of which the profile
// shows nothing: ranks number their calls alike, so that ids and names do not tell them apart.
absl::Status CheckLink(const HostTrace& host, const EventTable& table, const HostDeviceLink& link);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
