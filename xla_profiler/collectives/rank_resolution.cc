#include "xla_profiler/collectives/rank_resolution.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

size_t CountDevices(absl::Span<const ProfileCollectives> profiles) {
  size_t count = 0;
  for (const ProfileCollectives& profile : profiles) count += profile.devices.size();
  return count;
}

// The ids of all ranks: what programs are assigned to, and what devices say they are. When nobody
// says anything, ranks are their own ids.
std::vector<int64_t> AllDeviceIds(absl::Span<const ProfileCollectives> profiles) {
  std::set<int64_t> ids;
  for (const ProfileCollectives& profile : profiles) {
    ids.insert(profile.assigned_devices.begin(), profile.assigned_devices.end());
    for (const LocalDevice& device : profile.devices) {
      if (device.global_id != kUnknownId) ids.insert(device.global_id);
    }
  }
  for (int64_t id = 0; ids.size() < CountDevices(profiles); ++id) ids.insert(id);
  return std::vector<int64_t>(ids.begin(), ids.end());
}

void SetDevice(uint32_t local_device, int64_t global_id, DeviceIdSource source,
               ProfileCollectives* profile) {
  profile->devices[local_device].global_id = global_id;
  profile->devices[local_device].source = source;
  for (CollectiveEvent& event : profile->events) {
    if (event.local_device == local_device) event.device = global_id;
  }
}

absl::Status ApplyGiven(const std::vector<int64_t>& given, absl::Span<ProfileCollectives> profiles,
                        RankResolution* resolution) {
  if (given.size() != CountDevices(profiles)) {
    return absl::InvalidArgumentError(absl::StrCat(given.size(), " ranks given for ",
                                                   CountDevices(profiles),
                                                   " devices; expected one per device"));
  }
  size_t next = 0;
  for (ProfileCollectives& profile : profiles) {
    for (uint32_t d = 0; d < profile.devices.size(); ++d) {
      const int64_t rank = given[next++];
      if (rank < 0 || rank >= static_cast<int64_t>(resolution->device_of_rank.size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", rank, " given for ", profile.trace, " (", profile.devices[d].name,
                         ") is not among 0 to ", resolution->device_of_rank.size() - 1));
      }
      const int64_t id = resolution->device_of_rank[rank];
      const LocalDevice& device = profile.devices[d];
      if (device.global_id != kUnknownId && device.global_id != id) {
        resolution->notes.push_back(absl::StrCat(profile.trace, ": ", device.name,
                                                 " says it is device ", device.global_id, ", rank ",
                                                 rank, " was given"));
      }
      SetDevice(d, id, DeviceIdSource::kGiven, &profile);
    }
  }
  return absl::OkStatus();
}

// Devices that nothing tells take the ids that are left, in the order of the files.
void GuessByFileOrder(absl::Span<ProfileCollectives> profiles, RankResolution* resolution) {
  std::set<int64_t> free(resolution->device_of_rank.begin(), resolution->device_of_rank.end());
  for (const ProfileCollectives& profile : profiles) {
    for (const LocalDevice& device : profile.devices) free.erase(device.global_id);
  }
  for (ProfileCollectives& profile : profiles) {
    for (uint32_t d = 0; d < profile.devices.size(); ++d) {
      if (profile.devices[d].global_id != kUnknownId || free.empty()) continue;
      const int64_t id = *free.begin();
      free.erase(free.begin());
      SetDevice(d, id, DeviceIdSource::kFileOrder, &profile);
      resolution->notes.push_back(absl::StrCat(
          "warning: ", profile.trace, ": nothing says which device ", profile.devices[d].name,
          " is; taken for device ", id, " by the order of the files (give --ranks)"));
    }
  }
}

absl::Status CheckUnique(absl::Span<const ProfileCollectives> profiles) {
  absl::flat_hash_map<int64_t, const ProfileCollectives*> owner;
  for (const ProfileCollectives& profile : profiles) {
    for (const LocalDevice& device : profile.devices) {
      const auto [it, inserted] = owner.emplace(device.global_id, &profile);
      if (inserted) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          it->second->trace, " and ", profile.trace, " both hold device ", device.global_id,
          "; are they of different runs, or one file twice? (--ranks overrides)"));
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
  GuessByFileOrder(profiles, &resolution);
  RETURN_IF_ERROR(CheckUnique(profiles));
  for (ProfileCollectives& profile : profiles) {
    bool changed = false;
    std::vector<int64_t>& ranks = resolution.ranks.emplace_back();
    for (const LocalDevice& device : profile.devices) {
      ranks.push_back(resolution.RankOf(device.global_id));
      changed = changed || device.source == DeviceIdSource::kGiven ||
                device.source == DeviceIdSource::kFileOrder;
    }
    if (changed) LookUpGroups(&profile);
  }
  return resolution;
}

}  // namespace meridian
