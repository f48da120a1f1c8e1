// SPDX-License-Identifier: Apache-2.0
// What one node measured about its neighbours' clocks, window by window
// (`probe_windows_node<N>.jsonl`):
//
//   {"meta":true,"node_id":0,"start_walltime_ns":W,"start_gpu_ns":G}
//   {"window_start_ns":1000,"window_end_ns":2000,"window_id":3,"round_id":3,"node_id":0,
//    "edges":[{"dst":1,"alpha":0.0000001234,"beta":-123456,"pairs":40,"lost":2}]}
//
// Windows are on the measuring node's clock. Within one,
//
//   dst clock - src clock at src time t = beta + alpha * (t - window_start).
#ifndef TRACE_ALIGNMENT_PROBES_PROBE_WINDOWS_H_
#define TRACE_ALIGNMENT_PROBES_PROBE_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/probes/probe_solver.h"

namespace meridian {

// One neighbour in one window.
struct ProbeWindowEdge {
  // Node ids: who measured, and whose clock.
  int64_t src = 0;
  int64_t dst = 0;
  int64_t round_id = 0;
  // Unix time on the clock of src.
  int64_t window_start_ns = 0;
  int64_t window_end_ns = 0;
  // How much faster the clock of dst runs than that of src, as a fraction.
  double alpha = 0;
  // Clock of dst - clock of src at window_start_ns.
  int64_t beta_ps = 0;
  // How many probes the fit rests on, and how many got lost.
  int64_t pairs = 0;
  int64_t lost = 0;
};

// Reads the edges of all windows, in file order and each neighbour once per round; `name` stands for
// the path in errors. InvalidArgument "file:line: reason; expected e.g. ..." for what cannot be read and for
// contradictory rows (both lines are named).
absl::StatusOr<std::vector<ProbeWindowEdge>> ParseProbeWindows(absl::string_view contents,
                                                               const std::string& name);

struct WindowEstimates {
  std::vector<ProbeEdge> edges;
  // How many windows were left out: for too few pairs or too much loss, for a rate or offset that
  // no clock has, or because alpha and beta are both 0, which is how writers say that there was no
  // fit.
  int64_t rejected = 0;
};

// Takes each window to its middle. Weights are the pairs that arrived, less in proportion to the
// loss.
WindowEstimates EstimatesFromWindows(const std::vector<ProbeWindowEdge>& windows);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_PROBE_WINDOWS_H_
