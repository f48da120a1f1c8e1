// How much a rank computed while it communicated: computation takes from the device what moves the
// data, and the other way round.
#ifndef ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_
#define ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class ComputeBeside {
 public:
  // Adds what the ranks of a graph did. Edges are those of its match; nodes without a start, and
  // gaps of the host, are no computation.
  void Add(const ExecutionGraph& graph, const CommunicationMatch& match,
           const WorkloadEdges& edges);
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
  using Key = std::tuple<CommKind, int64_t, int32_t, std::vector<int32_t>>;

  static Key KeyFor(CommKind kind, int64_t bytes, int32_t ranks, std::vector<int32_t> members);

  std::map<Key, Times> times_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_COMPUTE_BESIDE_H_
