// SPDX-License-Identifier: Apache-2.0
// How far the nodes' clocks are from the reference node's, measured round by round:
//
//   {"meta":true,"nodes":[{"node_id":1,"start_walltime_ns":W,"start_gpu_ns":G}]}
//   {"round_id":3,"window_id":3,"window_start_ns":..,"window_end_ns":..,"node_id":1,
//    "offset_ns":-750.8,"drift_ppm":0.43,"residual":2.5,"reachable":true,"converged":true}
//
// or, in the legacy form, {"node_id":1,"midpoint_sys_ns":..,"offset_ns":..} per line.
//
// An offset is node clock - reference clock (positive: the node is ahead), so that
//
//   t_ref = t_node - offset.
//
// Windows are on the node's own clock, and the reference node's are what ties a round to reference
// time: M of a round is the middle of the reference node's window.
#ifndef TRACE_ALIGNMENT_CLOCKS_OFFSET_SAMPLES_H_
#define TRACE_ALIGNMENT_CLOCKS_OFFSET_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

// The offset of one node at one instant.
struct OffsetSample {
  int64_t node_id = 0;
  // M, Unix time on the reference clock.
  int64_t midpoint_ref_ns = 0;
  // Node clock - reference clock at that time.
  int64_t offset_ps = 0;
  // How much faster the node's clock runs than the reference's; absent when unknown.
  std::optional<double> drift_ppm;
  // The offset is within this of the truth; absent when unknown.
  std::optional<double> uncertainty_ns;
};

// How many rows were read but not used, by the reason.
struct OffsetRowsNotUsed {
  // Rows that say so of themselves.
  int64_t unreachable = 0;
  int64_t not_converged = 0;
  // Rows of rounds in which the reference node has no row, though it has some in the file.
  int64_t without_reference = 0;
  // Rows that repeat another.
  int64_t identical = 0;
};

class OffsetSamples {
 public:
  // How a node's time is mapped between and around its samples.
  enum class Slope {
    // The polyline through (M_k + O_k -> M_k).
    kInterpolate,
    // Around each sample, the line of the sample's drift_ppm:
    // t_ref = M_k + (t_node - M_k - O_k) / (1 + ppm * 1e-6). With several samples each line rules
    // the middle half of the way to its neighbours, and the map runs straight from line to line.
    kDriftPpm,
  };

  // Reads "interpolate" or "drift_ppm".
  static absl::StatusOr<Slope> ParseSlope(absl::string_view name);

  // Reads the file. `reference_node` absent: the lowest node whose offset is 0 in every row.
  // InvalidArgument "file:line: reason; expected e.g. ..." for what cannot be read, for
  // contradictory rows (both lines are named) and for a reference node whose offset is not 0.
  static absl::StatusOr<OffsetSamples> Load(FileSystem& file_system, const std::string& path,
                                            std::optional<int64_t> reference_node);

  // The same from the file's contents; `name` stands for the path in errors.
  static absl::StatusOr<OffsetSamples> Parse(absl::string_view contents, const std::string& name,
                                             std::optional<int64_t> reference_node);

  // Holds samples that were computed; `name` says by what.
  OffsetSamples(std::string name, std::optional<int64_t> reference_node,
                const std::vector<OffsetSample>& samples);

  // The node that the offsets are relative to; absent when the file has no rows for it.
  std::optional<int64_t> reference_node() const { return reference_node_; }

  // The nodes that have samples, in the order of their ids.
  std::vector<int64_t> NodeIds() const;

  // The node's samples in the order of reference time; empty for a node without any.
  const std::vector<OffsetSample>& SamplesOf(int64_t node_id) const;

  // What the header says about the node's start; absent members when it says nothing.
  ClockAnchors AnchorsOf(int64_t node_id) const;

  const OffsetRowsNotUsed& rows_not_used() const { return rows_not_used_; }

  // Returns these samples and, in rounds of the reference node in which one of the nodes has none though
  // it has one before, its last offset; with kDriftPpm, on the line of that. A sample is of the round that it
  // is within half the distance to the next round of. The uncertainty of an offset that holds grows by
  // so much with its age.
  OffsetSamples WithLastHeld(absl::Span<const int64_t> node_ids, Slope slope,
                             double max_drift_ppm) const;

  // Returns the map from the node's host time to reference time, in ps from the run base: the
  // identity for the reference node. Samples that would have it run backwards are repaired and
  // counted in the map. NotFound that lists the nodes there are when the node has no samples.
  absl::StatusOr<ClockMap> OffsetMap(int64_t node_id, const RunClock& clock,
                                     Slope slope = Slope::kInterpolate) const;

 private:
  absl::Status NoSamples(int64_t node_id) const;

  std::string name_;
  std::optional<int64_t> reference_node_;
  // The samples of each node, and what the header says about its start, by node id.
  absl::btree_map<int64_t, std::vector<OffsetSample>> samples_;
  absl::btree_map<int64_t, ClockAnchors> anchors_;
  OffsetRowsNotUsed rows_not_used_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_OFFSET_SAMPLES_H_
