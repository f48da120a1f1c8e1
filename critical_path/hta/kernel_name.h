// SPDX-License-Identifier: Apache-2.0
// How HTA shortens the names of kernels, and what it takes for communication.
#ifndef CRITICAL_PATH_HTA_KERNEL_NAME_H_
#define CRITICAL_PATH_HTA_KERNEL_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

// Returns the name without template arguments, parameters and return type, e.g. "at::f" for
// "void at::f<int>(float)". Names of copies and sets stay as they are.
std::string ShortenKernelName(absl::string_view name);

// True when HTA takes a kernel with this (shortened) name for communication: "nccl", "hip" or
// "hccl" in front or "ncclKernel" anywhere.
bool IsHtaCommunicationName(absl::string_view short_name);

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_KERNEL_NAME_H_
