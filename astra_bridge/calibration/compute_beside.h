// How much a rank computed while it communicated: computation takes from the device what moves the
// data, and the other way round.
#ifndef ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_
#define ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

// Returns whether a node of an exported trace is computation. Not all COMP nodes are: by their
// op_kind, some are gaps of the host, and some collectives that a simulator could not run
// (chakra_export/xspace/work_nodes.h). InvalidArgument for an op_kind that is no text.
absl::StatusOr<bool> IsComputation(const ChakraProtoMsg::Node& node);

class ComputeBeside {
 public:
  // Adds what the ranks of a graph did. `computes` says by node whether it is computation; what has
  // no start counts for nothing. Edges are those of the match, which is the graph's.
  void Add(const ExecutionGraph& graph, const std::vector<bool>& computes,
           const CommunicationMatch& match, const WorkloadEdges& edges);
  void Add(const ComputeBeside& other);

  // Returns the share of the time of all communication, from the start of each node to its end, in
  // which a resource of the same rank computed; 0 when there is none.
  double ShareOfAll() const;
  // Returns the same of a cell's transfers; nullopt when there is none of them. Permutes of all
  // pairs are taken together.
  std::optional<double> ShareOf(const TransferCell& cell) const;

 private:
  struct Times {
    double all_ns = 0;
    double beside_ns = 0;
  };
  // Kind, bytes, ranks of the run, sorted members of a collective.
  using Key = std::tuple<CollectiveKind, int64_t, int32_t, std::vector<int32_t>>;

  static Key KeyFor(CollectiveKind kind, int64_t bytes, int32_t ranks,
                    std::vector<int32_t> members);

  std::map<Key, Times> times_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_
