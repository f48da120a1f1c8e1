// SPDX-License-Identifier: Apache-2.0
// From the graph of a run, as its source made it, to one that can be run again: in memory, in
// Chakra traces, in a simulator.
//
//   one order of communication -> hosts folded away (simulation) -> gaps -> transitive reduction ->
//   checks by other means than those that built it
#ifndef CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_
#define CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/run_graph.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct RunWorkload {
  ExecutionGraph graph;
  // By node of the graph: its node of the run.
  std::vector<NodeIndex> run_nodes;
  // How many edges were removed since others imply them.
  size_t removed_edges = 0;
  // How long the run took; how long it takes when it is run again with the durations of its nodes,
  // as it ran and with one computation and one communication of a rank at a time, as simulators do;
  // how much of the ranks' time host gaps of their devices are (HostGapShare). 0 for a run without
  // times.
  int64_t measured_ns = 0;
  int64_t replayed_ns = 0;
  int64_t simulator_ns = 0;
  double host_gap_share = 0;
  // What a person should know, one sentence each.
  std::vector<std::string> notes;
};

// `has_times` is false for programs that have not run. The flavour says whether hosts stay
// (et_files.h); with them every rank begins with a METADATA node for the table of groups.
//
// Changes the run. InvalidArgument for more groups than ASTRA-sim tells apart, in the simulation
// flavour; OutOfRange for more nodes or edges than a graph holds; FailedPrecondition when ranks run
// their collectives in different orders, do not communicate alike, or would wait for each other for
// ever.
absl::StatusOr<RunWorkload> MakeRunWorkload(EtFlavor flavor, bool has_times, RunGraph* run);

// Writes the workload in place of what is under the prefix (EtWorkloadWriter::Commit), nodes with what
// all runs say of them: op_kind, step, the table of groups. `decorate` adds what else is known of a
// node of the run.
absl::StatusOr<WrittenWorkload> WriteRunWorkload(FileSystem& file_system, const RunGraph& run,
                                                 const RunWorkload& workload,
                                                 const std::string& prefix,
                                                 const EtNodeDecorator& decorate);

// Sets what the reports of all converters say about a workload.
template <typename Report>
void DescribeWorkload(const RunWorkload& workload, const WrittenWorkload& written, Report* report) {
  const std::map<std::string, int64_t> edges = workload.graph.CountEdgeKinds();
  report->mutable_edges()->insert(edges.begin(), edges.end());
  report->set_measured_ns(workload.measured_ns);
  report->set_replayed_ns(workload.replayed_ns);
  report->set_simulator_ns(workload.simulator_ns);
  report->set_host_gap_share(workload.host_gap_share);
  report->set_comm_groups(written.comm_groups);
  report->mutable_removed()->Add(written.removed.begin(), written.removed.end());
}

// Returns the line of a report about the times: "measured 310.567 ms, replayed 310.567 ms, ...";
// simulator_ns is 0 for a workload that simulators could not run.
std::string FormatRunTimes(int64_t measured_ns, int64_t replayed_ns, int64_t simulator_ns,
                           double host_gap_share);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_RUN_WORKLOAD_H_
