// SPDX-License-Identifier: Apache-2.0
// The programs of a run as they were compiled, without what was measured: each once, in the order
// in which they first ran, on every rank that they are assigned to. Costs come from the HLO, so a
// simulator has to price them (a roofline).
//
// A loop's body and a conditional's first branch stand for themselves once, with a note.
#ifndef CHAKRA_EXPORT_XSPACE_PROGRAM_NODES_H_
#define CHAKRA_EXPORT_XSPACE_PROGRAM_NODES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/work_nodes.h"
#include "trace_alignment/collectives/collective_run.h"

namespace meridian {

// The nodes have no times, an instruction each, and data and control edges. All ranks of the
// programs' device assignments have nodes, whether or not their profile is at hand. InvalidArgument
// when no program is known.
absl::StatusOr<WorkNodes> MakeProgramNodes(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_PROGRAM_NODES_H_
