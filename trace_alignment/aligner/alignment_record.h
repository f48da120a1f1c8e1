// What a profile says about its alignment: stats on the planes that were moved.
#ifndef TRACE_ALIGNMENT_ALIGNER_ALIGNMENT_RECORD_H_
#define TRACE_ALIGNMENT_ALIGNER_ALIGNMENT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct AlignmentRecord {
  int64_t node_id = 0;
  // E.g. "offsets".
  std::string method;
  // Node clock - reference clock, in the middle of what it was found from.
  std::optional<int64_t> offset_ns;
  std::optional<int64_t> uncertainty_ns;
  std::optional<double> drift_ppm;
};

// Adds the stats alignment_node_id, alignment_method, alignment_offset_ns and so on; their names
// begin with the prefix where a plane has those of several nodes.
void AddTo(PlaneAdditions* plane, const AlignmentRecord& record, absl::string_view prefix = "");

// True when the profile has such stats.
absl::StatusOr<bool> IsAligned(const XSpaceReader& reader);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_ALIGNMENT_RECORD_H_
