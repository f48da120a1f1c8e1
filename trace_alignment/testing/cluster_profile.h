// SPDX-License-Identifier: Apache-2.0
// The profiles of a synthetic cluster, one per node, in the form that JAX writes on GPUs:
//
//   /host:metadata     module jit_step with its HLO
//   /device:GPU:<d>    Stream #14: a fusion before each collective; Stream #20: the NCCL kernels R
//   /host:CPU          python3, one thread per device: Execute (run_id, replica, partition)
//                      around thunks and launches S Host Threads/<n>: the driver's calls R
//   Task Environment   start and stop of the session S
//
// Names set traps for whoever goes by them: fusions are called "input_reduce_fusion.1", and an
// all-reduce "psum.1".
#ifndef TRACE_ALIGNMENT_TESTING_CLUSTER_PROFILE_H_
#define TRACE_ALIGNMENT_TESTING_CLUSTER_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

// What the node's profiler wrote, on the node's clocks.
XSpaceProto RecordedProfile(const SyntheticCluster& cluster, int64_t node);

using PlaneSink = std::function<void(XPlaneProto plane)>;

// The same plane by plane, for profiles beyond protobuf's 2 GiB: each whole, in the profile's order.
// One plane must be smaller than that, and fit into memory.
void ForEachRecordedPlane(const SyntheticCluster& cluster, int64_t node, const PlaneSink& take);

// The same if all clocks were the reference's host clock: the truth, event by event.
XSpaceProto TrueProfile(const SyntheticCluster& cluster, int64_t node);

// The name of a node's host, as in its profile.
std::string ClusterHostName(int64_t node);

// The run_id of a step, equal on all ranks.
int64_t ClusterRunId(int64_t step);

// The name of the instruction of a collective, e.g. "psum.1".
std::string ClusterInstruction(const SyntheticCluster& cluster, size_t collective);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_CLUSTER_PROFILE_H_
