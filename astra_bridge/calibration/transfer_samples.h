// How long the collectives of a run took to move their data: what calibration is measured against.
//
// Waiting for the last to arrive is no work of the network, so durations are never used; a transfer
// is last end - last start (skew.h). Where clocks are right the last to arrive has the shortest
// duration of all, which needs no clocks: the two are compared as a check.
#ifndef ASTRA_BRIDGE_CALIBRATION_TRANSFER_SAMPLES_H_
#define ASTRA_BRIDGE_CALIBRATION_TRANSFER_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "astra_bridge/edges/timed_kind.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/hlo/hlo_collective.h"

namespace meridian {

struct TransferSample {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // What one rank puts in.
  int64_t bytes = 0;
  // Position in TransferSamples::groups.
  uint32_t group = 0;
  // Of a permute: how many pairs moved their data at once. 0 for other kinds.
  int32_t pairs = 0;
  // When the last member had started, from the table's base.
  int64_t start_ns = 0;
  double transfer_ns = 0;
  // The shortest duration of a member; of a permute the shortest of a target.
  double shortest_duration_ns = 0;
  // From the first start to the last.
  double arrival_spread_ns = 0;
  // Position in TransferSamples::protocols.
  uint32_t protocol = 0;
  // A member took part in another collective meanwhile.
  bool overlapped = false;
};

struct TransferSamples {
  // How many ranks the run has.
  int32_t ranks = 0;
  // As CommEdge::participants: the members in the order of the program; of a permute, whose pairs
  // are all alike, the source and the target of the first pair.
  std::vector<std::vector<int32_t>> groups;
  // What the kernels were named after, as in CollectiveTable::protocols.
  std::vector<std::string> protocols = {std::string()};
  // In the order of the table.
  std::vector<TransferSample> samples;

  // Instances that give no sample: members are missing; the kind has no model (broadcast, reduce,
  // barrier and the like); nothing is moved, since there are no bytes or nobody else.
  int64_t incomplete = 0;
  int64_t other_kinds = 0;
  int64_t without_transfer = 0;
};

// The table's clocks are to be right: see CheckHappensBefore.
TransferSamples TakeTransfers(const CollectiveTable& table);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TRANSFER_SAMPLES_H_
