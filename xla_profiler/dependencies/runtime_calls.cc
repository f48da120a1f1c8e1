#include "xla_profiler/dependencies/runtime_calls.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace meridian {
namespace {

// Returns "EventQuery" for cudaEventQuery, cuEventQuery_v2 and hipEventQuery; empty for other
// names.
absl::string_view ApiName(absl::string_view name) {
  // "cuda" first: "cu" is its prefix.
  if (!absl::ConsumePrefix(&name, "cuda") && !absl::ConsumePrefix(&name, "cu") &&
      !absl::ConsumePrefix(&name, "hip")) {
    return "";
  }
  return name.substr(0, name.find('_'));
}

}  // namespace

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

std::optional<DeviceDependencyKind> FindSyncKind(absl::string_view call_name) {
  static const auto* const kKinds =
      new absl::flat_hash_map<absl::string_view, DeviceDependencyKind>({
          {"StreamWaitEvent", DeviceDependencyKind::kEventWait},
          {"EventSynchronize", DeviceDependencyKind::kEventSync},
          {"EventQuery", DeviceDependencyKind::kEventSync},
          {"StreamSynchronize", DeviceDependencyKind::kStreamSync},
          {"DeviceSynchronize", DeviceDependencyKind::kDeviceSync},
          {"CtxSynchronize", DeviceDependencyKind::kDeviceSync},
      });
  const auto it = kKinds->find(ApiName(call_name));
  return it == kKinds->end() ? std::nullopt : std::optional<DeviceDependencyKind>(it->second);
}

bool IsBlockingCopy(absl::string_view call_name, absl::string_view copy_name) {
  const absl::string_view api = ApiName(call_name);
  if (!absl::StartsWith(api, "Memcpy")) return false;
  return !absl::StrContains(api, "Async") || absl::StrContains(copy_name, "-> Pageable");
}

std::vector<SyncCall> FindSyncCalls(const EventTable& table) {
  // Names are few, rows many.
  std::vector<std::optional<DeviceDependencyKind>> kinds;
  kinds.reserve(table.names().size());
  for (NameId name = 0; name < table.names().size(); ++name) {
    kinds.push_back(FindSyncKind(table.names().Get(name)));
  }
  std::vector<SyncCall> calls;
  for (EventRow row = 0; row < table.size(); ++row) {
    const std::optional<DeviceDependencyKind> kind = kinds[table.name_id(row)];
    if (!kind.has_value() || table.track(table.track_id(row)).kind != TrackKind::kHost) continue;
    calls.emplace_back();
    calls.back().kind = *kind;
    calls.back().call = row;
  }
  return calls;
}

}  // namespace meridian
