// SPDX-License-Identifier: Apache-2.0
// From Chakra traces to a graph, which keeps what running the workload again needs. Tensors, say,
// are left out.
#ifndef CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_
#define CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

struct EtGraphReaderOptions : EtReaderOptions {
  // The ranks of groups. Of a group that is not here a METADATA node may list the ranks; else those
  // that use it are its members.
  CommGroups groups;
  // Leave out dependencies on ids that no node has, of which traces by other tools are full.
  bool ignore_dangling = false;
  // How many were left out is added to this. May be null.
  int64_t* dangling = nullptr;
  // Called for each node, for what the graph does not keep; an error ends the reading. May be null.
  std::function<absl::Status(NodeIndex index, const ChakraProtoMsg::Node& node)> visit;
};

// Reads the traces of a workload, nodes in the order of ranks and files.
//   edges      data dependencies, of the kinds that dep_kinds says; control dependencies
//   times      exact ones where the attributes start_ns and duration_ns are given
//   resources  of host nodes the thread (tid), of device nodes the stream; without one kCompute or
//              kCommunication
//   groups     "" for all ranks, which are those of the files
// InvalidArgument with file, offset, node and reason for an id that occurs twice, a dependency that
// is no node, attributes that cannot be meant, times out of range and groups that disagree.
absl::StatusOr<ExecutionGraph> ReadEtGraph(FileSystem& file_system, const EtFiles& files,
                                           const EtGraphReaderOptions& options = {});

// The same of traces in memory, by rank.
absl::StatusOr<ExecutionGraph> ReadEtGraph(const std::vector<std::string>& traces);

// Return when the node started, as Unix time (kNoTimeNs when it does not say), and how long it
// took, from its exact attributes or else from the fields in microseconds.
absl::StatusOr<int64_t> StartNsOf(const ChakraProtoMsg::Node& node);
absl::StatusOr<int64_t> DurationNsOf(const ChakraProtoMsg::Node& node);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_
