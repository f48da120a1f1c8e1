// SPDX-License-Identifier: Apache-2.0
// Coarser graphs of a run: nodes that follow each other made one.
#ifndef CHAKRA_EXPORT_XSPACE_MERGED_WORK_H_
#define CHAKRA_EXPORT_XSPACE_MERGED_WORK_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "chakra_export/run/run_graph.h"

namespace meridian {

// How many pieces of work make a node.
enum class WorkGranularity : uint8_t {
  // Every kernel is a node.
  kKernel,
  // Kernels of one instruction, or of one command buffer, that follow each other are one.
  kHlo,
  // So is all computation of a step between two communications of its rank.
  kStep,
};

// Op kind of the nodes that kStep makes.
inline constexpr absl::string_view kStepOpKind = "step";

// Joins nodes that follow each other in the order of their starts, so that edges still lead
// forward; a joint node lasts from the first start to the last end, and costs what all of them do.
// Edges between what was joined go. Communication is never joined, and no computation across the
// end of one.
void MergeWork(WorkGranularity granularity, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_MERGED_WORK_H_
