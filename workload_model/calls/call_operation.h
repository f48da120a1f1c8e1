// SPDX-License-Identifier: Apache-2.0
// What the names of calls mean.
#ifndef WORKLOAD_MODEL_CALLS_CALL_OPERATION_H_
#define WORKLOAD_MODEL_CALLS_CALL_OPERATION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// What a call does to the rank that makes it.
struct CallOperation {
  enum class Kind : uint8_t {
    // Does nothing that a network sees.
    kLocal,
    kCollective,
    kSend,
    kReceive,
    kSendReceive,
    // Goes on when all that was begun before has ended.
    kWait,
    // Nobody knows what it does.
    kUnknown,
  };
  Kind kind = Kind::kLocal;
  // What a collective does; that of other calls means nothing.
  CollectiveKind collective = CollectiveKind::kBarrier;
  // Whether the rank goes on before the call has ended.
  bool is_asynchronous = false;
  // Whether the bytes of the trace are those for one member of the group.
  bool is_per_member = false;
};

// Returns what "MPI_Allreduce" and "MPI_Isend" do, or "ALL_REDUCE" and "SEND" of Chakra traces.
CallOperation OperationOf(absl::string_view name);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_CALL_OPERATION_H_
