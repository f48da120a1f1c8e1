#include "xla_profiler/dependencies/call_index.h"

namespace meridian {

CallIndex::CallIndex(const EventTable& table) {
  for (EventRow row = 0; row < table.size(); ++row) {
    const std::optional<uint64_t> correlation = table.correlation(row);
    if (correlation.value_or(0) == 0) continue;
    if (table.track(table.track_id(row)).kind != TrackKind::kHost) continue;
    const auto [it, is_new] = rows_.try_emplace(*correlation, row);
    if (!is_new && table.start_ps(row) >= table.start_ps(it->second)) it->second = row;
  }
}

std::optional<EventRow> CallIndex::Find(std::optional<uint64_t> correlation) const {
  if (!correlation.has_value()) return std::nullopt;
  const auto it = rows_.find(*correlation);
  return it == rows_.end() ? std::nullopt : std::optional<EventRow>(it->second);
}

}  // namespace meridian
