// From a graph to Chakra traces, one per rank. ReadEtGraph reads the same graph again.
#ifndef CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_
#define CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_workload_files.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct EtGraphWriterOptions {
  // Appends .gz to the names.
  bool gzip = false;
  // Of every file; the version is added when it has none.
  ChakraProtoMsg::GlobalMetadata metadata;
  // Adds to a node what the graph does not hold, or changes what it says; may be null.
  std::function<void(NodeIndex node, ChakraProtoMsg::Node* message)> decorate;
};

// Writes PREFIX.<rank>.et for each rank of the graph, nodes in the order of ids, and returns the
// files in the order of ranks. Every edge becomes a data dependency, since not every reader looks
// at control dependencies; the attribute dep_kinds says which they are. Durations are rounded to
// microseconds so that their sum along a resource is never off by more than half of one; the exact
// times are attributes.
// InvalidArgument for an id that occurs twice on a rank and an edge between ranks, before anything
// is written; no file is replaced before all are on the disk.
absl::StatusOr<std::vector<EtFile>> WriteEtGraph(FileSystem& file_system,
                                                 const ExecutionGraph& graph,
                                                 absl::string_view prefix,
                                                 const EtGraphWriterOptions& options = {});

// Writes a workload whose ranks are in several graphs, so that they need not be held all at once.
//
//   EtWorkloadWriter writer(file_system, prefix);
//   for (...) RETURN_IF_ERROR(writer.Add(graph_of_some_ranks));
//   ASSIGN_OR_RETURN(const WrittenWorkload written, writer.Commit(rank_count));
class EtWorkloadWriter {
 public:
  EtWorkloadWriter(FileSystem& file_system, std::string prefix)
      : file_system_(file_system), prefix_(std::move(prefix)) {}

  // Puts the traces on the disk as WriteEtGraph does, under no name yet. A rank is in one graph;
  // groups of one name are of the same ranks in all.
  absl::Status Add(const ExecutionGraph& graph, const EtGraphWriterOptions& options = {});

  // As CommitWorkload, with the groups of the graphs. Nothing may be called afterwards.
  absl::StatusOr<WrittenWorkload> Commit(int64_t rank_count);

 private:
  FileSystem& file_system_;
  const std::string prefix_;
  CommGroups groups_;
  std::vector<PreparedTrace> traces_;
};

// The same for a workload in one graph.
absl::StatusOr<WrittenWorkload> WriteEtWorkload(FileSystem& file_system,
                                                const ExecutionGraph& graph,
                                                const std::string& prefix, int64_t rank_count,
                                                const EtGraphWriterOptions& options = {});

// Returns the groups of the graph apart from that of all ranks.
CommGroups GroupsOf(const ExecutionGraph& graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_
