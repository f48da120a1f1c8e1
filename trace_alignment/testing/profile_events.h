// SPDX-License-Identifier: Apache-2.0
// All events of a profile with their times, and a profile put on another clock: what tests of the
// aligner compare. A profile that does not say when its session began is taken to begin at some
// fixed time.
#ifndef TRACE_ALIGNMENT_TESTING_PROFILE_EVENTS_H_
#define TRACE_ALIGNMENT_TESTING_PROFILE_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

struct ProfileEvent {
  ClockDomain domain = ClockDomain::kHost;
  // Position of its line among all lines of the profile.
  int64_t line = 0;
  // Times of the line's clock, in ps from the base that was asked for.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Plane, line and event, for messages.
  std::string name;
};

// Returns the events that have a start, in file order. `base_ns` is Unix time.
absl::StatusOr<std::vector<ProfileEvent>> ListProfileEvents(absl::string_view profile,
                                                            int64_t base_ns);

struct AlignedProfile {
  std::string bytes;
  AlignmentStats stats;
};

// Aligns the profile by the clock that `make_clock` makes for its session.
absl::StatusOr<AlignedProfile> AlignProfile(
    absl::string_view profile,
    absl::FunctionRef<absl::StatusOr<NodeClock>(const RunClock& session)> make_clock,
    const AlignOptions& options = {});

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_PROFILE_EVENTS_H_
