// From Chakra traces to a graph. It keeps what running again needs; tensors, say, are left out.
#ifndef CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_
#define CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct EtGraphReaderOptions {
  InputFileOptions input;
  // The ranks of groups. Those that METADATA nodes list come next; else the ranks that use a group
  // are its members.
  CommGroups groups;
  // Leave out dependencies on ids that no node has, of which traces by other tools are full.
  bool ignore_dangling = false;
  // Called for each node, for what the graph does not keep; an error ends the reading. May be null.
  std::function<absl::Status(NodeIndex index, const ChakraProtoMsg::Node& node)> visit;
  EtProgress progress;
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

// Returns when the node started (kNoTimeNs when it does not say) and how long it took, from its
// exact attributes or else from the fields in microseconds.
absl::StatusOr<int64_t> StartNsOf(const ChakraProtoMsg::Node& node);
absl::StatusOr<int64_t> DurationNsOf(const ChakraProtoMsg::Node& node);

// Returns what runs the node.
absl::StatusOr<Resource> ResourceOf(const ChakraProtoMsg::Node& node, int64_t rank);

// True for collectives, sends and receives.
bool IsCommunication(ChakraProtoMsg::NodeType type);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_ET_GRAPH_READER_H_
