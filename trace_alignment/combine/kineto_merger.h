// SPDX-License-Identifier: Apache-2.0
// The Kineto traces of a run's ranks as one document, on one clock, for Perfetto and chrome://tracing:
//
//   process "rank 3 host7 (6069)"   with the threads of that process
//   process "rank 3 GPU 0"          with the streams of that device
//
// Processes and devices of different ranks have the same numbers, and so have their arrows: both are
// made unique. All else of an event stays as it is.
#ifndef TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_
#define TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

struct KinetoMergeInput {
  absl::string_view text;
  // What its times count from, Unix time.
  int64_t base_ns = 0;
  const NodeClock* clock = nullptr;
  int64_t rank = 0;
  // Of the host; empty when it is not known.
  std::string hostname;
};

// Writes the traces one after the other; times count from the first one's base. Returns what was
// done to each. Tells how many bytes of all texts are done; `progress` may be null. Errors are those
// of RewriteTraceJson.
absl::StatusOr<std::vector<AlignmentStats>> MergeKineto(
    absl::Span<const KinetoMergeInput> inputs, const std::function<void(uint64_t bytes)>& progress,
    ByteSink& sink);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_
