// SPDX-License-Identifier: Apache-2.0
// Edges for what device work waited for; docs/run_graph.md has the rules.
//
//   streams   each runs its work in order
//   data      a kernel waits for those that made its operands: its instruction tells what it reads,
//             and the producer is the last node of that instruction, in the same execution of the
//             program, that came before. A command buffer stands for the instructions of the
//             schedule between the ones that were launched right before and right after it
//   sync      asynchronous instructions (all-gather-start and -done, async-start around a fusion)
//             run on a stream of their own, which their start lets wait for the computation
//             launched before it, and their done the computation launched after it for that stream
//   inferred  work that starts long after all of that, and after its launch, is taken to have waited
//             for what had just ended on another stream of its device (inferred_waits.h)
#ifndef CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_
#define CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_

#include <cstdint>

#include "chakra_export/run/run_graph.h"

namespace meridian {

// Lets each node of a stream wait for the one before it. A stream begins its next work when it has
// done the last; also where the measured times overlap a little, as those of kernels that are
// launched early do.
void AddStreamOrder(RunGraph* graph);

// Adds edges of kinds data, control and sync. The nodes are those of MakeWorkNodes: each stands for
// one piece of work, or for one collective. Programs that cannot be decoded give no edges.
void AddDataDependencies(RunGraph* graph);

// Adds edges of kind inferred to a graph that has all others. Returns how many nodes have one that
// are not beside.
int64_t AddInferredDependencies(RunGraph* graph);

// Does all of that, in this order; returns how many edges are inferred.
int64_t AddDeviceDependencies(RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_
