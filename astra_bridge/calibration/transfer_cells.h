// Transfers of the same kind, bytes and group: one cell, one vote.
#ifndef ASTRA_BRIDGE_CALIBRATION_TRANSFER_CELLS_H_
#define ASTRA_BRIDGE_CALIBRATION_TRANSFER_CELLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/transfer_samples.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {

struct TransferCell {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  // How many ranks the run has.
  int32_t ranks = 0;
  // As in TransferSamples.
  std::vector<int32_t> participants;
  int32_t pairs = 0;

  // What the kernels of most transfers were named after, e.g. "RING_LL"; empty: nothing. Kernels do
  // more than they are named after, so only a change of name says something.
  std::string protocol;
  // In the order they happened.
  std::vector<double> transfers_ns;
  // By transfer: from the first arrival to the last.
  std::vector<double> arrival_spreads_ns;
  // The value of the cell.
  double median_ns = 0;
  // Standard error of the median, relative to it.
  double relative_error = 0;
};

// What the transfers of a cell have in common: kind, bytes, ranks, participants, pairs.
using CellKey = std::tuple<CollectiveKind, int64_t, int32_t, std::vector<int32_t>, int32_t>;
CellKey KeyOf(const TransferCell& cell);
CellKey KeyOf(const TransferSamples& run, const TransferSample& sample);

// Sets median and error from the transfers, of which there is at least one.
void SummariseCell(TransferCell* cell);

struct CellOptions {
  // The first repeats of a cell in each run, which warm up connections and buffers. A cell that has
  // no more keeps its last.
  int dropped_repeats = 1;
  // Use transfers that met another collective of the same rank, too.
  bool keep_overlapped = false;
};

// Sorted by their keys. Runs of the same number of ranks share cells.
std::vector<TransferCell> MakeTransferCells(absl::Span<const TransferSamples> runs,
                                            const CellOptions& options = {});

// Returns the mean split-half difference of the cells that have several transfers; nullopt when
// none has.
std::optional<double> NoiseFloor(absl::Span<const TransferCell> cells);

// The cell as something to be timed.
CommEdge EdgeOf(const TransferCell& cell);

// Returns e.g. "{0,1,2,3} of 4", and for a permute of several pairs "4 pairs from {0,1} of 4".
std::string GroupText(const TransferCell& cell);

// Returns how many ranks lie from one member to the next at most, the shorter way around the run:
// 2 for {0,2} of 4. What a ring charges grows with it; networks of other shapes may have other
// distances.
int64_t LargestHop(const TransferCell& cell);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TRANSFER_CELLS_H_
