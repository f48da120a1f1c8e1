#include "astra_bridge/corrections/shared_correction.h"

#include <algorithm>
#include <cmath>

namespace meridian {
namespace {

int64_t WholeNs(double ns) { return std::llround(std::min(ns, kMaxCorrectedNs)); }

}  // namespace

AloneTimes AloneTimesOf(const Corrections& corrections, CollectiveKind kind, int64_t bytes,
                        double engine_ns) {
  return {WholeNs(engine_ns), WholeNs(corrections.CorrectedNs(kind, bytes, engine_ns))};
}

double StretchOf(const AloneTimes& others) {
  if (others.engine_ns == 0) return 1;
  return static_cast<double>(others.corrected_ns) / static_cast<double>(others.engine_ns);
}

double CorrectedSharedNs(const Corrections& corrections, const SharedTransfer& transfer) {
  const double own_ns = corrections.CorrectedNs(transfer.kind, transfer.bytes,
                                                std::min(transfer.shared_ns, transfer.alone_ns));
  const double waiting_ns = std::max(0.0, transfer.shared_ns - transfer.alone_ns);
  return std::min(own_ns + waiting_ns * transfer.stretch, kMaxCorrectedNs);
}

}  // namespace meridian
