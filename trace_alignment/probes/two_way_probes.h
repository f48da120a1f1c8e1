// SPDX-License-Identifier: Apache-2.0
// Messages to and fro between two nodes, each stamped on both sides by the clock there, and what
// they prove about the clocks without any assumption about delays but that they are not negative:
//
//   {"src":0,"dst":1,"t1":..,"t2":..,"t3":..,"t4":..}   src sends, dst receives, dst sends,
//                                                       src receives; ns
//
//   dst clock - src clock
//     ^      x     x                x   t2 - t1 at t1: the difference is at most this
//     |   x    `-x-----.___x_.-'x       lower hull of the upper bounds
//     |  =================================  all lines in between are possible: together they make
//     |     _.-o---o---._ o                 the interval at any time
//     |  o'       o      `o             upper hull of the lower bounds
//     |     o                  o        t3 - t4 at t4: the difference is at least this
//     +------------------------------> src time
#ifndef TRACE_ALIGNMENT_PROBES_TWO_WAY_PROBES_H_
#define TRACE_ALIGNMENT_PROBES_TWO_WAY_PROBES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/probes/probe_solver.h"

namespace meridian {

struct TwoWayProbe {
  // Node ids of the two ends, src and dst.
  int64_t src = 0;
  int64_t dst = 0;
  // Unix time, each on the clock of where it was taken.
  int64_t src_sent_ns = 0;
  int64_t dst_received_ns = 0;
  int64_t dst_sent_ns = 0;
  int64_t src_received_ns = 0;
};

// Reads JSONL, in file order and each probe once. InvalidArgument "file:line: reason; expected e.g.
// ..." for what cannot be read, for a side that received its answer before it asked, and for two
// probes that were sent at once but fared differently (both lines are named).
absl::StatusOr<std::vector<TwoWayProbe>> ParseTwoWayProbes(absl::string_view contents,
                                                           const std::string& name);

// All lines offset(t) that run between upper and lower bounds.
class OffsetCorridor {
 public:
  // At that time the offset is at most, or at least, this.
  struct Bound {
    int64_t time_ns = 0;
    int64_t offset_ns = 0;
  };
  // The offsets that are possible at some time. Both ends belong to it.
  struct Interval {
    int64_t low_ps = 0;
    int64_t high_ps = 0;
  };

  // Times from 0 to 2^62 ns, offsets within +-2^62 ns, at least one bound of each kind. `max_rate`
  // (a fraction) limits the lines' slopes where the bounds do not; short measurements say little
  // about slopes. InvalidArgument when there is no line; OutOfRange when clocks are more than 92 days
  // apart.
  static absl::StatusOr<OffsetCorridor> Fit(std::vector<Bound> upper, std::vector<Bound> lower,
                                            double max_rate);

  // Returns the lowest and the highest offset of any line at that time, which may lie outside the
  // bounds' times; rounded outward.
  Interval At(int64_t time_ns) const;

  double min_rate() const { return min_rate_; }
  double max_rate() const { return max_rate_; }

 private:
  // A line through (origin_.time_ns, origin_.offset_ns + offset_ns).
  struct Line {
    double rate = 0;
    double offset_ns = 0;
  };

  // What lines are relative to, so that doubles hold small numbers.
  Bound origin_;
  double min_rate_ = 0;
  double max_rate_ = 0;
  // The corners of the polygon of all lines (rate, offset): any line's value lies between theirs.
  std::vector<Line> highest_;
  std::vector<Line> lowest_;
};

struct TwoWayOptions {
  // Clocks wander: one line per so much of the lower node's time. Windows are whole multiples of it
  // since the Unix epoch and give the rounds their ids.
  int64_t window_ns = 4000000000;
  double max_drift_ppm = 100;
};

struct TwoWayEstimates {
  // One per pair of nodes (src < dst, whoever asked) and window, in the middle of the window's
  // probes: the middle of the interval there, with bounds. Weights are inverse to the bounds'
  // squares.
  std::vector<ProbeEdge> edges;
  // One sentence for each window of two nodes in which no line fits, since its probes contradict
  // each other: a clock was set, or drifts beyond belief.
  std::vector<std::string> notes;
};

TwoWayEstimates EstimateEdges(const std::vector<TwoWayProbe>& probes,
                              const TwoWayOptions& options = {});

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_TWO_WAY_PROBES_H_
