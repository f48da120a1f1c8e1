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
    // Nothing that a network sees.
    kLocal,
    kCollective,
    kSend,
    kReceive,
    kSendReceive,
    // Goes on when all that was begun before has ended.
    kWait,
    // Nobody knows.
    kUnknown,
  };
  Kind kind = Kind::kLocal;
  // Of collectives.
  CollectiveKind collective = CollectiveKind::kBarrier;
  // Whether the rank goes on before it has ended.
  bool is_asynchronous = false;
  // Bytes of the trace are those for one member of the group.
  bool is_per_member = false;
};

// Of "MPI_Allreduce", "MPI_Isend", or "ALL_REDUCE", "SEND" of Chakra traces.
CallOperation OperationOf(absl::string_view name);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_CALL_OPERATION_H_
