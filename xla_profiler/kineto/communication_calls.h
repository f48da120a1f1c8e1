// SPDX-License-Identifier: Apache-2.0
// The host's calls of collectives in a Kineto trace, which nest so:
//
//   c10d::allreduce_          the operator
//     record_param_comms      the call; its args describe it, in traces since 2024
//       nccl:all_reduce       the annotation, around the launch of the kernel
//
// and what their names, types and shapes mean.
#ifndef XLA_PROFILER_KINETO_COMMUNICATION_CALLS_H_
#define XLA_PROFILER_KINETO_COMMUNICATION_CALLS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// Returns the kind of a collective by the name that its args, annotation or operator have:
// "_allgather_base", "nccl:_all_gather_base", "c10d::_allgather_base_".
std::optional<CollectiveKind> KindOfCall(absl::string_view name);

// Returns nullopt when count or type (PyTorch's name, or that in C++) are not known or the product
// does not fit.
std::optional<int64_t> MessageBytes(std::optional<int64_t> elements, absl::string_view type);

// Returns the elements of all tensors of "Input Dims", e.g. [[8, 2], [4]] -> 20, or of the first
// alone. Nullopt when some are none, as lists of tensors are.
std::optional<int64_t> InputElements(const JsonValue& args, bool of_first);

// Which calls a batch (nccl:coalesced) consists of, and where calls launch their kernels. The table
// must outlive it.
class CommunicationCalls {
 public:
  explicit CommunicationCalls(const EventTable& table);

  // Returns operators, calls and annotations around the host's row, the innermost first.
  std::vector<EventRow> Around(EventRow launch) const;

  // Returns the batch in which the host's row lies, the last to begin; nullopt when it lies in
  // none.
  std::optional<EventRow> BatchOf(EventRow launch) const;

  // Returns the thread's calls since the batch before that one.
  absl::Span<const EventRow> CallsOf(EventRow batch) const;

 private:
  // Rows of one thread in order of their starts.
  struct Thread {
    std::vector<EventRow> batches;
    std::vector<EventRow> calls;
    // Calls, with their operators and annotations.
    std::vector<EventRow> spans;
  };

  // Returns the first of the rows that starts after that time.
  std::vector<EventRow>::const_iterator UpperBound(const std::vector<EventRow>& rows,
                                                   int64_t time_ps) const;

  const EventTable& table_;
  absl::flat_hash_map<TrackId, Thread> threads_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_COMMUNICATION_CALLS_H_
