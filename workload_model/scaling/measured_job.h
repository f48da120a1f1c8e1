// SPDX-License-Identifier: Apache-2.0
// The Chakra traces of a job, and the mesh that its groups make of its ranks.
#ifndef WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_
#define WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "workload_model/models/rank_mesh.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// What a rank communicates over one set of axes.
struct AxisTraffic {
  int64_t communications = 0;
  int64_t bytes = 0;
  // The bytes of the largest one.
  int64_t largest = 0;
  // How many of them are messages, or all-to-alls.
  int64_t messages = 0;
  int64_t all_to_alls = 0;
};

class MeasuredJob {
 public:
  // InvalidArgument when the groups are no rows of one mesh, and for nodes of which copies would not fit
  // together: ids that occur twice, dependencies that are no node, and cycles.
  static absl::StatusOr<MeasuredJob> Read(FileSystem& file_system, const std::string& prefix);

  const RankMesh& mesh() const { return mesh_; }
  // The traces, by rank, and their graph.
  const std::vector<std::string>& paths() const { return paths_; }
  const ExecutionGraph& graph() const { return graph_; }
  // Returns the node that comes first in the rank's trace; the others follow in its order.
  NodeIndex FirstNode(int64_t rank) const { return first_nodes_[static_cast<size_t>(rank)]; }

  // Returns the other rank of a message.
  int64_t PeerOf(NodeIndex node) const;

  // Returns the axes over which a node communicates.
  absl::StatusOr<AxisRange> AxesOf(NodeIndex node) const;

  // Returns for each set of axes what that rank communicates over it which communicates most: a middle
  // rank has all that the others have, and messages both ways.
  absl::StatusOr<std::map<AxisRange, AxisTraffic>> Traffic() const;

 private:
  std::vector<std::string> paths_;
  ExecutionGraph graph_;
  std::vector<NodeIndex> first_nodes_;
  // By the graph's number of the group.
  std::vector<AxisRange> axes_of_group_;
  RankMesh mesh_;
};

// Says what the axes of a mesh are for (scaling.h); new lengths are the old ones.
std::vector<ScaledAxis> DescribeAxes(const RankMesh& mesh,
                                     const std::map<AxisRange, AxisTraffic>& traffic);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_
