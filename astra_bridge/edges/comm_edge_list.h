// SPDX-License-Identifier: Apache-2.0
// Lists of comm edges, JSONL: one edge a line.
//
//   {"edge_id": "step3/grads", "op_kind": "AR", "size_bytes": 67108864, "participants": [0,1,2,3]}
//   {"edge_id": "act7", "op_kind": "P2P", "size_bytes": 4096, "src_rank": 3, "dst_rank": 4}
//   {"edge_id": "tp9", "op_kind": "AG", "size_bytes": 1024, "participants": [0,1],
//    "collective_algo": "ring", "topology_key": "nvlink"}
#ifndef ASTRA_BRIDGE_EDGES_COMM_EDGE_LIST_H_
#define ASTRA_BRIDGE_EDGES_COMM_EDGE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/edges/comm_edge.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct CommEdgeList {
  // The comm edges, in the order of the file.
  std::vector<CommEdge> edges;
  // How many lines said again what another had said.
  int64_t duplicates_dropped = 0;
};

// Parses the text of a list. A member that is null counts as absent; the name of the group (group_id)
// is ignored, and a member that is not known refused. Two different edges of one id are InvalidArgument
// that names both lines; so is every other error, with "source:line: ".
absl::StatusOr<CommEdgeList> ParseCommEdges(absl::string_view jsonl, absl::string_view source);

// Reads a file of them, plain or gzip.
absl::StatusOr<CommEdgeList> ReadCommEdges(FileSystem& file_system, const std::string& path,
                                           const InputFileOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_EDGES_COMM_EDGE_LIST_H_
