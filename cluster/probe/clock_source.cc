#include "cluster/probe/clock_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

int64_t Nanos(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

class SystemClock : public ClockSource {
 public:
  SystemClock(clockid_t second, int file) : second_(second), file_(file) {}
  ~SystemClock() override {
    if (file_ >= 0) close(file_);
  }

  ClockReading Read() override {
    ClockReading reading;
    reading.before_ns = Nanos(CLOCK_REALTIME);
    reading.second_ns = Nanos(second_);
    reading.after_ns = Nanos(CLOCK_REALTIME);
    return reading;
  }

  int64_t FromRealtime(int64_t realtime_ns) override { return realtime_ns; }

 private:
  const clockid_t second_;
  // The device of the clock; -1 when it needs none.
  const int file_;
};

// How Linux numbers the clock of an open device.
clockid_t ClockOfFile(int file) {
  return static_cast<clockid_t>(~static_cast<unsigned>(file) << 3 | 3);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClockSource>> SystemClockSource(const std::string& second_clock) {
  clockid_t id = CLOCK_MONOTONIC_RAW;
  int file = -1;
  if (absl::StartsWith(second_clock, "/")) {
    file = open(second_clock.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return ErrnoToStatus(errno, second_clock);
    id = ClockOfFile(file);
  } else if (second_clock == "monotonic") {
    id = CLOCK_MONOTONIC;
  } else if (second_clock == "boottime") {
    id = CLOCK_BOOTTIME;
  } else if (second_clock == "tai") {
    id = CLOCK_TAI;
  } else if (second_clock != "monotonic_raw") {
    return InvalidArgument(second_clock,
                           " is none of monotonic_raw, monotonic, boottime, tai, /dev/ptpN");
  }
  auto source = std::make_unique<SystemClock>(id, file);
  timespec time = {};
  if (clock_gettime(id, &time) != 0) return ErrnoToStatus(errno, second_clock);
  return source;
}

ClockReading ReadNarrowly(ClockSource& clock) {
  constexpr int kReadings = 8;
  const auto bracket_ns = [](const ClockReading& reading) {
    return reading.after_ns - reading.before_ns;
  };
  ClockReading narrowest = clock.Read();
  for (int i = 1; i < kReadings || bracket_ns(narrowest) < 0; ++i) {
    const ClockReading reading = clock.Read();
    // The clock was set within the reading.
    if (bracket_ns(reading) < 0) continue;
    if (bracket_ns(narrowest) < 0 || bracket_ns(reading) < bracket_ns(narrowest)) {
      narrowest = reading;
    }
  }
  return narrowest;
}

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
