#include "xla_profiler/collectives/rank_resolution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

bool HasNoId(const LocalDevice& device) { return device.global_id == kUnknownId; }

size_t CountDevices(absl::Span<const ProfileCollectives> profiles) {
  size_t count = 0;
  for (const ProfileCollectives& profile : profiles) count += profile.devices.size();
  return count;
}

// The ids of all ranks: what programs are assigned to, and what devices say they are. When nobody
// says anything, devices are numbered.
std::vector<int64_t> AllDeviceIds(absl::Span<const ProfileCollectives> profiles) {
  absl::flat_hash_set<int64_t> ids;
  for (const ProfileCollectives& profile : profiles) {
    ids.insert(profile.assigned_devices.begin(), profile.assigned_devices.end());
    for (const LocalDevice& device : profile.devices) {
      if (device.global_id != kUnknownId) ids.insert(device.global_id);
    }
  }
  if (ids.empty()) {
    for (size_t i = 0; i < CountDevices(profiles); ++i) ids.insert(static_cast<int64_t>(i));
  }
  std::vector<int64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Hands the ids of devices that were given one here on to their events.
void UpdateEvents(ProfileCollectives* profile) {
  std::set<uint32_t> changed;
  for (CollectiveEvent& event : profile->events) {
    const LocalDevice& device = profile->devices[event.local_device];
    if (event.device == device.global_id) continue;
    event.device = device.global_id;
    changed.insert(event.local_device);
  }
  for (const uint32_t device : changed) LookUpGroups(profile, device);
}

void AssumeAllRanks(const IdGroups& all, ProfileCollectives* profile) {
  std::set<uint32_t> assumed;
  for (uint32_t op = 0; op < profile->ops.size(); ++op) {
    CollectiveOp& assuming = profile->ops[op];
    if (!assuming.by_order || !assuming.groups.empty() || HasPairs(assuming.kind)) continue;
    assuming.groups = all;
    assumed.insert(op);
  }
  for (CollectiveEvent& event : profile->events) {
    if (assumed.count(event.op) > 0) event.group = 0;
  }
}

absl::Status ApplyGiven(const std::vector<int64_t>& given, absl::Span<ProfileCollectives> profiles,
                        RankResolution* resolution) {
  if (given.size() != CountDevices(profiles)) {
    return InvalidArgument(given.size(), " ranks given for ", CountDevices(profiles),
                           " devices; expected one per device");
  }
  size_t next = 0;
  for (ProfileCollectives& profile : profiles) {
    for (LocalDevice& device : profile.devices) {
      const int64_t rank = given[next++];
      if (rank < 0 || rank >= static_cast<int64_t>(resolution->device_of_rank.size())) {
        return InvalidArgument("rank ", rank, " given for ", profile.trace, " (", device.name,
                               ") is not among 0 to ", resolution->device_of_rank.size() - 1);
      }
      const int64_t id = resolution->device_of_rank[rank];
      if (device.global_id != kUnknownId && device.global_id != id) {
        resolution->notes.push_back(absl::StrCat(profile.trace, ": ", device.name,
                                                 " says it is device ", device.global_id, ", rank ",
                                                 rank, " was given"));
      }
      device.global_id = id;
    }
  }
  return absl::OkStatus();
}

// Returns the ranks in the names of profiles whose only device nothing tells, by position; nothing
// unless all have one that is free.
std::map<size_t, int64_t> RanksInNames(absl::Span<const ProfileCollectives> profiles,
                                       std::set<int64_t> free) {
  std::vector<size_t> open;
  std::vector<std::string> names;
  for (size_t p = 0; p < profiles.size(); ++p) {
    const std::vector<LocalDevice>& devices = profiles[p].devices;
    if (absl::c_none_of(devices, HasNoId)) continue;
    if (devices.size() != 1) return {};
    open.push_back(p);
    names.push_back(profiles[p].trace);
  }
  const std::optional<std::vector<int64_t>> in_names = RanksInFileNames(names);
  std::map<size_t, int64_t> ranks;
  for (size_t i = 0; i < open.size() && in_names.has_value(); ++i) {
    if (free.erase((*in_names)[i]) == 0) return {};
    ranks[open[i]] = (*in_names)[i];
  }
  return ranks;
}

// Devices that nothing tells take the ids in the names of their files, else those that are left, in
// the order of the files.
absl::Status GuessByFiles(absl::Span<ProfileCollectives> profiles, RankResolution* resolution) {
  std::set<int64_t> free(resolution->device_of_rank.begin(), resolution->device_of_rank.end());
  for (const ProfileCollectives& profile : profiles) {
    for (const LocalDevice& device : profile.devices) free.erase(device.global_id);
  }
  for (const auto& [p, rank] : RanksInNames(profiles, free)) {
    profiles[p].devices[0].global_id = rank;
    resolution->notes.push_back(absl::StrCat(
        "warning: ", profiles[p].trace, ": nothing in it says which rank it is; taken for rank ",
        rank, " by its name"));
  }
  for (ProfileCollectives& profile : profiles) {
    for (LocalDevice& device : profile.devices) {
      if (!HasNoId(device)) continue;
      if (free.empty()) {
        return InvalidArgument(profile.trace, ": nothing says which device ", device.name,
                               " is, and all ", resolution->device_of_rank.size(),
                               " devices of the run are taken");
      }
      device.global_id = *free.begin();
      free.erase(free.begin());
      resolution->notes.push_back(
          absl::StrCat("warning: ", profile.trace, ": nothing says which device ", device.name,
                       " is; taken for device ", device.global_id, " by the order of the files"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnique(absl::Span<const ProfileCollectives> profiles) {
  absl::flat_hash_map<int64_t, const ProfileCollectives*> owner;
  for (const ProfileCollectives& profile : profiles) {
    for (const LocalDevice& device : profile.devices) {
      const auto [it, inserted] = owner.emplace(device.global_id, &profile);
      if (inserted) continue;
      return InvalidArgument(it->second->trace, " and ", profile.trace, " both hold device ",
                             device.global_id, "; are they of different runs, or one file twice?");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t RankResolution::RankOf(int64_t device) const {
  const auto it = std::lower_bound(device_of_rank.begin(), device_of_rank.end(), device);
  if (it == device_of_rank.end() || *it != device) return kUnknownId;
  return it - device_of_rank.begin();
}

absl::StatusOr<RankResolution> ResolveRanks(absl::Span<ProfileCollectives> profiles,
                                            const RankOptions& options) {
  RankResolution resolution;
  resolution.device_of_rank = AllDeviceIds(profiles);
  if (!options.given_ranks.empty()) {
    RETURN_IF_ERROR(ApplyGiven(options.given_ranks, profiles, &resolution));
  }
  RETURN_IF_ERROR(GuessByFiles(profiles, &resolution));
  RETURN_IF_ERROR(CheckUnique(profiles));
  const IdGroups all = {resolution.device_of_rank};
  for (ProfileCollectives& profile : profiles) {
    UpdateEvents(&profile);
    AssumeAllRanks(all, &profile);
    std::vector<int64_t>& ranks = resolution.ranks.emplace_back();
    for (const LocalDevice& device : profile.devices) {
      ranks.push_back(resolution.RankOf(device.global_id));
    }
  }
  return resolution;
}

}  // namespace meridian
