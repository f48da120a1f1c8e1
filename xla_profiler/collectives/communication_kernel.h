#ifndef XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
#define XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace meridian {

// True for the kernels of NCCL and RCCL. What they communicate is for HLO, annotations or args to
// say.
inline bool IsCommunicationKernel(absl::string_view kernel_name) {
  return absl::StartsWithIgnoreCase(kernel_name, "nccl") ||
         absl::StartsWithIgnoreCase(kernel_name, "rccl");
}

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COMMUNICATION_KERNEL_H_
