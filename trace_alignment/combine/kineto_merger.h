// SPDX-License-Identifier: Apache-2.0
// The Kineto traces of a run's ranks as one document, on one clock, for Perfetto and chrome://tracing:
//
//   process "rank 3 host7 python3 (6069)"   with the threads of that process
//   process "rank 3 host7 GPU 0"            with the streams of that device
//
// Processes and devices of different ranks have the same numbers, and so have their arrows: both are
// made unique. Processes are in the order of ranks, each rank's own as its trace has them; those
// without an event are left out. All else of an event stays as it is.
//
// What Perfetto would drop is not written: times are not negative, and of an arrow the start comes
// before the end, and both behind the slices that they join.
#ifndef TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_
#define TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
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
  // When its first slice starts, Unix time; absent when it has none.
  std::optional<int64_t> first_ns = std::nullopt;
};

// An arrow between kernels of two ranks, which overlap at that time.
struct KinetoArrow {
  struct End {
    // Position of the rank's input.
    size_t input = 0;
    // The kernel's pid and tid.
    int64_t device = 0;
    int64_t stream = 0;
  };

  End from;
  End to;
  // When the arrow is drawn, and when the kernel that it leads to ends: common clock, in ps from the
  // run base.
  int64_t time_ps = 0;
  int64_t to_end_ps = 0;
  absl::string_view name;
};

// Calls back for each arrow.
using VisitArrow = absl::FunctionRef<absl::Status(const KinetoArrow&)>;
using ForEachArrow = absl::FunctionRef<absl::Status(VisitArrow)>;
inline absl::Status NoArrows(VisitArrow) { return absl::OkStatus(); }

// Returns a Unix time from which no event of the traces has a negative time on the common clock, nor
// one that a double does not tell to the nanosecond.
int64_t EarliestBase(absl::Span<const KinetoMergeInput> inputs);

// Writes the traces one after the other, then the arrows; times count from base_ns, Unix time.
// Returns what was done to each trace. Tells how many bytes of all texts are done; `progress` may be
// null. Errors are those of RewriteTraceJson.
absl::StatusOr<std::vector<AlignmentStats>> MergeKineto(
    absl::Span<const KinetoMergeInput> inputs, ForEachArrow for_each_arrow, int64_t base_ns,
    const std::function<void(uint64_t bytes)>& progress, ByteSink& sink);

// A file of an archive for Perfetto.
struct ArchivedTrace {
  // Its name in the archive.
  std::string name;
  // What Perfetto shows its processes under, e.g. "rank 3 host7".
  std::string machine;
};

// Returns what tells Perfetto 58 and later how to show the files of an archive together:
// https://perfetto.dev/docs/reference/perfetto-manifest. Their times must count from one base.
std::string PerfettoManifest(absl::Span<const ArchivedTrace> traces);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_KINETO_MERGER_H_
