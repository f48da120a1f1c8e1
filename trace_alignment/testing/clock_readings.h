// SPDX-License-Identifier: Apache-2.0
// What was measured of a synthetic cluster's clocks, as the files that Meridian reads (see
// snapshot_pairs.h, offset_samples.h, probe_windows.h, two_way_probes.h). All cover the run and a
// period before and after it. Readings are whole nanoseconds, rounded down, as real ones are;
// offsets are exact to the picosecond.
#ifndef TRACE_ALIGNMENT_TESTING_CLOCK_READINGS_H_
#define TRACE_ALIGNMENT_TESTING_CLOCK_READINGS_H_

#include <cstdint>
#include <string>

#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

struct SnapshotOptions {
  int64_t period_ns = 100'000'000;
  // Raw readings of both clocks, instead of times since W and G.
  bool absolute = false;
  // The host clock is read before and after the tracer's, up to so far apart, and the tracer's
  // somewhere in between. 0: all three at once, and no bracket is written.
  int64_t max_bracket_ns = 0;
};

std::string SnapshotPairsJsonl(const SyntheticCluster& cluster, int64_t node,
                               const SnapshotOptions& options = {});

// Adds the plane /host:snapshots with the same readings, absolute and without brackets.
void AddSnapshotsPlane(const SyntheticCluster& cluster, int64_t node, int64_t period_ns,
                       XSpaceProto* profile);

struct OffsetsOptions {
  int64_t period_ns = 100'000'000;
  // One sample per node and period without windows, instead of GraphCalc's rows.
  bool legacy = false;
};

std::string OffsetsJsonl(const SyntheticCluster& cluster, const OffsetsOptions& options = {});

// Messages between neighbours: each node asks the next, and one a third of the way around, unless
// that one asks it.
struct ProbeOptions {
  int64_t window_ns = 200'000'000;
  int64_t probes_per_window = 40;
  // A message takes at least this long,
  int64_t min_delay_ns = 10'000;
  // in one direction up to so much longer, always the same on one link,
  int64_t max_asymmetry_ns = 0;
  // and while it queues up to so much longer, each differently.
  int64_t max_queue_ns = 20'000;
};

// Lines through the probes as a fit that is fooled by asymmetry, and by nothing else, finds them:
// offsets are wrong by half a link's asymmetry.
std::string ProbeWindowsJsonl(const SyntheticCluster& cluster, int64_t node,
                              const ProbeOptions& options = {});

// The probes of all nodes themselves.
std::string TwoWayProbesJsonl(const SyntheticCluster& cluster, const ProbeOptions& options = {});

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_CLOCK_READINGS_H_
