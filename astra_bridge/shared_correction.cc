#include "astra_bridge/shared_correction.h"

#include <algorithm>

namespace meridian {

double StretchOf(double alone_ns, double corrected_ns) {
  return alone_ns > 0 ? corrected_ns / alone_ns : 1;
}

double CorrectedSharedNs(const Corrections& corrections, const SharedTransfer& transfer) {
  const double own_ns = corrections.CorrectedNs(transfer.kind, transfer.bytes,
                                                std::min(transfer.shared_ns, transfer.alone_ns));
  const double waiting_ns = std::max(0.0, transfer.shared_ns - transfer.alone_ns);
  return std::min(own_ns + waiting_ns * transfer.stretch, kMaxCorrectedNs);
}

}  // namespace meridian
