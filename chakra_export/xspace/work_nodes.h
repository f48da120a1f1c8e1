// SPDX-License-Identifier: Apache-2.0
// From device work and matched collectives to the nodes of a graph.
//
//   kernel, copy, fill        COMP
//   collective                COMM_COLL, one for all its kernels
//   permute, send, receive    COMM_SEND and COMM_RECV, one for each pair that the rank is part of
//   communication that a simulator could not run: COMP, with the reason as its op_kind
//
// What a collective takes is its transfer: from when the last member had started to its own end.
// Nodes that follow each other may be made one (MergeWork).
#ifndef CHAKRA_EXPORT_XSPACE_WORK_NODES_H_
#define CHAKRA_EXPORT_XSPACE_WORK_NODES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/xspace/device_work.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/number_range.h"

namespace meridian {

// A stretch of a run's work: by profile and device the positions [first, last) of its work, and those
// of which it stands for: each work is in one stretch's own.
struct WorkRange {
  size_t first = 0;
  size_t last = 0;
  size_t own_first = 0;
  size_t own_last = std::numeric_limits<size_t>::max();
};
using WorkWindow = std::vector<std::vector<WorkRange>>;

struct WorkNodesOptions {
  // The steps whose work becomes nodes; absent for all work.
  std::optional<NumberRange> steps;
  // Only this work becomes nodes; null for all.
  const WorkWindow* window = nullptr;
  // Ranks may lack a profile, or have nothing to do; their collectives with others are unmatched.
  // Otherwise every rank has at least one node, as simulators need it.
  bool allow_missing_ranks = false;
};

struct WorkNodes {
  // The nodes of a rank stand together, in the order of their starts.
  RunGraph graph;
  // Names of nodes that no profile holds.
  std::deque<std::string> names;
  // By profile and event of its collectives: the first node of the event; kNoNodeIndex for none.
  std::vector<std::vector<NodeIndex>> node_of_event;
  // How many device events of each rank are in no node, by reason.
  std::map<int64_t, std::map<std::string, int64_t>> dropped;
  // The profile of each rank; null for a rank that has none.
  std::vector<const ProfileWork*> profile_of_rank;
  // What a person should know, one sentence each.
  std::vector<std::string> notes;
  // Notes that begin with a count of the window's own work: the count by what follows it.
  std::map<std::string, int64_t> counts;
};

// The profiles are those that the collectives were read from, in the same order. A collective that
// ASTRA-sim has no name for becomes the nearest that it has, a rank whose device did nothing one idle
// node, both with a note. InvalidArgument when a rank of the programs is in no profile (unless that is
// allowed), and when nothing ran in the chosen steps.
absl::StatusOr<WorkNodes> MakeWorkNodes(const std::vector<std::unique_ptr<ProfileWork>>& profiles,
                                        const CollectiveRun& run,
                                        const WorkNodesOptions& options = {});

// Makes the same nodes rank by rank, several at once where ranks have little work, and hands each to
// `take`, in no particular order, with an outline of the others (RunGraph::outline); nodes are numbered
// from 0 in each. Returns what there is beside the nodes. Errors are those of MakeWorkNodes and of
// `take`.
absl::StatusOr<WorkNodes> MakeWorkNodesByRank(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run,
    const WorkNodesOptions& options, absl::FunctionRef<absl::Status(int64_t, WorkNodes*)> take);

// Returns the programs of the run as they were compiled, without what was measured: each once, in the
// order in which they first ran, on every rank that they are assigned to, whether or not its profile
// is at hand. The nodes have no times, an instruction each, and data and control edges. A loop's body
// and a conditional's first branch stand for themselves once, with a note. InvalidArgument when no
// program is known. With `undo`, the graph is as near to what the framework asked for as the compiled
// program tells: instructions in place of fusions, no copies, one collective for each tensor of
// combined ones, and the framework's names.
absl::StatusOr<WorkNodes> MakeProgramNodes(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run,
    bool undo = false);

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

#endif  // CHAKRA_EXPORT_XSPACE_WORK_NODES_H_
