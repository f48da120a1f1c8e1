// Moves the lines of one profile to the target clock: starts, ends and bases.
#ifndef TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_
#define TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/event_order.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_rewriter.h"

namespace meridian {

struct LineAlignerOptions {
  // Named in errors.
  int64_t node_id = 0;
  // Every start is later than its predecessor's, as the earlier tools had it, instead of the order
  // and nesting that the file has.
  bool strict_monotonic = false;
  // Events keep their original times as stats.
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

// Room for the events of one line that have a start. Aligners that take turns share it: the memory
// of a long line is costly to get anew.
struct AlignedEvents {
  std::vector<Timespan> before;
  std::vector<MappedEvent> mapped;
};

class LineAligner {
 public:
  // `node` maps times that count from the session's start, `clock.start_ns()`; it, `clock` and
  // `room` must outlive this. `new_start_ns` is the start that the new line bases count from, Unix
  // time.
  LineAligner(const SessionClock& clock, const NodeClock& node, int64_t new_start_ns,
              const LineAlignerOptions& options, AlignedEvents* room)
      : clock_(clock),
        run_(clock.start_ns()),
        node_(node),
        new_start_ns_(new_start_ns),
        options_(options),
        events_(*room) {}

  // The Unix time, rounded down, that a time of the host's clock becomes, or the base of a line.
  absl::StatusOr<int64_t> MapHostTime(int64_t unix_ns) const;
  absl::StatusOr<int64_t> MapLineBase(absl::string_view plane_name, const XLineHeader& line) const;

  // Changes the line's times as an XSpaceEditor does. `stats` are where the original times go; none
  // when these are not kept.
  absl::Status EditLine(absl::string_view plane_name, const XLineHeader& line, RewritePass pass,
                        const std::optional<OriginalTimesStats>& stats, LineEdit* edit);

  // What was done to the lines so far.
  const AlignmentStats& stats() const { return stats_; }

 private:
  // Events of the line at hand that need a remark.
  struct Remarks {
    int64_t snapshots = 0;
    int64_t offsets = 0;
    int64_t clamped = 0;
  };

  absl::Status MapEvents(const XLineHeader& line, int64_t base_ps, LineClock& clock,
                         const std::vector<EventTimes>& times);
  void RemarkEvents(ClockDomain domain);
  void Count(const LineClock& clock, const std::vector<EventTimes>& times);
  absl::Status CheckExtrapolation(absl::string_view plane_name, const XLineHeader& line,
                                  const LineClock& clock) const;
  void KeepOriginals(int64_t base_ps, const OriginalTimesStats& stats, LineEdit* edit) const;
  absl::Status WriteTimes(const XLineHeader& line, int64_t new_base_ns, LineEdit* edit) const;

  const SessionClock& clock_;
  const RunClock run_;
  const NodeClock& node_;
  const int64_t new_start_ns_;
  const LineAlignerOptions options_;
  AlignmentStats stats_;
  bool any_event_ = false;
  // Of the line at hand.
  AlignedEvents& events_;
  Remarks remarks_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_LINE_ALIGNER_H_
