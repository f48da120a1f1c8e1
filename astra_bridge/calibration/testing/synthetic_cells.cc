#include "astra_bridge/calibration/testing/synthetic_cells.h"

#include <cmath>
#include <random>
#include <utility>

#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/util/check.h"

namespace meridian {
namespace {

constexpr double kFirstRepeat = 10;

// The sum of twelve even draws is as good as normal, and the same on all machines.
double DrawNormal(std::mt19937_64* random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>((*random)() >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

Fabric RingOf(int32_t ranks, double latency_ns, double gibibytes_per_second) {
  Fabric fabric = AssumedFabric(ranks);
  fabric.network.dimensions[0].latency_ns = latency_ns;
  fabric.network.dimensions[0].bytes_per_ns = GibibytesPerSecondToBytesPerNs(gibibytes_per_second);
  return fabric;
}

std::vector<TransferCell> MakeSyntheticCells(const Fabric& truth, absl::Span<const int32_t> ranks,
                                             const SyntheticOptions& options) {
  std::vector<TransferCell> cells;
  for (CommKind kind : options.kinds) {
    for (int64_t bytes : options.sizes) {
      for (int32_t count : ranks) {
        TransferCell cell;
        cell.kind = kind;
        cell.bytes = bytes;
        cell.ranks = count;
        for (int32_t rank = 0; rank < count; ++rank) cell.participants.push_back(rank);
        cells.push_back(std::move(cell));
      }
    }
  }
  const auto times_ns = EngineTimesNs(truth, cells);
  MERIDIAN_CHECK(times_ns.ok());
  std::mt19937_64 random(options.seed);
  for (size_t i = 0; i < cells.size(); ++i) {
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      cells[i].transfers_ns.push_back((*times_ns)[i] *
                                      std::exp(options.noise * DrawNormal(&random)));
      cells[i].arrival_spreads_ns.push_back(0);
    }
    SummariseCell(&cells[i]);
  }
  return cells;
}

TransferSamples MakeSyntheticTransfers(const Fabric& truth, int32_t ranks,
                                       const SyntheticOptions& options) {
  TransferSamples transfers;
  transfers.ranks = ranks;
  for (const TransferCell& cell : MakeSyntheticCells(truth, {ranks}, options)) {
    if (transfers.groups.empty()) transfers.groups.push_back(cell.participants);
    TransferSample sample;
    sample.kind = cell.kind;
    sample.bytes = cell.bytes;
    sample.transfer_ns = kFirstRepeat * cell.transfers_ns[0];
    sample.shortest_duration_ns = sample.transfer_ns;
    transfers.samples.push_back(sample);
    for (double transfer_ns : cell.transfers_ns) {
      sample.transfer_ns = transfer_ns;
      sample.shortest_duration_ns = transfer_ns;
      transfers.samples.push_back(sample);
    }
  }
  return transfers;
}

}  // namespace meridian
