// SPDX-License-Identifier: Apache-2.0
// Moves the lines of one profile to the target clock: starts, ends and bases, with order and
// nesting kept. A clock map is increasing, so these survive by themselves up to rounding and
// repaired stretches; a guard makes it certain:
//
//   in the order (start ascending, duration descending), of the times before:
//     an event never starts before its predecessor does, equal starts stay equal,
//     and a child stays inside its parent
#ifndef TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_
#define TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_rewriter.h"

namespace meridian {

class AlignmentStats;

struct LineAlignerOptions {
  // The node that errors name.
  int64_t node_id = 0;
  // Make every start later than its predecessor's, instead of keeping the order and nesting that
  // the file has.
  bool strict_monotonic = false;
  // Keep the events' original times as stats.
  bool keep_original = false;
  // An event farther outside the snapshot pairs or offsets than this is an error.
  int64_t max_extrapolation_ns = 60000000000;
};

// Ids of the stats that hold an event's original times.
struct OriginalTimesStats {
  int64_t start = 0;
  int64_t duration = 0;
  int64_t correction = 0;
};
OriginalTimesStats DefineOriginalTimesStats(PlaneAdditions* plane);

// An event on the clock it was mapped to, in ps from the run base.
struct MappedEvent {
  int64_t start_ps = 0;
  int64_t end_ps = 0;

  friend bool operator==(const MappedEvent& a, const MappedEvent& b) {
    return a.start_ps == b.start_ps && a.end_ps == b.end_ps;
  }
};

// An event before and after it was mapped.
struct PlacedEvent {
  Timespan before;
  MappedEvent mapped;
};

// Clamps the mapped events of one line, or of a part of it, so that they keep the order and nesting of
// `before` (one each, in any order). Returns how many were changed. Linear for lines that are in order.
// `open` is empty at the beginning of a line; then it holds the last event in the order above, and
// before it those around it, outermost first, for the next part.
int64_t KeepOrderAndNesting(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped,
                            std::vector<PlacedEvent>* open);

// Moves each start that is not later than its predecessor's to one nanosecond after it, durations
// kept. Returns how many were moved. Of `open` only the last event counts.
int64_t MakeStrictlyIncreasing(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped,
                               std::vector<PlacedEvent>* open);

// Room for the events of a part of a line that have a start, before and after they are mapped, in ps
// from the run base. Aligners that take turns share it: the memory of long parts is costly to get
// anew.
struct AlignedEvents {
  std::vector<Timespan> before;
  std::vector<MappedEvent> mapped;
};

// Returns the Unix time, rounded down, that a time of the node's host clock becomes.
absl::StatusOr<int64_t> MapHostTime(const NodeClock& node, int64_t unix_ns);

// Returns the Unix time, rounded down, that the base of one of the node's lines becomes.
absl::StatusOr<int64_t> MapLineBase(const SessionClock& clock, const NodeClock& node,
                                    absl::string_view plane_name, const XLineHeader& line);

class LineAligner {
 public:
  // `clock`, `node` and `room` must outlive this. `new_start_ns` is the start that the new line
  // bases count from, Unix time.
  LineAligner(const SessionClock& clock, const NodeClock& node, int64_t new_start_ns,
              const LineAlignerOptions& options, AlignedEvents* room);
  ~LineAligner();

  // Changes the times of a part of the line as an XSpaceEditor does. `stats` are where the original times go;
  // absent when these are not kept.
  absl::Status EditLine(absl::string_view plane_name, const XLineHeader& line, RewritePass pass,
                        const std::optional<OriginalTimesStats>& stats, LineEdit* edit);

  // What was done to the lines so far.
  const AlignmentStats& stats() const { return *stats_; }

 private:
  // How many events of the part at hand lie outside the snapshot pairs, lie outside the offsets, are
  // clamped or in a repaired stretch, and have times that no clock can show.
  struct Remarks {
    int64_t snapshots = 0;
    int64_t offsets = 0;
    int64_t clamped = 0;
    int64_t without_time = 0;
  };

  void MapEvents(int64_t base_ps, LineClock& clock, const std::vector<EventTimes>& times);
  void CountWithoutTime(int64_t events);
  void Count(const LineClock& clock, const LineEdit& edit);
  absl::Status CheckExtrapolation(absl::string_view plane_name, const XLineHeader& line,
                                  const LineClock& clock) const;
  void KeepOriginals(const XLineHeader& line, const OriginalTimesStats& stats,
                     LineEdit* edit) const;
  absl::Status WriteTimes(const XLineHeader& line, int64_t new_base_ns, LineEdit* edit) const;

  const SessionClock& clock_;
  const NodeClock& node_;
  const int64_t new_start_ns_;
  const LineAlignerOptions options_;
  const std::unique_ptr<AlignmentStats> stats_;
  // Whether stats_ has seen an event, so that its smallest and largest correction mean something.
  bool any_event_ = false;
  // The events of the part at hand.
  AlignedEvents& events_;
  // By event of the part at hand: whether it has a start and an end, and is in events_.
  std::vector<bool> has_time_;
  // What the parts of the line so far leave for the next.
  std::vector<PlacedEvent> open_;
  Remarks remarks_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_
