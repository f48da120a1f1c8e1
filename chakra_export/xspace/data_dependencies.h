// SPDX-License-Identifier: Apache-2.0
// Edges for what the programs say: a kernel waits for those that made its operands.
//
// The instruction of a kernel tells what it reads; the producer is the last node of that
// instruction, in the same execution of the program, that came before. A command buffer stands for
// the instructions of the schedule between the ones that were launched right before and right after
// it: its first kernel waits for all that they read, and who reads from them waits for its last.
#ifndef CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_
#define CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_

#include "chakra_export/xspace/work_graph.h"

namespace meridian {

// Adds edges of kinds data and control. The nodes are those of MakeWorkNodes: each stands for one
// piece of work, or for one collective. Programs that cannot be decoded give no edges.
void AddDataDependencies(WorkGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_DATA_DEPENDENCIES_H_
