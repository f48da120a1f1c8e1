// Any bytes as a saved graph, and as the body of one whose checksum is right: a graph that
// is accepted has a longest path, and is saved so that it is read back.
#include <string>

#include "absl/status/statusor.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph_file.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/testing/fuzz.h"

namespace meridian {
namespace {

absl::Status CheckGraph(absl::string_view bytes) {
  const absl::StatusOr<TraceAnalysis> saved = ParseGraph(bytes);
  if (!saved.ok()) return absl::OkStatus();
  FindLongestPath(saved->graph).IgnoreError();
  const std::string file = SerializeGraph(saved->source, saved->graph);
  ASSIGN_OR_RETURN(const TraceAnalysis again, ParseGraph(file));
  return SerializeGraph(again.source, again.graph) == file
             ? absl::OkStatus()
             : absl::InternalError("the graph has changed");
}

}  // namespace
}  // namespace meridian

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  RETURN_IF_ERROR(CheckGraph(bytes));
  return CheckGraph(GraphFile(bytes));
}
