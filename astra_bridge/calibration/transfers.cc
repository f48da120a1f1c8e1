#include "astra_bridge/calibration/transfers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/collectives/skew.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

constexpr size_t kLeastForSpread = 4;
constexpr double kUnknownSpread = 0.3;
constexpr double kLeastError = 0.02;
// sqrt(pi / 2) standard deviations of a normal distribution, 0.7413 of which are its
// interquartile range.
constexpr double kErrorPerRange = 0.93;

// Returns for each instance whether a member was in another collective at the same time.
std::vector<bool> FindOverlaps(const CollectiveTable& table) {
  struct Part {
    uint32_t rank;
    int64_t start_ps;
    int64_t end_ps;
    uint32_t instance;
  };
  std::vector<Part> parts;
  parts.reserve(table.members().size());
  for (uint32_t i = 0; i < table.instances().size(); ++i) {
    for (const CollectiveMember& member : table.MembersOf(table.instances()[i])) {
      parts.push_back({member.rank, member.start_ps, member.end_ps, i});
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::make_pair(a.rank, a.start_ps) < std::make_pair(b.rank, b.start_ps);
  });
  std::vector<bool> overlapped(table.instances().size());
  const Part* last_to_end = nullptr;
  for (const Part& part : parts) {
    if (last_to_end != nullptr && last_to_end->rank == part.rank &&
        part.start_ps < last_to_end->end_ps) {
      overlapped[part.instance] = true;
      overlapped[last_to_end->instance] = true;
    }
    if (last_to_end == nullptr || last_to_end->rank != part.rank ||
        part.end_ps > last_to_end->end_ps) {
      last_to_end = &part;
    }
  }
  return overlapped;
}

class Taker {
 public:
  explicit Taker(const CollectiveTable& table) : table_(table), overlapped_(FindOverlaps(table)) {
    result_.ranks = static_cast<int32_t>(table.node_of_rank().size());
    result_.protocols = table.protocols();
  }

  TransferSamples TakeAll() {
    for (uint32_t i = 0; i < table_.instances().size(); ++i) Take(i);
    return std::move(result_);
  }

 private:
  void Take(uint32_t position) {
    const CollectiveInstance& instance = table_.instances()[position];
    const MatchedOp& op = table_.OpOf(instance);
    const std::optional<CollectiveKind> kind = TimedKindOf(op.kind);
    if (!kind.has_value()) {
      ++result_.other_kinds;
      return;
    }
    if (instance.missing > 0) {
      ++result_.incomplete;
      return;
    }
    TransferSample sample;
    sample.kind = *kind;
    sample.bytes = op.operand_bytes;
    sample.protocol = instance.protocol;
    sample.overlapped = overlapped_[position];
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      sample.start_ns = std::max(sample.start_ns, FloorToNs(member.start_ps));
    }
    std::vector<int32_t> group;
    if (*kind == CollectiveKind::kPointToPoint) {
      TakePairs(instance, &group, &sample);
    } else {
      TakeGroup(instance, &group, &sample);
    }
    if (group.size() < 2 || sample.bytes <= 0 || sample.transfer_ns <= 0) {
      ++result_.without_transfer;
      return;
    }
    sample.group = PositionOf(std::move(group));
    result_.samples.push_back(sample);
  }

  void TakeGroup(const CollectiveInstance& instance, std::vector<int32_t>* group,
                 TransferSample* sample) {
    const std::optional<GroupTiming> timing = TimingOf(table_, instance);
    if (!timing.has_value()) return;
    sample->transfer_ns = static_cast<double>(timing->transfer_ps) / kPsPerNs;
    int64_t shortest_ps = std::numeric_limits<int64_t>::max();
    int64_t spread_ps = 0;
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      shortest_ps = std::min(shortest_ps, member.end_ps - member.start_ps);
      spread_ps = std::max(spread_ps, timing->SkewPs(member));
    }
    sample->shortest_duration_ns = static_cast<double>(shortest_ps) / kPsPerNs;
    sample->arrival_spread_ns = static_cast<double>(spread_ps) / kPsPerNs;
    for (int64_t rank : table_.groups()[instance.group]) {
      group->push_back(static_cast<int32_t>(rank));
    }
  }

  // The pairs move the same bytes at the same time; their median stands for all.
  void TakePairs(const CollectiveInstance& instance, std::vector<int32_t>* group,
                 TransferSample* sample) {
    const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
    std::vector<double> transfers_ns;
    int64_t shortest_ps = std::numeric_limits<int64_t>::max();
    int64_t spread_ps = 0;
    for (const MemberPair& pair : table_.PairsOf(instance)) {
      const CollectiveMember& source = members[pair.source];
      const CollectiveMember& target = members[pair.target];
      if (source.rank == target.rank) continue;
      if (group->empty()) {
        *group = {static_cast<int32_t>(source.rank), static_cast<int32_t>(target.rank)};
      }
      transfers_ns.push_back(static_cast<double>(PairTransferPs(table_, instance, pair)) /
                             kPsPerNs);
      shortest_ps = std::min(shortest_ps, target.end_ps - target.start_ps);
      spread_ps = std::max(spread_ps, std::abs(source.start_ps - target.start_ps));
    }
    if (transfers_ns.empty()) return;
    sample->pairs = static_cast<int32_t>(transfers_ns.size());
    sample->transfer_ns = Median(std::move(transfers_ns));
    sample->shortest_duration_ns = static_cast<double>(shortest_ps) / kPsPerNs;
    sample->arrival_spread_ns = static_cast<double>(spread_ps) / kPsPerNs;
  }

  uint32_t PositionOf(std::vector<int32_t> group) {
    const uint32_t next = static_cast<uint32_t>(result_.groups.size());
    const auto [found, is_new] = positions_.insert({group, next});
    if (is_new) result_.groups.push_back(std::move(group));
    return found->second;
  }

  const CollectiveTable& table_;
  const std::vector<bool> overlapped_;
  std::map<std::vector<int32_t>, uint32_t> positions_;
  TransferSamples result_;
};

