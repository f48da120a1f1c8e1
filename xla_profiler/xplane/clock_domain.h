// SPDX-License-Identifier: Apache-2.0
// Which clock stamped the events of a line:
//
//   host clock S    CLOCK_REALTIME; TraceMe lines, TPU and custom devices (already fitted to it)
//   tracer clock R  CUPTI, rocprofiler; GPU planes and the driver API lines "Host Threads/*"
#ifndef XLA_PROFILER_XPLANE_CLOCK_DOMAIN_H_
#define XLA_PROFILER_XPLANE_CLOCK_DOMAIN_H_

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

enum class ClockDomain : uint8_t { kHost, kTracer };

// "host" or "tracer".
inline absl::string_view ClockDomainName(ClockDomain domain) {
  return domain == ClockDomain::kTracer ? "tracer" : "host";
}

inline ClockDomain ClockDomainOf(absl::string_view plane_name, absl::string_view line_name) {
  const bool tracer =
      absl::StartsWith(plane_name, kGpuPlanePrefix) || absl::StartsWith(line_name, kApiLinePrefix);
  return tracer ? ClockDomain::kTracer : ClockDomain::kHost;
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_CLOCK_DOMAIN_H_
