// SPDX-License-Identifier: Apache-2.0
// A Kineto trace as an XSpace, for viewers and writers that know these only:
//
//   pid and tid of the host      a line of /host:CPU, named "process: thread"
//   device and stream            a line of /device:GPU:<device>
//   args                         stats of the same names; `correlation` is correlation_id
//   cat                          the stat kineto_category
//
// Instants, counters, arrows and metadata are left out, as are programs, which such traces do not
// have.
#ifndef XLA_PROFILER_KINETO_KINETO_XSPACE_H_
#define XLA_PROFILER_KINETO_KINETO_XSPACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

// The trace must have been loaded from the text. Costs memory for the bytes of one plane.
// ResourceExhausted when one does not fit an XSpace, whose planes have at most 2 GiB;
// InvalidArgument for times that do not.
absl::Status WriteKinetoXSpace(const TraceJsonTable& trace, absl::string_view text,
                               const std::string& hostname, ByteSink& sink);

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_KINETO_XSPACE_H_
