// SPDX-License-Identifier: Apache-2.0
// Cells that the engine itself has made, with noise: the truth behind them is known. Ranks have one
// port each (PortFactor).
#ifndef ASTRA_BRIDGE_CALIBRATION_TESTING_SYNTHETIC_CELLS_H_
#define ASTRA_BRIDGE_CALIBRATION_TESTING_SYNTHETIC_CELLS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

struct SyntheticOptions {
  std::vector<CollectiveKind> kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                       CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
  std::vector<int64_t> sizes = {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22};
  int repeats = 15;
  // Standard deviation of the logarithm of a transfer.
  double noise = 0.1;
  uint64_t seed = 1;
};

// A cell without transfers.
TransferCell EmptyCell(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants,
                       int32_t ranks = 4);

// Sets the median of the transfers.
void SummariseCell(TransferCell* cell);

// AssumedFabric with other numbers.
Fabric LinksOf(int32_t ranks, double latency_ns, double gibibytes_per_second);

// Collectives of all ranks of the fabric, as runs of so many ranks would show them. Stops the
// program when the engine cannot carry them.
std::vector<TransferCell> MakeSyntheticCells(const Fabric& truth, absl::Span<const int32_t> ranks,
                                             const SyntheticOptions& options = {});

// Collectives of groups with these members, as a run of all ranks of the network would show them.
std::vector<TransferCell> MakeSyntheticCellsOfGroups(const Fabric& truth,
                                                     absl::Span<const std::vector<int32_t>> members,
                                                     const SyntheticOptions& options = {});

// Cells of all ranks as a run's transfers, each preceded by a slow first repeat.
TransferSamples MakeSyntheticTransfers(const Fabric& truth, int32_t ranks,
                                       const SyntheticOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TESTING_SYNTHETIC_CELLS_H_
