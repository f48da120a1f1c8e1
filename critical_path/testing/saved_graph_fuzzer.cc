// Any bytes as a saved graph, and as the body of one whose size and checksum are right: a graph that
// is accepted has a longest path, and is saved so that it is read back.
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph_file.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/testing/fuzz.h"

namespace meridian {
namespace {

std::string LittleEndian(uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> 8 * i));
  return out;
}

absl::Status CheckGraph(absl::string_view bytes) {
  const absl::StatusOr<SavedGraph> saved = ParseGraph(bytes);
  if (!saved.ok()) return absl::OkStatus();
  FindLongestPath(saved->graph).IgnoreError();
  ASSIGN_OR_RETURN(const std::string file, SerializeGraph(saved->source, saved->graph));
  ASSIGN_OR_RETURN(const SavedGraph again, ParseGraph(file));
  ASSIGN_OR_RETURN(const std::string same, SerializeGraph(again.source, again.graph));
  return same == file ? absl::OkStatus() : absl::InternalError("the graph has changed");
}

}  // namespace
}  // namespace meridian

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  RETURN_IF_ERROR(CheckGraph(bytes));
  return CheckGraph(absl::StrCat("MCPGRAPH", LittleEndian(1, 4), LittleEndian(bytes.size(), 8),
                                 LittleEndian(GraphFileChecksum(bytes), 8), bytes));
}
