// SPDX-License-Identifier: Apache-2.0
// From files of probes, windows or raw two-way ones, to each node's offsets from the reference.
#ifndef TRACE_ALIGNMENT_PROBES_PROBE_OFFSETS_H_
#define TRACE_ALIGNMENT_PROBES_PROBE_OFFSETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct ProbeOffsets {
  OffsetSamples samples;
  // What was left out and why, one sentence each.
  std::vector<std::string> notes;
};

// What a file's rows hold tells which kind it is. Files may be of many nodes.
// `max_drift_ppm` bounds the slopes of raw probes. InvalidArgument for what cannot be read, and when
// nothing usable is left.
absl::StatusOr<ProbeOffsets> LoadProbeOffsets(FileSystem& file_system,
                                              const std::vector<std::string>& files,
                                              int64_t reference_node, double max_drift_ppm);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_PROBE_OFFSETS_H_
