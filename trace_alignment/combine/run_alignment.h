// SPDX-License-Identifier: Apache-2.0
// From what is known about the nodes' clocks to one clock for the run:
//
//   offsets, else probes   measured offsets, moved only where a collective would violate
//                          happens-before
//   raw clocks             when nothing was measured and no collective violates it
//   collectives            else
//
// Every node gets the way of its times to the reference node's tracer clock and, as far as
// collectives or measurements tell, how far that may be off.
#ifndef TRACE_ALIGNMENT_COMBINE_RUN_ALIGNMENT_H_
#define TRACE_ALIGNMENT_COMBINE_RUN_ALIGNMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clocks/node_clock.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

enum class AlignmentMethod { kAuto, kOffsets, kProbes, kCollectives, kNone };

// Methods have the names "auto", "offsets", "probes", "collectives" and "none".
absl::string_view AlignmentMethodName(AlignmentMethod method);
absl::StatusOr<AlignmentMethod> ParseAlignmentMethod(absl::string_view name);

// A node whose clock is not known yet.
struct UnalignedNode {
  int64_t node_id = 0;
  SessionClock clock;
  // Absent when the node has none: its tracer's clock is taken for its host's.
  std::optional<SnapshotPairs> snapshots;
  // When the profile ended, on the node's host clock (Unix time); absent when it does not say.
  std::optional<int64_t> stop_ns;
  // Within how much of the time that is kept its clock was, by its log (clock_log.h).
  std::optional<int64_t> clock_within_ns = std::nullopt;
  // Empty when the profile does not say.
  std::string hostname = {};
};

struct AlignmentInputs {
  // One per profile of the run's collectives, in their order.
  std::vector<UnalignedNode> nodes;
  // The id of the node whose clock is the reference.
  int64_t reference_node = 0;
  // Offsets that the user gave, and offsets that were solved from probes; absent when there are
  // none.
  std::optional<OffsetSamples> offsets;
  std::optional<OffsetSamples> probes;
};

struct AlignmentOptions {
  AlignmentMethod method = AlignmentMethod::kAuto;
  OffsetSamples::Slope slope = OffsetSamples::Slope::kInterpolate;
  // A measured offset rules the rounds after it in which its node has none (--missing_windows=hold).
  bool hold_last_offset = false;
  double max_drift_ppm = 100;
  int64_t min_transfer_ps = 0;
  bool end_agreement = true;
  // Within how much of each other the hosts' clocks are with 90 %; 0 when that is not known.
  int64_t clock_prior_ps = 0;
};

struct AlignedNode {
  explicit AlignedNode(const RunClock& run) : clock(run) {}

  // The way of the node's times to the common clock.
  NodeClock clock;
  // Method, offset, uncertainties and drift, as far as they are known. A node that nothing ties to
  // the reference keeps its clock.
  CombinedNode stated;
};

struct RunAlignment {
  // What was done; never kAuto.
  AlignmentMethod method = AlignmentMethod::kNone;
  // One per node of the inputs, in their order.
  std::vector<AlignedNode> nodes;
  // The collectives on the common clock.
  CollectiveTable table;
  // Happens-before on the clocks as they were, and on the common clock.
  HappensBefore before;
  HappensBefore after;
  // Choices, fallbacks and warnings, one sentence each.
  std::vector<std::string> notes;
};

// InvalidArgument for measurements that lack a node, have the wrong sign or were asked for but not
// given, and for profiles that cannot be of one run; FailedPrecondition when the method is
// `collectives` and these contradict each other.
absl::StatusOr<RunAlignment> AlignRun(const AlignmentInputs& inputs, const CollectiveRun& run,
                                      const AlignmentOptions& options);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_RUN_ALIGNMENT_H_
