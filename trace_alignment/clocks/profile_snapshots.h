// The snapshot pairs of a profile, wherever they are.
#ifndef TRACE_ALIGNMENT_CLOCKS_PROFILE_SNAPSHOTS_H_
#define TRACE_ALIGNMENT_CLOCKS_PROFILE_SNAPSHOTS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// From the file if its path is not empty, else from the profile's plane `/host:snapshots`; nullopt
// when there is neither. The profile also says what relative pairs count from when nobody else
// does, so that need not be in `options`.
absl::StatusOr<std::optional<SnapshotPairs>> LoadProfileSnapshots(FileSystem& file_system,
                                                                  const XSpaceReader& profile,
                                                                  const SessionClock& clock,
                                                                  const std::string& file,
                                                                  SnapshotPairsOptions options);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_PROFILE_SNAPSHOTS_H_
