// SPDX-License-Identifier: Apache-2.0
// A node's clock that is the machine's, but off by known amounts.
#ifndef CLUSTER_PROBE_TESTING_SKEWED_CLOCK_H_
#define CLUSTER_PROBE_TESTING_SKEWED_CLOCK_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "cluster/probe/clock_source.h"

namespace meridian {

// Shows t + offset + drift * (t - origin) when the machine's clock shows t.
class SkewedClock : public ClockSource {
 public:
  SkewedClock(int64_t origin_ns, int64_t offset_ns, double drift_ppm)
      : base_(SystemClockSource()),
        origin_ns_(origin_ns),
        offset_ns_(offset_ns),
        drift_(drift_ppm * 1e-6) {}

  ClockReading Read() override {
    ClockReading reading = base_->Read();
    reading.before_ns = FromRealtime(reading.before_ns);
    reading.after_ns = FromRealtime(reading.after_ns);
    return reading;
  }

  int64_t FromRealtime(int64_t realtime_ns) override {
    return realtime_ns + offset_ns_ +
           std::llround(drift_ * static_cast<double>(realtime_ns - origin_ns_));
  }

  // The inverse, to 1 ns.
  int64_t ToRealtime(int64_t shown_ns) const {
    const double shown = static_cast<double>(shown_ns - offset_ns_ - origin_ns_);
    return shown_ns - offset_ns_ - std::llround(shown * drift_ / (1 + drift_));
  }

 private:
  const std::unique_ptr<ClockSource> base_;
  const int64_t origin_ns_;
  const int64_t offset_ns_;
  const double drift_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_TESTING_SKEWED_CLOCK_H_
