#include "astra_bridge/calibration/transfer_samples.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "astra_bridge/calibration/robust_statistics.h"
#include "trace_alignment/collectives/skew.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// By instance: whether a member was in another collective at the same time.
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

}  // namespace

TransferSamples TakeTransfers(const CollectiveTable& table) { return Taker(table).TakeAll(); }

}  // namespace meridian
