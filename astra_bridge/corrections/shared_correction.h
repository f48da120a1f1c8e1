// How long a transfer lasts beside others, by corrections that were measured on transfers alone:
//
//   lasts   = C(min(shared, alone)) + max(0, shared - alone) * stretch
//   stretch = sum of C_o(alone_o) / sum of alone_o   over the others that are under way meanwhile
//
// alone is the engine's time of the transfer with the network to itself, shared its time beside the
// others, C the correction of its kind and bytes. Its own work is corrected as its own; what it
// waits for the others takes as much longer as those really do. So
//
//   alone, or on links of its own             C(alone)
//   two alike, one behind the other           C(alone), and C(alone) + alone * C(alone) / alone:
//                                             twice that
//   a small one behind a huge one             the small one's C(alone) + the huge one's C(alone)
#ifndef ASTRA_BRIDGE_CORRECTIONS_SHARED_CORRECTION_H_
#define ASTRA_BRIDGE_CORRECTIONS_SHARED_CORRECTION_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {

// Times alone of a transfer, or sums over several: the engine's, and corrected. Sums of very
// different times are subtracted from each other, so they are exact.
struct AloneTimes {
  absl::int128 engine_ns = 0;
  absl::int128 corrected_ns = 0;

  AloneTimes& operator+=(const AloneTimes& other) {
    engine_ns += other.engine_ns;
    corrected_ns += other.corrected_ns;
    return *this;
  }
  AloneTimes& operator-=(const AloneTimes& other) {
    engine_ns -= other.engine_ns;
    corrected_ns -= other.corrected_ns;
    return *this;
  }
};

// Returns the times of a transfer in whole nanoseconds, at most kMaxCorrectedNs. engine_ns is at
// least 0.
AloneTimes AloneTimesOf(const Corrections& corrections, CollectiveKind kind, int64_t bytes,
                        double engine_ns);

// Returns how much longer transfers take than the engine says, from the sums of their times. 1 when
// there are none.
double StretchOf(const AloneTimes& others);

struct SharedTransfer {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  // The engine's times.
  double alone_ns = 0;
  double shared_ns = 0;
  // Of the others that are under way meanwhile.
  double stretch = 1;
};

// Returns how long the transfer lasts, at most kMaxCorrectedNs. Whole nanoseconds for a kind with
// corrections that the others do not slow down.
double CorrectedSharedNs(const Corrections& corrections, const SharedTransfer& transfer);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_SHARED_CORRECTION_H_
