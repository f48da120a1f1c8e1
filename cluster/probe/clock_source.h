// SPDX-License-Identifier: Apache-2.0
// The clocks of a host, behind an interface so that tests can give a node a clock that is off by
// known amounts.
#ifndef CLUSTER_PROBE_CLOCK_SOURCE_H_
#define CLUSTER_PROBE_CLOCK_SOURCE_H_

#include <ctime>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace meridian {

// Two clocks read in a bracket: the node's, the second one, the node's again.
struct ClockReading {
  // Unix time of the node's clock, CLOCK_REALTIME.
  int64_t before_ns = 0;
  int64_t after_ns = 0;
  // Time of the second clock, which nobody sets; CLOCK_MONOTONIC_RAW unless another was chosen.
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

// The machine's own. `second_clock` is realtime's companion: "monotonic_raw", "monotonic",
// "boottime", "tai", or the path of a clock device, e.g. "/dev/ptp0".
absl::StatusOr<std::unique_ptr<ClockSource>> SystemClockSource(const std::string& second_clock);

// Returns the narrowest of some readings.
ClockReading ReadNarrowly(ClockSource& clock);

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
