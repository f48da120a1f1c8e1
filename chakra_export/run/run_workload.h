// SPDX-License-Identifier: Apache-2.0
// From the graph of a run, as its source made it, to one that can be run again: in memory, in
// Chakra traces, in a simulator.
//
//   one order of communication -> hosts folded away (simulation) -> gaps -> transitive reduction ->
//   checks by other means than those that built it
#ifndef CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_
#define CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/run/workload_report.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct RunWorkload {
  ExecutionGraph graph;
  // By node of the graph: its node of the run.
  std::vector<NodeIndex> run_nodes;
  // Its edges, and how long it took and takes; its ranks and files once it is written.
  ChakraWorkloadReport report;
};

// `has_times` is false for programs that have not run. The flavour says whether hosts stay
// (et_files.h); with them every rank begins with a METADATA node for the table of groups.
//
// Changes the run. InvalidArgument for more groups than ASTRA-sim tells apart, in the simulation
// flavour; OutOfRange for more nodes or edges than a graph holds; FailedPrecondition when ranks run
// their collectives in different orders, do not communicate alike, or would wait for each other for
// ever.
absl::StatusOr<RunWorkload> MakeRunWorkload(EtFlavor flavor, bool has_times, RunGraph* run);

// The same in two parts. The first makes the graph of a run, or of one of its ranks
// (RunGraph::outline), and says how long the run took; the second checks and describes what all ranks
// make together.
absl::StatusOr<RunWorkload> BuildRunWorkload(EtFlavor flavor, bool has_times, RunGraph* run);
absl::Status CheckRunWorkload(EtFlavor flavor, bool has_times, RunWorkload* workload);

// Adds the workload of a run, or of one of its ranks, to what is being written, nodes with what all
// runs say of them: op_kind, step, the table of groups. `decorators` add what else is known of a node
// of the run.
absl::Status AddRunWorkload(const RunGraph& run, const RunWorkload& workload,
                            const EtDecorators& decorators, EtWorkloadWriter* writer);

// Writes the workload in place of what is under the prefix (EtWorkloadWriter::Commit). The report
// learns of the ranks and files.
absl::Status WriteRunWorkload(FileSystem& file_system, const RunGraph& run,
                              const std::string& prefix, const EtDecorators& decorators,
                              RunWorkload* workload);

// Returns a report as text for people, without its warnings, which commands print elsewhere.
std::string FormatWorkloadReport(const ChakraWorkloadReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_