// Returns the name that occurs most often, of several the first.
std::string MostFrequent(const std::map<std::string, int64_t>& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

double RelativeErrorOfMedian(const TransferCell& cell) {
  const std::vector<double>& values = cell.transfers_ns;
  if (values.size() < kLeastForSpread) return kUnknownSpread;
  const double range = Quantile(values, 0.75) - Quantile(values, 0.25);
  const double error = kErrorPerRange * range / std::sqrt(static_cast<double>(values.size()));
  return std::max(kLeastError, error / cell.median_ns);
}

}  // namespace

TransferSamples TakeTransfers(const CollectiveTable& table) { return Taker(table).TakeAll(); }

CellKey KeyOf(const TransferCell& cell) {
  return {cell.kind, cell.bytes, cell.ranks, cell.participants, cell.pairs};
}

CellKey KeyOf(const TransferSamples& run, const TransferSample& sample) {
  return {sample.kind, sample.bytes, run.ranks, run.groups[sample.group], sample.pairs};
}

void SummariseCell(TransferCell* cell) {
  cell->median_ns = Median(cell->transfers_ns);
  cell->relative_error = RelativeErrorOfMedian(*cell);
}

std::vector<TransferCell> MakeTransferCells(absl::Span<const TransferSamples> runs,
                                            const CellOptions& options) {
  std::map<CellKey, TransferCell> cells;
  std::map<CellKey, std::map<std::string, int64_t>> protocols;
  for (const TransferSamples& run : runs) {
    std::map<CellKey, std::vector<const TransferSample*>> repeats_by_cell;
    for (const TransferSample& sample : run.samples) {
      if (sample.overlapped && !options.keep_overlapped) continue;
      repeats_by_cell[KeyOf(run, sample)].push_back(&sample);
    }
    for (const auto& [key, repeats] : repeats_by_cell) {
      TransferCell& cell = cells[key];
      std::tie(cell.kind, cell.bytes, cell.ranks, cell.participants, cell.pairs) = key;
      const size_t first = std::min<size_t>(options.dropped_repeats, repeats.size() - 1);
      for (size_t i = first; i < repeats.size(); ++i) {
        cell.transfers_ns.push_back(repeats[i]->transfer_ns);
        cell.arrival_spreads_ns.push_back(repeats[i]->arrival_spread_ns);
        ++protocols[key][run.protocols[repeats[i]->protocol]];
      }
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
  std::vector<double> differences;
  for (const TransferCell& cell : cells) {
    if (cell.transfers_ns.size() < 2) continue;
    std::vector<double> halves[2];
    for (size_t i = 0; i < cell.transfers_ns.size(); ++i) {
      halves[i % 2].push_back(cell.transfers_ns[i]);
    }
    differences.push_back(std::abs(Median(halves[1]) / Median(halves[0]) - 1));
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
