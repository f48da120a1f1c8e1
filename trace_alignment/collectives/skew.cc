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

}  // namespace meridian
