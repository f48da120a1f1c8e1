#include "xla_profiler/collectives/run_resolution.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/collectives/common_subsequence.h"
#include "xla_profiler/util/stable_hash.h"

namespace meridian {
namespace {

// How many of the distinct run ids occur in more than one profile.
struct Sharing {
  size_t shared = 0;
  size_t distinct = 0;
  size_t events_without = 0;
};

Sharing CountSharing(absl::Span<const ProfileCollectives> profiles) {
  Sharing sharing;
  absl::flat_hash_map<int64_t, size_t> profiles_with;
  for (const ProfileCollectives& profile : profiles) {
    absl::flat_hash_set<int64_t> ids;
    for (const CollectiveEvent& event : profile.events) {
      if (event.run_id.has_value()) {
        ids.insert(*event.run_id);
      } else {
        ++sharing.events_without;
      }
    }
    for (int64_t id : ids) ++profiles_with[id];
  }
  sharing.distinct = profiles_with.size();
  for (const auto& [id, count] : profiles_with) sharing.shared += count > 1 ? 1 : 0;
  return sharing;
}

// A single profile's ids need no witness; of several, most must be shared.
bool RunIdsCanBeTrusted(absl::Span<const ProfileCollectives> profiles, const Sharing& sharing) {
  if (sharing.distinct == 0) return false;
  return profiles.size() == 1 || 2 * sharing.shared > sharing.distinct;
}

void ResolveByRunId(absl::Span<const ProfileCollectives> profiles, RunResolution* resolution) {
  for (const ProfileCollectives& profile : profiles) {
    std::vector<EventRun>& runs = resolution->runs.emplace_back(profile.events.size());
    for (size_t i = 0; i < runs.size(); ++i) {
      const CollectiveEvent& event = profile.events[i];
      if (event.run_id.has_value()) {
        // Ids are 64 bits of anything; -1 is taken.
        runs[i] = {*event.run_id == kUnknownId ? INT64_MIN : *event.run_id, event.occurrence};
      }
    }
  }
}

bool EveryEventHasAStep(absl::Span<const ProfileCollectives> profiles) {
  for (const ProfileCollectives& profile : profiles) {
    for (const CollectiveEvent& event : profile.events) {
      if (!event.step.has_value()) return false;
    }
  }
  return true;
}

// Within a step, the k-th time a device runs an op of a program.
void ResolveByStep(absl::Span<const ProfileCollectives> profiles, RunResolution* resolution) {
  for (const ProfileCollectives& profile : profiles) {
    std::vector<EventRun>& runs = resolution->runs.emplace_back(profile.events.size());
    std::map<std::tuple<int64_t, uint32_t, uint32_t>, uint32_t> counts;
    for (size_t i = 0; i < runs.size(); ++i) {
      const CollectiveEvent& event = profile.events[i];
      runs[i] = {*event.step, counts[{*event.step, event.op, event.local_device}]++};
    }
  }
}

// The events of one device, and what each of them is.
struct DeviceSequence {
  std::vector<size_t> events;
  std::vector<uint64_t> identities;
};

DeviceSequence SequenceOf(const ProfileCollectives& profile, uint32_t local_device) {
  DeviceSequence sequence;
  for (size_t i = 0; i < profile.events.size(); ++i) {
    if (profile.events[i].local_device != local_device) continue;
    sequence.events.push_back(i);
    sequence.identities.push_back(OpIdentity(profile.ops[profile.events[i].op]));
  }
  return sequence;
}

// The first device's sequence numbers the executions; every other device takes the numbers of its
// counterparts in the longest common subsequence.
void ResolveBySubsequence(absl::Span<const ProfileCollectives> profiles,
                          RunResolution* resolution) {
  std::optional<DeviceSequence> reference;
  for (const ProfileCollectives& profile : profiles) {
    std::vector<EventRun>& runs = resolution->runs.emplace_back(profile.events.size());
    for (uint32_t device = 0; device < profile.devices.size(); ++device) {
      DeviceSequence sequence = SequenceOf(profile, device);
      if (!reference.has_value()) {
        for (size_t i = 0; i < sequence.events.size(); ++i) {
          runs[sequence.events[i]] = {static_cast<int64_t>(i), 0};
        }
        reference = std::move(sequence);
        continue;
      }
      for (const auto& [in_reference, here] :
           CommonSubsequence(reference->identities, sequence.identities)) {
        runs[sequence.events[here]] = {static_cast<int64_t>(in_reference), 0};
      }
    }
  }
}

}  // namespace

absl::string_view RunMethodName(RunMethod method) {
  switch (method) {
    case RunMethod::kRunId:
      return "run_id";
    case RunMethod::kStep:
      return "step";
    case RunMethod::kSubsequence:
      return "subsequence";
  }
  return "";
}

uint64_t OpIdentity(const CollectiveOp& op) {
  StableHash hash;
  hash.AddText(op.module);
  hash.AddText(op.instruction);
  hash.AddNumber(op.program_fingerprint.value_or(0));
  return hash.value();
}

RunResolution ResolveRuns(absl::Span<const ProfileCollectives> profiles) {
  RunResolution resolution;
  const Sharing sharing = CountSharing(profiles);
  if (RunIdsCanBeTrusted(profiles, sharing)) {
    ResolveByRunId(profiles, &resolution);
    if (sharing.events_without > 0) {
      resolution.notes.push_back(
          absl::StrCat(sharing.events_without, " collective(s) have no run_id and no counterpart"));
    }
    return resolution;
  }
  const std::string why = sharing.distinct == 0
                              ? "no collective has a run_id"
                              : absl::StrCat("only ", sharing.shared, " of ", sharing.distinct,
                                             " run ids occur in more than one profile");
  if (EveryEventHasAStep(profiles)) {
    resolution.method = RunMethod::kStep;
    resolution.notes.push_back(absl::StrCat("executions matched by step number: ", why));
    ResolveByStep(profiles, &resolution);
  } else {
    resolution.method = RunMethod::kSubsequence;
    resolution.notes.push_back(
        absl::StrCat("warning: executions matched by the order of programs and instructions: ", why,
                     " and steps are not marked"));
    ResolveBySubsequence(profiles, &resolution);
  }
  return resolution;
}

}  // namespace meridian
