// SPDX-License-Identifier: Apache-2.0
// A trace source: what PyTorch's profiler writes in Perfetto's format when export_chrome_trace gets
// a path with ".pftrace" in it. Nothing in the file says so, but the order of its packets:
//
//   clock snapshot             of newer versions: BOOTTIME and REALTIME show the same
//   track descriptors          processes and threads, numbered 1, 2, 3, ... without a sequence
//   interned data              sequence 1: all names, categories and stages, numbered from 1
//   begins, as many ends, ...  slices in groups; ends in the order of begins, whatever nests
//   render stages              kernels, copies, memsets and annotations of streams
//
// Times are Unix nanoseconds. Each file becomes the events that PyTorch would write to JSON, but no
// arrows and launch sizes. Where slices have no category, arguments and names tell it. The rank is
// what calls of collectives tell, but rooted ones and messages, else what the file's name tells.
#ifndef XLA_PROFILER_PERFETTO_TRACES_PERFETTO_TRACES_H_
#define XLA_PROFILER_PERFETTO_TRACES_PERFETTO_TRACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

enum class PerfettoWriter { kNone, kPytorch, kOther };

// Returns who wrote a trace in Perfetto's format; kNone for other formats.
PerfettoWriter TellPerfettoWriter(absl::string_view head);

class PerfettoSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a Perfetto trace of PyTorch"; }
  std::vector<absl::string_view> suffixes() const override { return {".pftrace"}; }
  bool Detect(const FileHead& head) const override {
    return TellPerfettoWriter(head.bytes()) == PerfettoWriter::kPytorch;
  }
  absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                   const ConversionOptions& options,
                                                   WriteFunction write) const override;
};

}  // namespace meridian

#endif  // XLA_PROFILER_PERFETTO_TRACES_PERFETTO_TRACES_H_
