// Who kept whom waiting in a run, as far as its intervals tell:
//
//   a  |=========|
//   b        |=======|          stretch of b: that of a and c together
//   c              |======|     stretch of c: that of b alone
#ifndef ASTRA_BRIDGE_CORRECTIONS_OVERLAP_STRETCH_H_
#define ASTRA_BRIDGE_CORRECTIONS_OVERLAP_STRETCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/corrections/shared_correction.h"

namespace meridian {

// A transfer that was under way in [begin_ns, end_ns).
struct TransferSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  AloneTimes alone;
};

// Returns for each transfer how much longer than the engine says those others take that were under
// way at the same time (StretchOf). They are in the order of their begins; times are at least 0.
// Takes n log n steps.
std::vector<double> OverlapStretches(absl::Span<const TransferSpan> transfers);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_OVERLAP_STRETCH_H_
