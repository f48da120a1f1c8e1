// SPDX-License-Identifier: Apache-2.0
// What the symbol of a communication library's kernel says. communication_kernels.csv has the one
// table of patterns and kinds; users add rows of their own.
//
//   symbol                                                             kind
//   ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs<4096ul>)  all-reduce
//   ncclDevKernel_SendRecv(...)                                        by groups
//   ncclDevKernel_Generic_4(...)                                       nothing
//   void vllm::cross_device_reduce_1stage<float, 4>(...)               all-reduce
#ifndef XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
#define XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// How much of a user's table is read.
inline constexpr size_t kMaxKernelRows = 1000;
inline constexpr size_t kMaxKernelPattern = 1000;

// True for kernels that a row of the table matches. What they communicate is for HLO, annotations
// or args to say.
bool IsCommunicationKernel(absl::string_view kernel_name);

// Returns the kind of a communication kernel by its symbol; nullopt for other kernels, and for
// those that may do anything. Send and receive is how both all-to-all and permute run: with groups
// it is the former.
std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups);

// Puts rows in front of the table, for the whole process: call it before any profile is read. Each
// line of the text is `pattern,kind`: a regular expression (RE2) that is looked for anywhere in the
// symbol, and the name of a kind ("all-reduce"; "unknown" for kernels that may do anything). Empty
// lines and those that begin with # are left out. InvalidArgument names file and line.
absl::Status AddCommunicationKernels(absl::string_view text, absl::string_view file);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
