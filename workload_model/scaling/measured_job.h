// SPDX-License-Identifier: Apache-2.0
// The Chakra traces of a job, and the mesh that its groups make of its ranks.
#ifndef WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_
#define WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_reader.h"
#include "third_party/chakra/et_def.pb.h"
#include "workload_model/models/rank_mesh.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// What the attributes of a communication node say.
struct CommunicationNode {
  bool is_message = false;
  // What a collective does; that of messages means nothing.
  ChakraProtoMsg::CollectiveCommType type = ChakraProtoMsg::ALL_REDUCE;
  std::optional<int64_t> bytes;
  // The other rank of a message.
  int64_t peer = 0;
};

// InvalidArgument for attributes that cannot be meant, and for a message without a peer.
absl::StatusOr<CommunicationNode> ReadCommunication(const ChakraProtoMsg::Node& node);

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
  // The traces, by rank.
  const std::vector<std::string>& paths() const { return paths_; }
  absl::StatusOr<EtReader> Open(FileSystem& file_system, int64_t rank) const;

  // Returns the axes over which the rank's node communicates.
  absl::StatusOr<AxisRange> AxesOf(const ChakraProtoMsg::Node& node, int64_t rank) const;

  // Returns for each set of axes what that rank communicates over it which communicates most: a middle
  // rank has all that the others have, and messages both ways.
  absl::StatusOr<std::map<AxisRange, AxisTraffic>> Traffic(FileSystem& file_system) const;

 private:
  std::vector<std::string> paths_;
  std::map<std::string, AxisRange> axes_of_group_;
  RankMesh mesh_;
};

// Says what the axes of a mesh are for (scaling.h); new lengths are the old ones.
std::vector<ScaledAxis> DescribeAxes(const RankMesh& mesh,
                                     const std::map<AxisRange, AxisTraffic>& traffic);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_SCALING_MEASURED_JOB_H_
