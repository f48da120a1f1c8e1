// SPDX-License-Identifier: Apache-2.0
// Which operator of a host trace is which event of the profile (Kineto) of the same run, and which
// operator launched each piece of device work.
//
//   by Record function id   both number the calls alike (PyTorch 2.1 and later)
//   by External id          older profiles give the same number under this name
//   by op names             neither: the names that a thread called, in order, are searched in what
//                           the profile's threads called; else their longest common subsequence
//
// A pair is linked only when the names are equal, too. The first way by ids that links at least
// half of what it could is taken, else the way that links most.
#ifndef CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
#define CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
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

// The names that a thread called, as numbers, in order.
using CalledNames = std::vector<uint64_t>;

struct ThreadMatch {
  // Positions of the two threads among those of their recording.
  size_t a = 0;
  size_t b = 0;
  // Positions of the calls that are the same, ascending in both threads.
  std::vector<std::pair<size_t, size_t>> calls;
};

// Comparing each with each takes this many pairs of threads at most.
inline constexpr size_t kMaxThreadPairs = 1'000'000;

// Says which thread of one recording is which of another, told by what they called.
//
// Two threads share the whole of the one that called less where that stands in the other as it is,
// else their longest common subsequence. The pair that shares most is matched first, of equal ones
// the first; then what is left. Threads that share nothing are in no match.
//
// Threads whose calls differ much are costly to compare. All that is compared is limited to some
// 1,000 steps for each call, of which *steps, where given, is told how many it took: the more threads
// there are, the fewer calls may differ, and pairs for which too few steps are left are not compared.
// There may be kMaxThreadPairs at most.
std::vector<ThreadMatch> MatchThreads(absl::Span<const CalledNames> a,
                                      absl::Span<const CalledNames> b, int64_t* steps = nullptr);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_HOST_DEVICE_LINK_H_
