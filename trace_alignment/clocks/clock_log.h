// SPDX-License-Identifier: Apache-2.0
// What the program that keeps a host's clock says of it:
//
//   chrony's tracking.log    2026-11-18 05:17:46 10.0.0.1 2 -3.541 0.075 -8.621e-06 N 2 2.940e-05
//                            -2.084e-06 1.534e-04 3.472e-05 8.304e-04
//   ptp4l                    ptp4l[5374018.735]: master offset  -5 s2 freq +2 path delay 10
//                            ptp4l[5374019.735]: rms 16 max 33 freq -993 +/- 21 delay 510 +/- 0
//   phc2sys                  phc2sys[5374018.9]: CLOCK_REALTIME phc offset 12 s2 freq -7 delay 480
#ifndef TRACE_ALIGNMENT_CLOCKS_CLOCK_LOG_H_
#define TRACE_ALIGNMENT_CLOCKS_CLOCK_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Returns within how many nanoseconds of the time that is kept the host's clock likely was from
// begin_ns to end_ns (Unix time). Of chrony: the largest offset and correction, with half the root
// delay and the root dispersion. Of ptp4l and phc2sys, which do not say when: what 90 % of the
// offsets of a clock that is locked stay within, the two added up. InvalidArgument for another file,
// when no row is of the time, and when the clock followed nothing then.
absl::StatusOr<int64_t> ClockWithinNs(absl::string_view log, absl::string_view name,
                                      int64_t begin_ns, int64_t end_ns);

// Reads the log from a file.
absl::StatusOr<int64_t> LoadClockLog(FileSystem& file_system, const std::string& path,
                                     int64_t begin_ns, int64_t end_ns);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_CLOCK_LOG_H_
