#include "trace_alignment/collectives/skew.h"

#include <algorithm>

#include "absl/types/span.h"

namespace meridian {

std::optional<GroupTiming> TimingOf(const CollectiveTable& table,
                                    const CollectiveInstance& instance) {
  if (!IsSynchronising(table.OpOf(instance).kind) || instance.missing > 0) return std::nullopt;
  const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
  GroupTiming timing;
  timing.last_start_ps = members[0].start_ps;
  int64_t last_end_ps = members[0].end_ps;
  for (uint32_t m = 1; m < members.size(); ++m) {
    last_end_ps = std::max(last_end_ps, members[m].end_ps);
    if (members[m].start_ps > timing.last_start_ps) {
      timing.last_start_ps = members[m].start_ps;
      timing.last_member = m;
    }
  }
  timing.transfer_ps = last_end_ps - timing.last_start_ps;
  return timing;
}

int64_t PairTransferPs(const CollectiveTable& table, const CollectiveInstance& instance,
                       const MemberPair& pair) {
  const CollectiveMember& source = table.MembersOf(instance)[pair.source];
  const CollectiveMember& target = table.MembersOf(instance)[pair.target];
  return target.end_ps - std::max(source.start_ps, target.start_ps);
}

std::vector<RankSkew> SummariseSkew(const CollectiveTable& table) {
  std::vector<RankSkew> ranks(table.node_of_rank().size());
  for (const CollectiveInstance& instance : table.instances()) {
    const std::optional<GroupTiming> timing = TimingOf(table, instance);
    if (!timing.has_value() || instance.member_count < 2) continue;
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    RankSkew& last = ranks[members[timing->last_member].rank];
    ++last.times_last;
    for (const CollectiveMember& member : members) {
      RankSkew& rank = ranks[member.rank];
      ++rank.instances;
      rank.waited_ps += timing->SkewPs(member);
      rank.transfer_ps += std::max<int64_t>(0, member.end_ps - timing->last_start_ps);
      last.wait_caused_ps += timing->SkewPs(member);
    }
  }
  return ranks;
}

}  // namespace meridian
