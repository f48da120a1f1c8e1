#include "xla_profiler/collectives/collective_event.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace meridian {

void LookUpGroups(ProfileCollectives* profile, std::optional<uint32_t> local_device) {
  // Devices of one profile are few; its groups can be many.
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, int64_t> known;
  for (CollectiveEvent& event : profile->events) {
    if (local_device.has_value() && event.local_device != *local_device) continue;
    const CollectiveOp& op = profile->ops[event.op];
    if (HasPairs(op.kind) || op.groups.empty() || event.device == kUnknownId) continue;
    const auto [it, inserted] = known.emplace(std::make_pair(event.op, event.device), kUnknownId);
    if (inserted) {
      for (size_t g = 0; g < op.groups.size() && it->second == kUnknownId; ++g) {
        const absl::Span<const int64_t> group = op.groups[g];
        if (std::find(group.begin(), group.end(), event.device) != group.end()) {
          it->second = static_cast<int64_t>(g);
        }
      }
    }
    event.group = it->second;
    if (event.group == kUnknownId) {
      profile->unresolved.Add(
          "no replica group holds the device",
          absl::StrCat(op.module, ": ", op.instruction, " on device ", event.device));
    }
  }
}

}  // namespace meridian
