// SPDX-License-Identifier: Apache-2.0
// The most likely clocks of the nodes of a run, given how the members of its collectives end.
//
// What happens-before proves is as wide as collectives are long. But members of a ring or tree end
// nearly together, and how nearly is learned from the run itself. A class is all executions of one
// kind and size by the same ranks, of kinds in which everybody waits for everybody:
//
//   all-reduce of 4 KiB    .:|:.            lag of a member: its end minus the mean end of its
//   all-reduce of 7 MiB   .  . |  :  .      instance; every class says
//                                           median lag = offset + what its members share + error
//
//   variance of the error = q^2 * (1 + pi / 2n)         q: scatter of the n lags
//                         + (T / 64 + Tmin / 3)^2       T: transfer, Tmin: the shortest of the run
//                                                       or 1 ms, as a latency
//                         + 2 * r^2                     r: how far other classes disagree
//
// The first term does not vanish with repetition, since ranks may always end equally far apart. In
// recorded runs nine of ten classes err by less than 1.2 q, but half by less than q / 4: as weights
// count q^2 * (1 / 16 + pi / 2n). Offsets are the least squares; the variance of one is that of the
// best chain of classes to the reference, which does not shrink with the number of classes, since
// these may err alike.
//
// The middle of what is certain, to which messages contribute, too, counts where ends are outside of
// what is certain, the more the farther, and where there are none.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_LIKELY_CLOCKS_H_
#define TRACE_ALIGNMENT_COLLECTIVES_LIKELY_CLOCKS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

// A number that is not known exactly.
struct Estimate {
  double value = 0;
  // Infinite when nothing is known.
  double variance = std::numeric_limits<double>::infinity();

  // Half the width of the range that holds 90 % of a normal distribution.
  double Range() const { return 1.645 * std::sqrt(variance); }
};

// A node's clock as a straight line.
struct LikelyClock {
  // Time of the node's clock, in ps from the run base, at which the offset is.
  int64_t at_ps = 0;
  // The node's clock minus the reference then, in ps.
  Estimate offset_ps;
  // How much faster it runs, in seconds per second.
  Estimate drift;

  double OffsetPs(int64_t time_ps) const {
    return offset_ps.value + drift.value * static_cast<double>(time_ps - at_ps);
  }
  // Half the width of the 90 % range of the offset at that time.
  double RangePs(int64_t time_ps) const;
};

// Takes what is certain of each node's clock, as the middle of its interval, and returns what is
// likely. A clock of which nothing is certain stays so.
std::vector<LikelyClock> FindLikelyClocks(const CollectiveTable& table, uint32_t reference_node,
                                          const std::vector<LikelyClock>& certain);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_LIKELY_CLOCKS_H_
