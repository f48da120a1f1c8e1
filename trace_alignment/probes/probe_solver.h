// SPDX-License-Identifier: Apache-2.0
// From what pairs of nodes measured about each other's clocks to each node's offset from the
// reference, round by round:
//
//        100 ns                 Edges are undirected with a sign: 0 -> 1 of 100 ns says the same as
//    0 ---------> 1             1 -> 0 of -100 ns. Around a loop the offsets must add up to zero;
//     \           |             what is missing (here 30 ns) is distributed over its edges in the
//      \ 230 ns   | 100 ns      least-squares sense, by weight (here, with equal weights, 10 ns
//       `-------> 2             each: node 1 is 110 ns ahead, node 2 220 ns).
//
// The offset of edge e at src time t is offset + rate * (t - midpoint_src); all edges of a round
// are taken to one instant M of the reference clock before they are compared.
#ifndef TRACE_ALIGNMENT_PROBES_PROBE_SOLVER_H_
#define TRACE_ALIGNMENT_PROBES_PROBE_SOLVER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/clocks/offset_samples.h"

namespace meridian {

// A measured difference between two nodes.
struct DifferenceLink {
  int src = 0;
  int dst = 0;
  // Positive.
  double weight = 0;
};

// Returns the values x of the nodes 0 to num_nodes - 1, which the links connect, for one measured
// difference per link: those that minimise
//
//   sum over links of  weight * (x_dst - x_src - difference)^2   with x_0 = 0.
std::vector<double> FitDifferences(const std::vector<DifferenceLink>& links, int num_nodes,
                                   const std::vector<double>& differences);

// What two nodes measured about each other in one round.
struct ProbeEdge {
  // How far offset_ps and rate can be from the truth, either way.
  struct Bounds {
    int64_t offset_ps = 0;
    double rate = 0;
  };

  // Node ids of the two ends, src and dst.
  int64_t src = 0;
  int64_t dst = 0;
  int64_t round_id = 0;
  // When the estimate holds, Unix time on the clock of src.
  int64_t midpoint_src_ns = 0;
  // Clock of dst - clock of src at that time.
  int64_t offset_ps = 0;
  // How much faster the clock of dst runs than that of src, as a fraction; between -1 and 1.
  double rate = 0;
  // Positive; inverse to the variance, up to a factor that all edges share.
  double weight = 1;
  // Absent when the measurement gives none.
  std::optional<Bounds> bounds;
};

// Returns a sample for each round and node that edges connect to the reference in it, the reference
// itself included. Drift is relative to the reference. The uncertainty follows from the edges'
// bounds; it is unknown when some edge of the round has none. OutOfRange when clocks are more than
// 106 days apart.
absl::StatusOr<std::vector<OffsetSample>> SolveProbes(const std::vector<ProbeEdge>& edges,
                                                      int64_t reference_node);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_PROBE_SOLVER_H_
