// SPDX-License-Identifier: Apache-2.0
// What the symbol of a communication library's kernel says:
//
//   symbol                                                             kind         protocol
//   ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs<4096ul>)  all-reduce   RING_LL
//   ncclKernel_AllReduce_TREE_LL128_Sum_float(ncclDevComm*, ...)       all-reduce   TREE_LL128
//   ncclDevKernel_SendRecv(...)                                        by groups    nothing
//   ncclDevKernel_Generic_4(...)                                       nothing      nothing
//
// A kernel may do more than its name says (NCCL's RING_LL also runs LL128 and Simple): a change of
// name is a change of protocol, equal names say nothing.
#ifndef XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
#define XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// True for the kernels of NCCL and RCCL. What they communicate is for HLO, annotations or args to
// say.
bool IsCommunicationKernel(absl::string_view kernel_name);

// Returns the kind of a communication kernel by the function in its symbol; nullopt for other
// kernels. Send and receive is how both all-to-all and permute run: with groups it is the former.
std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups);

// Returns the words in capitals of the symbol; empty for kernels that name no protocol, for sends
// and receives, which have but one, and for what is no communication kernel.
std::string ProtocolOfKernel(absl::string_view kernel_name);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
