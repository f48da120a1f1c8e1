#include "astra_bridge/calibration/testing/synthetic_cells.h"

#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/physics.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

constexpr double kFirstRepeat = 10;

// The sum of twelve even draws is as good as normal, and the same on all machines.
double DrawNormal(std::mt19937_64* random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>((*random)() >> 11) * 0x1p-53;
  return sum;
}

struct Group {
  std::vector<int32_t> members;
  // Of the run.
  int32_t ranks = 0;
};

std::vector<TransferCell> CellsOfGroups(const Fabric& truth, const std::vector<Group>& groups,
                                        const SyntheticOptions& options) {
  std::vector<TransferCell> cells;
  for (CollectiveKind kind : options.kinds) {
    for (int64_t bytes : options.sizes) {
      for (const Group& group : groups) {
        TransferCell cell;
        cell.kind = kind;
        cell.bytes = bytes;
        cell.ranks = group.ranks;
        cell.participants = group.members;
        cells.push_back(std::move(cell));
      }
    }
  }
  const auto times_ns = EngineTimesNs(truth, cells);
  MERIDIAN_CHECK(times_ns.ok());
  std::mt19937_64 random(options.seed);
  for (size_t i = 0; i < cells.size(); ++i) {
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      cells[i].transfers_ns.push_back(PortFactor(truth, cells[i]) * (*times_ns)[i] *
                                      std::exp(options.noise * DrawNormal(&random)));
    }
    SummariseCell(&cells[i]);
  }
  return cells;
}

}  // namespace

TransferCell EmptyCell(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants,
                       int32_t ranks) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = ranks;
  cell.participants = std::move(participants);
  return cell;
}

void SummariseCell(TransferCell* cell) { cell->median_ns = Median(cell->transfers_ns); }

Fabric LinksOf(int32_t ranks, double latency_ns, double gibibytes_per_second) {
  Fabric fabric = AssumedFabric({ranks});
  fabric.network.dimensions[0].latency_ns = latency_ns;
  fabric.network.dimensions[0].bytes_per_ns = GibibytesPerSecondToBytesPerNs(gibibytes_per_second);
  return fabric;
}

std::vector<TransferCell> MakeSyntheticCells(const Fabric& truth, absl::Span<const int32_t> ranks,
                                             const SyntheticOptions& options) {
  std::vector<Group> groups;
  for (int32_t count : ranks) {
    Group all{std::vector<int32_t>(static_cast<size_t>(count)), count};
    std::iota(all.members.begin(), all.members.end(), 0);
    groups.push_back(std::move(all));
  }
  return CellsOfGroups(truth, groups, options);
}

std::vector<TransferCell> MakeSyntheticCellsOfGroups(const Fabric& truth,
                                                     absl::Span<const std::vector<int32_t>> members,
                                                     const SyntheticOptions& options) {
  std::vector<Group> groups;
  for (const std::vector<int32_t>& group : members) {
    groups.push_back({group, static_cast<int32_t>(truth.network.npus())});
  }
  return CellsOfGroups(truth, groups, options);
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
    transfers.samples.push_back(sample);
    for (double transfer_ns : cell.transfers_ns) {
      sample.transfer_ns = transfer_ns;
      transfers.samples.push_back(sample);
    }
  }
  return transfers;
}

}  // namespace meridian
