#include "trace_alignment/collectives/testing/aligned_check.h"

#include <algorithm>
#include <vector>

#include "absl/numeric/int128.h"

namespace meridian {

int64_t OffsetPs(const NodeOffset& node, int64_t time_ps) {
  const std::vector<OffsetKnot>& knots = node.knots;
  const auto after = std::lower_bound(
      knots.begin(), knots.end(), time_ps,
      [](const OffsetKnot& knot, int64_t sought_ps) { return knot.time_ps < sought_ps; });
  if (knots.empty()) return 0;
  if (after == knots.end()) return knots.back().offset_ps;
  if (after == knots.begin() || after->time_ps == time_ps) return after->offset_ps;
  const OffsetKnot& before = *(after - 1);
  if (after->offset_ps == before.offset_ps) return before.offset_ps;
  const absl::int128 gained =
      absl::int128(after->offset_ps - before.offset_ps) * (time_ps - before.time_ps);
  const absl::int128 elapsed = after->time_ps - before.time_ps;
  const absl::int128 rounded_down = gained / elapsed - (gained % elapsed < 0 ? 1 : 0);
  return before.offset_ps + static_cast<int64_t>(rounded_down);
}

HappensBefore CheckAligned(const CollectiveTable& table, const ClockAlignment& alignment) {
  return CheckHappensBefore(table, [&](uint32_t node, int64_t time_ps) {
    return OffsetPs(alignment.nodes[node], time_ps);
  });
}

}  // namespace meridian
