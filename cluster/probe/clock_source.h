// SPDX-License-Identifier: Apache-2.0
// The clocks of a host, behind an interface so that tests can give a node a clock that is off by
// known amounts.
#ifndef CLUSTER_PROBE_CLOCK_SOURCE_H_
#define CLUSTER_PROBE_CLOCK_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>

namespace meridian {

// Two clocks read in a bracket: the node's, the second one, the node's again.
struct ClockReading {
  // Unix time of the node's clock, CLOCK_REALTIME.
  int64_t before_ns = 0;
  int64_t after_ns = 0;
  // Time of the second clock, CLOCK_MONOTONIC_RAW, which nobody sets.
  int64_t second_ns = 0;
};

class ClockSource {
 public:
  virtual ~ClockSource() = default;

  virtual ClockReading Read() = 0;

  // Returns what the node's clock showed when CLOCK_REALTIME of this machine, which the kernel
  // stamps packets with, showed that.
  virtual int64_t FromRealtime(int64_t realtime_ns) = 0;
};

// Returns the machine's own.
std::unique_ptr<ClockSource> SystemClockSource();

// Tells when the node's clock was set, by the second clock, which was not. What NTP does in small
// doses (at most 500 ppm) is no step.
class StepDetector {
 public:
  bool IsStep(const ClockReading& reading);

 private:
  // The last reading that was narrow enough to judge by.
  std::optional<ClockReading> last_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_CLOCK_SOURCE_H_
