// SPDX-License-Identifier: Apache-2.0
// The way of one node's times to the target clock:
//
//   tracer lines   R --snapshots--> S --offsets--> S_ref --target--> R'
//   host lines                      S --offsets--> S_ref --target--> R'
//
// Each step is a ClockMap; a step that is not needed is absent. The last looks the result up anew,
// so a time that the offsets carried into another snapshot segment is mapped by that segment.
#ifndef TRACE_ALIGNMENT_CLOCKS_NODE_CLOCK_H_
#define TRACE_ALIGNMENT_CLOCKS_NODE_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

struct NodeClock {
  explicit NodeClock(const RunClock& run) : run(run) {}

  // What the times of all maps count from.
  RunClock run;
  // Map from tracer to host clock; absent when they are one clock.
  std::optional<ClockMap> tracer_to_host;
  // Map from the node's host clock to the reference; absent for the reference node.
  std::optional<ClockMap> host_to_reference;
  // Map from the reference's host clock to the target; absent when that is the target.
  std::optional<ClockMap> reference_to_target;
};

// Maps the times of one line, best in order (see ClockMapCursor), and counts what is uncertain.
class LineClock {
 public:
  // The clock must outlive this.
  LineClock(const NodeClock& clock, ClockDomain domain) {
    if (domain == ClockDomain::kTracer && clock.tracer_to_host.has_value()) {
      to_host_.emplace(&*clock.tracer_to_host);
    }
    if (clock.host_to_reference.has_value()) {
      to_reference_.emplace(&*clock.host_to_reference);
      repaired_ =
          clock.host_to_reference->knots_repaired() > 0 ? &*clock.host_to_reference : nullptr;
    }
    if (clock.reference_to_target.has_value()) to_target_.emplace(&*clock.reference_to_target);
  }

  // Returns the target's time for a time of the line's clock, both in ps from the run base.
  int64_t Map(int64_t time_ps) {
    const int64_t host_ps = to_host_.has_value() ? to_host_->Forward(time_ps) : time_ps;
    if (repaired_ != nullptr && repaired_->IsRepaired(host_ps)) ++repaired_times_;
    const int64_t reference_ps =
        to_reference_.has_value() ? to_reference_->Forward(host_ps) : host_ps;
    return to_target_.has_value() ? to_target_->Forward(reference_ps) : reference_ps;
  }

  // How many times were mapped that lie outside the snapshot pairs (of the node or of the target),
  // outside the offsets, or inside a repaired stretch of these.
  int64_t snapshot_extrapolations() const {
    return Extrapolations(to_host_) + Extrapolations(to_target_);
  }
  int64_t offset_extrapolations() const { return Extrapolations(to_reference_); }
  int64_t repaired_times() const { return repaired_times_; }
  int64_t farthest_extrapolation_ps() const {
    return std::max({Farthest(to_host_), Farthest(to_reference_), Farthest(to_target_)});
  }

 private:
  static int64_t Extrapolations(const std::optional<ClockMapCursor>& cursor) {
    return cursor.has_value() ? cursor->extrapolations() : 0;
  }
  static int64_t Farthest(const std::optional<ClockMapCursor>& cursor) {
    return cursor.has_value() ? cursor->farthest_extrapolation_ps() : 0;
  }

  std::optional<ClockMapCursor> to_host_;
  std::optional<ClockMapCursor> to_reference_;
  std::optional<ClockMapCursor> to_target_;
  // The map by offsets if it has repaired stretches, else null.
  const ClockMap* repaired_ = nullptr;
  int64_t repaired_times_ = 0;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_NODE_CLOCK_H_
