// SPDX-License-Identifier: Apache-2.0
// A graph saved to a file, to be looked at again without its trace:
//
//   offset  size  content
//   0       8     "MCPGRAPH"
//   8       4     version, 2
//   12      4     CRC-32 of the body
//   16            the body: source and graph as PackedBytes
//
// Numbers are little-endian. The file may be compressed with gzip.
#ifndef CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_
#define CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"

namespace meridian {

// Returns the file's bytes.
std::string SerializeGraph(const GraphSource& source, const PathGraph& graph);

// Returns the bytes of a file with this body.
std::string GraphFile(absl::string_view body);

// InvalidArgument, with the reason, for bytes that SerializeGraph did not write; Unimplemented for
// another version. A graph that is returned is sound: ids are in range, times are within 2^60 ps
// and ranks from -1 to 2^31, so that sums of a few do not overflow.
absl::StatusOr<TraceAnalysis> ParseGraph(absl::string_view bytes);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_
