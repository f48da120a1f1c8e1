#include "cluster/probe/clock_source.h"

#include <cstdlib>
#include <ctime>

namespace meridian {
namespace {

int64_t Nanos(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

class SystemClock : public ClockSource {
 public:
  ClockReading Read() override {
    ClockReading reading;
    reading.before_ns = Nanos(CLOCK_REALTIME);
    reading.second_ns = Nanos(CLOCK_MONOTONIC_RAW);
    reading.after_ns = Nanos(CLOCK_REALTIME);
    return reading;
  }

  int64_t FromRealtime(int64_t realtime_ns) override { return realtime_ns; }
};

}  // namespace

std::unique_ptr<ClockSource> SystemClockSource() { return std::make_unique<SystemClock>(); }

bool StepDetector::IsStep(const ClockReading& reading) {
  // An interrupted reading says too little.
  constexpr int64_t kMaxBracketNs = 20000;
  // Beyond both brackets: what NTP slews by, and a crystal's own error, per 1,000,000 ns.
  constexpr int64_t kMaxSlewPpm = 700;
  constexpr int64_t kSlackNs = 1000;
  const int64_t bracket_ns = reading.after_ns - reading.before_ns;
  if (bracket_ns > kMaxBracketNs) return false;
  const std::optional<ClockReading> last = last_;
  last_ = reading;
  if (!last.has_value()) return false;
  // The clock was set between its two readings.
  if (bracket_ns < 0) return true;
  const int64_t passed_ns = reading.second_ns - last->second_ns;
  const int64_t gained_ns = reading.before_ns - last->before_ns - passed_ns;
  const int64_t slack_ns = bracket_ns + std::abs(last->after_ns - last->before_ns) +
                           passed_ns / 1000000 * kMaxSlewPpm + kSlackNs;
  return std::abs(gained_ns) > slack_ns;
}

}  // namespace meridian
