// SPDX-License-Identifier: Apache-2.0
// Kineto traces on another clock. All times of such a trace are of one host clock: Kineto maps those
// of devices there itself. Starts and durations of events are replaced, to the nanosecond, and a
// member kAlignedClockKey comes first; every other byte stays, so that whoever reads Kineto's files
// reads these.
#ifndef TRACE_ALIGNMENT_ALIGNER_KINETO_ALIGNER_H_
#define TRACE_ALIGNMENT_ALIGNER_KINETO_ALIGNER_H_

#include <cstdint>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/trace_json/trace_json_rewriter.h"

namespace meridian {

// Returns the nearest whole number of nanoseconds, as times are written; nullopt when it does not
// fit.
std::optional<int64_t> WrittenNs(absl::int128 ps);

// A member of traces that were put on a common clock; viewers ignore it.
inline constexpr absl::string_view kAlignedClockKey = "alignedClock";

// Moves the times of one trace's events, one after the other.
class KinetoEventAligner {
 public:
  // The trace's times count from base_ns (its baseTimeNanoseconds, Unix time), the new ones from
  // new_base_ns. The clock must outlive this object.
  KinetoEventAligner(const NodeClock& clock, int64_t base_ns, int64_t new_base_ns);

  // Adds the edits that move the event. What lies 106 days or more from the run stays where it is.
  void Edit(const WrittenEvent& event, EventEdits* edits);

  // What was done so far. There are no lines.
  AlignmentStats TakeStats() const;

 private:
  // Returns the new time in whole nanoseconds from new_base_ns; nullopt when it is out of range.
  std::optional<int64_t> NewNs(absl::int128 time_ps);

  LineClock line_;
  // From the run's base to the old one, and from the new one to the run's.
  const absl::int128 base_in_run_ps_;
  const absl::int128 run_in_new_base_ps_;
  AlignmentStats stats_;
};

// Writes the trace on the other clock, and that it is. Its base stays. A trace that is a mere list of
// events has no place to say so. Errors are those of RewriteTraceJson.
absl::StatusOr<AlignmentStats> AlignKineto(absl::string_view text, int64_t base_ns,
                                           const NodeClock& clock, ByteSink& sink);

// InvalidArgument that names the trace when an event lies further outside the offsets.
absl::Status CheckExtrapolation(const AlignmentStats& stats, absl::string_view trace,
                                int64_t max_extrapolation_ns);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_KINETO_ALIGNER_H_
