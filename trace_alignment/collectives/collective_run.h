// SPDX-License-Identifier: Apache-2.0
// The collectives of all profiles of a run, read, resolved and matched: what every check starts
// from.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_RUN_H_
#define TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/sources/trace_source.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct CollectiveRunOptions {
  XSpaceReaderOptions reader;
  ConversionOptions conversion;
  RankOptions ranks;
  // Called before each file with its position; may be null.
  std::function<void(size_t file)> progress;
};

struct CollectiveRun {
  // One per node: a file, or a node of a combined file.
  std::vector<ProfileCollectives> profiles;
  RankResolution ranks;
  RunResolution runs;
  CollectiveTable table;
};

// Resolves ranks and executions of what was read from the profiles, and matches it.
absl::StatusOr<CollectiveRun> MatchCollectives(std::vector<ProfileCollectives> profiles,
                                               const RankOptions& ranks = {});

// InvalidArgument when a profile is of another run, naming it: it has collectives of which none has
// a counterpart in another, though it should; it says that its job has another number of ranks; or,
// unless somebody measured the clocks, it was recorded over an hour apart from the others.
absl::Status CheckOneRun(const CollectiveRun& run, bool clocks_are_measured = false);

// Says what the profiles, of which there is at least one, have in place of collectives: "a.json
// and the others hold ...".
std::string DescribeNoCollectives(const std::vector<ProfileCollectives>& profiles);

// FailedPrecondition when a check of the run's table found violations: describes the first and says
// what to do.
absl::Status RefuseViolations(const CollectiveRun& run, const HappensBefore& check);

// Reads one file after the other, of one source (trace_source.h); only their collectives stay in
// memory. What the source has to say is among the notes on ranks.
absl::StatusOr<CollectiveRun> ReadCollectiveRun(FileSystem& file_system,
                                                const std::vector<std::string>& traces,
                                                const CollectiveRunOptions& options = {});

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_RUN_H_
