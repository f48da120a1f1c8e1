#include "astra_bridge/calibration/transfer_cells.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

struct CellSamples {
  std::vector<double> transfers_ns;
  std::vector<double> arrival_spreads_ns;
  std::vector<std::string> protocols;
};

std::map<CellKey, CellSamples> GroupSamples(const TransferSamples& run, bool keep_overlapped) {
  std::map<CellKey, CellSamples> cells;
  for (const TransferSample& sample : run.samples) {
    if (sample.overlapped && !keep_overlapped) continue;
    CellSamples& cell = cells[KeyOf(run, sample)];
    cell.transfers_ns.push_back(sample.transfer_ns);
    cell.arrival_spreads_ns.push_back(sample.arrival_spread_ns);
    cell.protocols.push_back(run.protocols[sample.protocol]);
  }
  return cells;
}

template <typename T>
void AppendAfter(const std::vector<T>& from, size_t dropped, std::vector<T>* to) {
  to->insert(to->end(), from.begin() + std::min(dropped, from.size() - 1), from.end());
}

// Of as many, the first by name.
std::string MostFrequent(const std::vector<std::string>& names) {
  std::map<std::string, int64_t> counts;
  for (const std::string& name : names) ++counts[name];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

CellKey KeyOf(const TransferCell& cell) {
  return {cell.kind, cell.bytes, cell.ranks, cell.participants, cell.pairs};
}

CellKey KeyOf(const TransferSamples& run, const TransferSample& sample) {
  return {sample.kind, sample.bytes, run.ranks, run.groups[sample.group], sample.pairs};
}

void SummariseCell(TransferCell* cell) {
  cell->median_ns = Median(cell->transfers_ns);
  cell->relative_error = RelativeErrorOfMedian(cell->transfers_ns);
}

std::vector<TransferCell> MakeTransferCells(absl::Span<const TransferSamples> runs,
                                            const CellOptions& options) {
  std::map<CellKey, TransferCell> cells;
  std::map<CellKey, std::vector<std::string>> protocols;
  for (const TransferSamples& run : runs) {
    for (const auto& [key, samples] : GroupSamples(run, options.keep_overlapped)) {
      TransferCell& cell = cells[key];
      std::tie(cell.kind, cell.bytes, cell.ranks, cell.participants, cell.pairs) = key;
      const size_t dropped = static_cast<size_t>(options.dropped_repeats);
      AppendAfter(samples.transfers_ns, dropped, &cell.transfers_ns);
      AppendAfter(samples.arrival_spreads_ns, dropped, &cell.arrival_spreads_ns);
      AppendAfter(samples.protocols, dropped, &protocols[key]);
    }
  }
  std::vector<TransferCell> result;
  for (auto& [key, cell] : cells) {
    SummariseCell(&cell);
    cell.protocol = MostFrequent(protocols[key]);
    result.push_back(std::move(cell));
  }
  return result;
}

std::optional<double> NoiseFloor(absl::Span<const TransferCell> cells) {
  // What ran once has no halves to differ.
  std::vector<double> differences;
  for (const TransferCell& cell : cells) {
    if (cell.transfers_ns.size() < 2) continue;
    differences.push_back(SplitHalfDifference(cell.transfers_ns));
  }
  if (differences.empty()) return std::nullopt;
  return Mean(differences);
}

CommEdge EdgeOf(const TransferCell& cell) {
  CommEdge edge;
  edge.id = absl::StrCat(CollectiveKindName(cell.kind), " of ", cell.bytes, " bytes by ",
                         GroupText(cell), " ranks");
  edge.kind = cell.kind;
  edge.bytes = cell.bytes;
  edge.participants = cell.participants;
  return edge;
}

std::string GroupText(const TransferCell& cell) {
  return absl::StrCat(cell.pairs > 1 ? absl::StrCat(cell.pairs, " pairs from ") : "", "{",
                      absl::StrJoin(cell.participants, ","), "} of ", cell.ranks);
}

int64_t LargestHop(const TransferCell& cell) {
  int64_t largest = 0;
  for (size_t i = 0; i < cell.participants.size(); ++i) {
    const int64_t from = cell.participants[i];
    const int64_t to = cell.participants[(i + 1) % cell.participants.size()];
    const int64_t apart = std::abs(to - from);
    largest = std::max(largest, std::min(apart, cell.ranks - apart));
  }
  return largest;
}

}  // namespace meridian
