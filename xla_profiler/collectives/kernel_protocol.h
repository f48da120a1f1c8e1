// How a communication library moved the data, as far as the symbol of its kernel says:
//
//   ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)    RING_LL
//   ncclKernel_AllReduce_TREE_LL128_Sum_float(ncclDevComm*, ...)                 TREE_LL128
//   ncclDevKernel_SendRecv(...), ncclDevKernel_Generic_4(...)                    nothing
//
// A kernel may do more than its name says (NCCL's RING_LL also runs LL128 and Simple): a change of
// name is a change of protocol, equal names say nothing.
#ifndef XLA_PROFILER_COLLECTIVES_KERNEL_PROTOCOL_H_
#define XLA_PROFILER_COLLECTIVES_KERNEL_PROTOCOL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

// Returns the words in capitals of the symbol; empty for kernels that name no protocol, for sends
// and receives, which have but one, and for what is no communication kernel.
std::string ProtocolOfKernel(absl::string_view kernel_name);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_KERNEL_PROTOCOL_H_
