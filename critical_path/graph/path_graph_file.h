// SPDX-License-Identifier: Apache-2.0
// A graph saved to a file, to be looked at again without its trace:
//
//   offset  size  content
//   0       8     "MCPGRAPH"
//   8       4     version, 1
//   12      8     size of the body
//   20      8     checksum of the body (GraphFileChecksum)
//   28            the body, a PathGraphFile message (path_graph_file.proto)
//
// Numbers are little-endian. The file may be compressed with gzip. About 30 bytes per event, 10
// when compressed.
#ifndef CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_
#define CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"

namespace meridian {

struct SavedGraph {
  GraphSource source;
  PathGraph graph;
};

// Returns the checksum of a body: its size, then its bytes eight at a time, the first one lowest,
// each number x taken in by sum = (sum ^ x) * 0x9E3779B97F4A7C15; sum ^= sum >> 32.
uint64_t GraphFileChecksum(absl::string_view body);

// Returns the file's bytes. OutOfRange when the body would not fit 2 GiB.
absl::StatusOr<std::string> SerializeGraph(const GraphSource& source, const PathGraph& graph);

// InvalidArgument, with the reason, for bytes that SerializeGraph did not write; Unimplemented for
// another version. A graph that is returned is sound: ids are in range, times are within 2^60 ps
// and ranks from -1 to 2^31, so that sums of a few do not overflow.
absl::StatusOr<SavedGraph> ParseGraph(absl::string_view bytes);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_PATH_GRAPH_FILE_H_
