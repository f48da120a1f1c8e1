// SPDX-License-Identifier: Apache-2.0
// Which operator of a host trace is which event of the profile (Kineto) of the same run, and which
// operator launched each piece of device work.
//
//   by Record function id   both number the calls alike (PyTorch 2.1 and later)
//   by External id          older profiles give the same number under this name
//   by op names             neither: the names that a thread called, in order and without a gap, are
//                           searched in what the profile's threads called (PyTorch 2.0)
//
// A pair is linked only when the names are equal, too. The first way by ids that links at least
// half of what it could is taken, else the way that links most.
#ifndef CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
#define CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_trace.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Row of what is no event.
inline constexpr EventRow kNoRow = std::numeric_limits<EventRow>::max();

enum class LinkMethod : uint8_t { kRecordFunctionId, kExternalId, kOpNames };

// Returns "rf_id", "external_id" or "op_names".
absl::string_view LinkMethodName(LinkMethod method);

struct HostDeviceLink {
  LinkMethod method = LinkMethod::kRecordFunctionId;
  // The operator of each row of the table; kNoHostOp where there is none.
  std::vector<HostOpIndex> op_of_row;
  // The row of each operator; kNoRow where there is none.
  std::vector<EventRow> row_of_op;
  // How many operators have a row, and how many operators and rows have no counterpart, by reason.
  int64_t linked = 0;
  std::map<std::string, int64_t> unlinked_ops;
  std::map<std::string, int64_t> unlinked_rows;
};

// The table must have been loaded from the text.
HostDeviceLink LinkHostTrace(const HostTrace& host, const EventTable& table,
                             absl::string_view text);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
