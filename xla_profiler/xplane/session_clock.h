// SPDX-License-Identifier: Apache-2.0
// What the times in a profile mean.
//
// Every line has its own base and its own clock (clock_domain.h):
//
//   Unix time on the line's clock = profile_start_time + line.timestamp_ns + event.offset_ps / 1000
//
// Unix nanoseconds fit int64, Unix picoseconds do not: inside a run, times are picoseconds from a
// run base (RunClock).
#ifndef XLA_PROFILER_XPLANE_SESSION_CLOCK_H_
#define XLA_PROFILER_XPLANE_SESSION_CLOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xplane_wire.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// What a profile says about the session that wrote it; absent where it says nothing, or what cannot
// be a time.
struct SessionInfo {
  std::optional<int64_t> profile_start_ns;
  std::optional<int64_t> profile_stop_ns;
  std::vector<std::string> hostnames;
};

// Start and stop come from the `Task Environment` plane.
absl::StatusOr<SessionInfo> ReadSessionInfo(const XSpaceReader& reader);

// Turns the times of one profile into Unix time.
class SessionClock {
 public:
  // `override_start_ns` (a flag) wins over the file. Neither known: FailedPrecondition that says
  // why and what to do, since times of different files cannot be compared then.
  static absl::StatusOr<SessionClock> Create(const std::string& file, const SessionInfo& info,
                                             std::optional<int64_t> override_start_ns);

  int64_t start_ns() const { return start_ns_; }

  // Returns the Unix time of the line's base, on the line's clock. OutOfRange when it does not fit.
  absl::StatusOr<int64_t> LineBaseNs(const XLineHeader& line) const;

  // Reads when an event started and ended, in picoseconds from the session's start. Returns false
  // when these do not fit, or the end lies before the start.
  bool ReadTimes(const XLineHeader& line, const XEventVisitor& event, int64_t* start_ps,
                 int64_t* end_ps) const;

 private:
  SessionClock(std::string file, int64_t start_ns) : file_(std::move(file)), start_ns_(start_ns) {}

  std::string file_;
  int64_t start_ns_;
};

// Picoseconds from a common base: 106 days either way.
class RunClock {
 public:
  explicit RunClock(int64_t base_ns) : base_ns_(base_ns) {}

  int64_t base_ns() const { return base_ns_; }

  // Returns unix_ns + offset_ps as picoseconds from the base. OutOfRange when it does not fit.
  absl::StatusOr<int64_t> ToRunPs(int64_t unix_ns, int64_t offset_ps) const;

  // Returns the Unix time, rounded down; the last that fits when it is beyond that.
  int64_t ToUnixNs(int64_t run_ps) const;

 private:
  int64_t base_ns_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_SESSION_CLOCK_H_
