// SPDX-License-Identifier: Apache-2.0
// Whole steps of a run, simulated and measured: the graph of the run, as it is exported, is replayed
// with simulated communication (prediction/iteration_prediction.h). Also how much a rank computed
// while it communicated: computation takes from the device what moves the data, and the other way
// round.
#ifndef ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/timing/fabric.h"
#include "chakra_export/xspace/device_work.h"

namespace meridian {

class CommunicationMatch;
class ExecutionGraph;
struct WorkloadEdges;

class ComputeBeside {
 public:
  // Adds what the ranks of a graph did, and returns the share of the time of its communication,
  // from the start of each node to its end, in which a resource of the same rank computed; 0 when
  // there is none. `computes` says by node whether it is computation; what has no start counts for
  // nothing. Edges are those of the match, which is the graph's.
  double Add(const ExecutionGraph& graph, const std::vector<bool>& computes,
             const CommunicationMatch& match, const WorkloadEdges& edges);

  struct Shares {
    // The share in which the ranks of the cell computed themselves.
    double own = 0;
    // The share in which a rank outside of its group computed, in the mean of those ranks.
    double others = 0;
  };
  // Returns the shares of the time of a cell's transfers in all that was added; nullopt when there
  // is none of them. Permutes of all pairs are taken together.
  std::optional<Shares> SharesOf(const TransferCell& cell) const;

 private:
  struct Times {
    double all_ns = 0;
    double beside_ns = 0;
    double others_ns = 0;
  };
  // Kind, bytes, ranks of the run, sorted members of a collective.
  using Key = std::tuple<CollectiveKind, int64_t, int32_t, std::vector<int32_t>>;

  static Key KeyFor(CollectiveKind kind, int64_t bytes, int32_t ranks,
                    std::vector<int32_t> members);

  std::map<Key, Times> times_;
};

// What steps are simulated with.
struct StepModel {
  const Fabric& fabric;
  const Corrections& corrections;
  // How far transfers scatter (CalibrationReport::spreads); may be empty. A step waits for the
  // slowest of what runs at once, and is longer than its medians make it: it is scheduled several
  // times with transfers that are drawn from the spreads, and takes the mean.
  const google::protobuf::RepeatedPtrField<TransferSpread>& spreads;
  // How far the predictions of transfers may be off.
  const PredictionIntervals& intervals;
};

// Adds the step, or everything when none is named, to the report's steps, and what ranks computed
// meanwhile. The profiles of the run lie in the folder. Equal input gives equal reports.
absl::Status CheckStep(const ProfiledRun& profiles, const std::string& folder,
                       std::optional<int64_t> step, const StepModel& model, bool allow_violations,
                       SimulationCheckReport* report, ComputeBeside* beside);

// Sums up the report's steps, those that took time.
void SummariseSteps(SimulationCheckReport* report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
