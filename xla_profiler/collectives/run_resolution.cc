#include "xla_profiler/collectives/run_resolution.h"

#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/collectives/common_subsequence.h"

namespace meridian {
namespace {

// What the run ids of several profiles have in common, program by program.
struct Sharing {
  // Different pairs of program and run id.
  size_t distinct = 0;
  // Run ids that occur in more than one profile.
  size_t shared = 0;
  bool can_be_trusted = false;
};

Sharing CountSharing(absl::Span<const ProfileCollectives> profiles) {
  using ProgramRun = std::pair<absl::string_view, int64_t>;
  absl::flat_hash_map<ProgramRun, size_t> profiles_with;
  std::vector<absl::flat_hash_set<ProgramRun>> runs_of;
  for (const ProfileCollectives& profile : profiles) {
    absl::flat_hash_set<ProgramRun>& runs = runs_of.emplace_back();
    for (const CollectiveEvent& event : profile.events) {
      if (event.run_id.has_value()) runs.insert({profile.ops[event.op].module, *event.run_id});
    }
    for (const ProgramRun& run : runs) ++profiles_with[run];
  }
  Sharing sharing;
  sharing.distinct = profiles_with.size();
  for (const auto& [run, count] : profiles_with) sharing.shared += count > 1 ? 1 : 0;
  // Profiles with run ids, and those of them that share most of theirs. One that begins early, or
  // ends late, has many that nobody shares; those that lie within it have few.
  size_t with_runs = 0, sharing_most = 0;
  for (const absl::flat_hash_set<ProgramRun>& runs : runs_of) {
    const size_t shared =
        absl::c_count_if(runs, [&](const ProgramRun& run) { return profiles_with.at(run) > 1; });
    with_runs += runs.empty() ? 0 : 1;
    sharing_most += 2 * shared > runs.size() ? 1 : 0;
  }
  // A single profile's ids need no witness.
  sharing.can_be_trusted = with_runs > 0 && (profiles.size() == 1 || 2 * sharing_most >= with_runs);
  return sharing;
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

bool HasStep(const CollectiveEvent& event) { return event.step.value_or(kUnknownId) >= 0; }

// Profiles begin in the middle of a step, so a few events may have none.
bool MostEventsHaveAStep(absl::Span<const ProfileCollectives> profiles) {
  size_t with = 0, all = 0;
  for (const ProfileCollectives& profile : profiles) {
    all += profile.events.size();
    with += absl::c_count_if(profile.events, HasStep);
  }
  return 2 * with > all;
}

// Returns the identities of a profile's ops, by position.
std::vector<absl::uint128> OpIdentities(const ProfileCollectives& profile) {
  std::vector<absl::uint128> identities;
  for (const CollectiveOp& op : profile.ops) identities.push_back(OpIdentity(op));
  return identities;
}

// Within a step, the k-th time a device runs an instruction of a program.
void ResolveByStep(absl::Span<const ProfileCollectives> profiles, RunResolution* resolution) {
  for (const ProfileCollectives& profile : profiles) {
    std::vector<EventRun>& runs = resolution->runs.emplace_back(profile.events.size());
    absl::flat_hash_map<std::tuple<int64_t, absl::uint128, uint32_t>, uint32_t> counts;
    const std::vector<absl::uint128> identities = OpIdentities(profile);
    for (size_t i = 0; i < runs.size(); ++i) {
      const CollectiveEvent& event = profile.events[i];
      if (!HasStep(event)) continue;
      runs[i] = {*event.step, counts[{*event.step, identities[event.op], event.local_device}]++};
    }
  }
}

// The events of one device, and what each of them is.
struct DeviceSequence {
  std::vector<size_t> events;
  std::vector<absl::uint128> identities;

  void Add(size_t event, absl::uint128 identity) {
    events.push_back(event);
    identities.push_back(identity);
  }
};

// Returns the sequence of each local device; empty for devices without collectives.
std::vector<DeviceSequence> SequencesOf(const ProfileCollectives& profile) {
  std::vector<DeviceSequence> sequences(profile.devices.size());
  const std::vector<absl::uint128> identities = OpIdentities(profile);
  for (size_t i = 0; i < profile.events.size(); ++i) {
    DeviceSequence& sequence = sequences[profile.events[i].local_device];
    sequence.Add(i, identities[profile.events[i].op]);
  }
  return sequences;
}

// Returns the part of a sequence whose identities the other has, too: what else there is cannot be
// common to both, and would only count as differences.
DeviceSequence Restrict(const DeviceSequence& sequence, const DeviceSequence& other) {
  const absl::flat_hash_set<absl::uint128> known(other.identities.begin(), other.identities.end());
  DeviceSequence part;
  for (size_t i = 0; i < sequence.events.size(); ++i) {
    if (known.contains(sequence.identities[i]))
      part.Add(sequence.events[i], sequence.identities[i]);
  }
  return part;
}

// The first device that runs an op numbers its executions; every other one takes the numbers of its
// counterparts in the longest common subsequence. Mostly the first device runs all ops; but of the
// messages along a pipeline each device knows only its own.
class SubsequenceResolver {
 public:
  explicit SubsequenceResolver(RunResolution* resolution) : resolution_(*resolution) {}

  void Add(const ProfileCollectives& profile) {
    std::vector<EventRun>& runs = resolution_.runs.emplace_back(profile.events.size());
    for (const DeviceSequence& sequence : SequencesOf(profile)) {
      DeviceSequence unknown;
      // The parts whose instructions a reference has, by its position in references_.
      std::map<size_t, DeviceSequence> known;
      for (size_t i = 0; i < sequence.events.size(); ++i) {
        const auto it = reference_of_.find(sequence.identities[i]);
        DeviceSequence& to = it == reference_of_.end() ? unknown : known[it->second];
        to.Add(sequence.events[i], sequence.identities[i]);
      }
      for (const auto& [reference, part] : known) {
        Match(references_[reference], part, profile.trace, &runs);
      }
      AddReference(unknown, &runs);
    }
  }

 private:
  void Match(const DeviceSequence& reference, const DeviceSequence& part, const std::string& trace,
             std::vector<EventRun>* runs) {
    const DeviceSequence shared = Restrict(reference, part);
    const auto common = CommonSubsequence(shared.identities, part.identities);
    if (!common.has_value()) {
      resolution_.notes.push_back(
          absl::StrCat("warning: ", trace, ": its collectives differ from other profiles' in more ",
                       "than ", kMaxSubsequenceEdits, " places; these are not matched"));
      return;
    }
    for (const auto& [in_reference, here] : *common) {
      (*runs)[part.events[here]] = {static_cast<int64_t>(shared.events[in_reference]), 0};
    }
  }

  void AddReference(const DeviceSequence& sequence, std::vector<EventRun>* runs) {
    if (sequence.events.empty()) return;
    DeviceSequence reference;
    for (size_t i = 0; i < sequence.events.size(); ++i) {
      (*runs)[sequence.events[i]] = {static_cast<int64_t>(next_run_), 0};
      reference.Add(next_run_++, sequence.identities[i]);
      reference_of_.emplace(sequence.identities[i], references_.size());
    }
    references_.push_back(std::move(reference));
  }

  RunResolution& resolution_;
  // The sequences that others are compared with; their events are run numbers.
  std::vector<DeviceSequence> references_;
  // Where an op's reference is in references_, by the op's identity.
  absl::flat_hash_map<absl::uint128, size_t> reference_of_;
  size_t next_run_ = 0;
};

// Resolves what nothing but its order tells: ops that say so, within their steps, and, if other
// events have ids, those without (messages, which each rank counts for itself). Where ranks have
// different numbers of them, profiles began or ended at different times, and order does not tell:
// these stay unmatched. Other events of ops of which some event has an id are left alone: theirs is
// lost.
void ResolveByOrder(absl::Span<const ProfileCollectives> profiles, RunResolution* resolution) {
  // Stands for the step of events that are in none.
  constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();
  // What is counted: the executions of an op, in a step if that counts.
  using Counting = std::pair<absl::uint128, int64_t>;
  struct Counted {
    // How many there are, then how many were numbered, by profile and device.
    std::map<std::pair<size_t, uint32_t>, uint32_t> events;
    bool are_as_many = true;
    bool has_ids = false;
  };
  absl::flat_hash_map<Counting, Counted> counted;
  std::vector<std::vector<absl::uint128>> identities;
  for (size_t p = 0; p < profiles.size(); ++p) {
    identities.push_back(OpIdentities(profiles[p]));
    for (const CollectiveEvent& event : profiles[p].events) {
      if (event.run_id.has_value()) counted[{identities[p][event.op], kNoStep}].has_ids = true;
    }
  }
  // Calls fn for each event that is to be resolved here.
  const auto for_each = [&](const auto& fn) {
    for (size_t p = 0; p < profiles.size(); ++p) {
      for (size_t e = 0; e < profiles[p].events.size(); ++e) {
        const CollectiveEvent& event = profiles[p].events[e];
        const bool by_order = profiles[p].ops[event.op].by_order;
        if (!by_order && (resolution->method != RunMethod::kRunId || event.run_id.has_value())) {
          continue;
        }
        const int64_t step = by_order ? event.step.value_or(kNoStep) : kNoStep;
        Counted& of_op = counted[{identities[p][event.op], step}];
        if (of_op.has_ids) continue;
        fn(of_op, std::make_pair(p, event.local_device), step, &resolution->runs[p][e]);
      }
    }
  };
  for_each([](Counted& of_op, const auto& device, int64_t, EventRun*) { ++of_op.events[device]; });
  bool different = false;
  for (auto& [counting, of_op] : counted) {
    for (auto& [device, count] : of_op.events) {
      of_op.are_as_many &= count == of_op.events.begin()->second;
    }
    different |= !of_op.are_as_many;
  }
  for (auto& [counting, of_op] : counted) {
    for (auto& [device, count] : of_op.events) count = 0;
  }
  for_each([](Counted& of_op, const auto& device, int64_t step, EventRun* run) {
    *run = EventRun();
    if (!of_op.are_as_many) return;
    // In different places, for a step may have the number of an event that is in none.
    const uint32_t number = of_op.events[device]++;
    *run = step == kNoStep ? EventRun{number, 0} : EventRun{step, number + 1};
  });
  if (different) {
    resolution->notes.push_back(
        "messages and collectives without arguments of which two ranks have different numbers are "
        "not matched: their profiles began or ended at different times, or they are of different "
        "groups");
  }
}

// Says of what nothing but the order tells how sure it is.
void NoteOrder(absl::Span<const ProfileCollectives> profiles, RunResolution* resolution) {
  size_t by_order = 0, all = 0;
  const CollectiveOp* example = nullptr;
  std::set<absl::string_view> groups;
  for (const ProfileCollectives& profile : profiles) {
    all += profile.events.size();
    for (const CollectiveEvent& event : profile.events) {
      if (!profile.ops[event.op].by_order) continue;
      ++by_order;
      groups.insert(profile.ops[event.op].module);
      if (example == nullptr) example = &profile.ops[event.op];
    }
  }
  if (example == nullptr) return;
  if (2 * by_order > all) resolution->method = RunMethod::kOrder;
  resolution->notes.push_back(absl::StrCat(
      by_order, " of ", all, " collectives carry no arguments (e.g. ", example->instruction,
      "): kind by the host's call or the kernel's name, group taken to be ",
      groups.size() > 1 ? absl::StrCat("that of their kind (", groups.size(), " groups)")
                        : example->module,
      ", executions by their order; right only if all are of it"));
}

}  // namespace

absl::string_view RunMethodName(RunMethod method) {
  // In the order of the enum.
  static constexpr absl::string_view kNames[] = {"run_id", "step", "subsequence", "order"};
  return kNames[static_cast<int>(method)];
}

absl::uint128 OpIdentity(const CollectiveOp& op) {
  ContentHash hash;
  hash.AddText(op.module);
  hash.AddText(op.instruction);
  hash.AddHash(op.program_fingerprint.value_or(0));
  return hash.value();
}

RunResolution ResolveRuns(absl::Span<const ProfileCollectives> profiles) {
  RunResolution resolution;
  const Sharing sharing = CountSharing(profiles);
  const std::string why =
      sharing.distinct == 0
          ? "no collective has a number that is the same on all ranks (a run_id, Comms Id or Seq)"
          : absl::StrCat("only ", sharing.shared, " of ", sharing.distinct,
                         " run ids occur in more than one profile");
  if (sharing.can_be_trusted) {
    ResolveByRunId(profiles, &resolution);
  } else if (MostEventsHaveAStep(profiles)) {
    resolution.method = RunMethod::kStep;
    resolution.notes.push_back(absl::StrCat("executions matched by step number: ", why));
    ResolveByStep(profiles, &resolution);
  } else {
    resolution.method = RunMethod::kSubsequence;
    resolution.notes.push_back(
        absl::StrCat("warning: executions matched by the order of programs and instructions: ", why,
                     " and steps are not marked"));
    SubsequenceResolver resolver(&resolution);
    for (const ProfileCollectives& profile : profiles) resolver.Add(profile);
  }
  ResolveByOrder(profiles, &resolution);
  NoteOrder(profiles, &resolution);
  size_t unmatched = 0;
  for (const std::vector<EventRun>& runs : resolution.runs) {
    unmatched += absl::c_count_if(runs, [](const EventRun& run) { return run.run == kUnknownId; });
  }
  if (unmatched > 0) {
    resolution.notes.push_back(absl::StrCat(unmatched, " collective(s) have no counterpart"));
  }
  return resolution;
}

}  // namespace meridian
