// SPDX-License-Identifier: Apache-2.0
// What a trace file is, told by its first bytes, never by its name.
#ifndef XLA_PROFILER_TRACE_KIND_TRACE_KIND_H_
#define XLA_PROFILER_TRACE_KIND_TRACE_KIND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

enum class TraceKind {
  // A serialized XSpace, as JAX and TensorFlow profile.
  kXSpace,
  // Chrome trace JSON of PyTorch's profiler.
  kKineto,
  // Several ranks' Kineto traces in one, as combine writes them.
  kCombinedKineto,
  // Chrome trace JSON of others, e.g. of JAX.
  kTraceJson,
  // What ASTRA-sim runs: length-delimited messages.
  kChakraEt,
  // JSON of PyTorch's ExecutionTraceObserver.
  kPytorchEt,
  // JSON lines of NCCL Inspector.
  kInspector,
  kUnknown,
};

// Returns e.g. "a Kineto trace".
absl::string_view TraceKindText(TraceKind kind);

// Tells by the beginning of the inflated bytes. Nothing at all is an empty XSpace.
TraceKind TellTraceKind(absl::string_view beginning);

// The same for a file, plain or gzip, of which no more than the beginning is read. Errors name the
// path.
absl::StatusOr<TraceKind> TellTraceKind(FileSystem& file_system, const std::string& path);

// Returns what all of the files are. InvalidArgument that names two files when they are of different
// kinds, and for a kind that is not among those that are wanted: "kineto_0.json is a Kineto trace;
// expected an XSpace". What is not known is taken for one of the same kind as the others; if none is
// known, for an XSpace, if one is wanted. There is at least one file.
absl::StatusOr<TraceKind> TellOneTraceKind(FileSystem& file_system,
                                           const std::vector<std::string>& paths,
                                           const std::vector<TraceKind>& wanted);

// Returns the files without execution traces, without what viewers made and without logs of others,
// if some of them are XSpaces, Kineto traces or logs of NCCL Inspector; else all, for their readers
// to say what is wrong.
std::vector<std::string> KeepProfiles(FileSystem& file_system, std::vector<std::string> paths);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_KIND_TRACE_KIND_H_
