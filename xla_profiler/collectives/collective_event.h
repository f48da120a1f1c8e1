// SPDX-License-Identifier: Apache-2.0
// A collective as it ran: what, who, which execution, when. Every trace source makes the same of
// its files; whoever uses them need not know from which they come.
//
//   CollectiveOp     an instruction of a program: kind, bytes, groups         once per profile
//   CollectiveEvent  one execution of an op on one device                     millions
#ifndef XLA_PROFILER_COLLECTIVES_COLLECTIVE_EVENT_H_
#define XLA_PROFILER_COLLECTIVES_COLLECTIVE_EVENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// Ops of different profiles are one op when module, instruction and fingerprint are equal. Kind,
// bytes and pairs must then be equal, too: those of the first profile count for all. A source
// without programs puts the group into `module`, and into `instruction` what is equal on all ranks
// (name, type and bytes), as kineto_collectives.h does.
struct CollectiveOp {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The program, and the instruction that communicates (not its start or done).
  std::string module;
  std::string instruction;
  // Equal on all ranks that run the same program; absent when the profile has no HLO or it is
  // damaged.
  std::optional<absl::uint128> program_fingerprint;
  // What one participant puts in and gets out; 0 when it is not known.
  int64_t operand_bytes = 0;
  int64_t output_bytes = 0;
  // Global device ids; empty groups, or pairs, when they are not known. The members of a group come
  // in the same order on all ranks, and the first one of a broadcast or reduce is taken for its
  // root. Two groups of one op differ in their first member or size. Pairs are all pairs of the op:
  // a source that knows only its own message has an op of kind kSend or kRecv for it, with one pair
  // and an instruction that names both ends.
  IdGroups groups;
  std::vector<SourceTargetPair> pairs;
  // Of a send or receive without pairs: an execution is the one send and the one receive of its
  // module, whoever they are.
  bool pairs_are_members = false;
  // The profile does not say who takes part, nor in which execution: a group that must be it is
  // taken (without any, all ranks of the run), and executions are matched by their order alone.
  bool by_order = false;
};

// Stands for "not known" in ids that are never negative.
inline constexpr int64_t kUnknownId = -1;

struct CollectiveEvent {
  // Positions in ProfileCollectives::ops and ::devices.
  uint32_t op = 0;
  uint32_t local_device = 0;
  // Global device id, or kUnknownId.
  int64_t device = kUnknownId;
  // Position in the op's groups of the one that holds the device; kUnknownId for pairs, and when no
  // group does.
  int64_t group = kUnknownId;
  // Equal on all ranks for the same execution of a program, and different for different executions
  // of one module; absent when it could not be told.
  std::optional<int64_t> run_id;
  // How many times the device has run this op before in the same run.
  uint32_t occurrence = 0;
  // The user's step around the launch, when the program marks steps.
  std::optional<int64_t> step;
  // First start and last end of its communication kernels, in ps from ProfileCollectives::base_ns.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // How long it ran, where these only tell between which times; 0 when that is not known. Absent
  // where it ran from start to end.
  std::optional<int64_t> ran_ps;
  // Stream or thread of the first kernel, and its correlation id (0 when there is none).
  int64_t line_id = 0;
  uint64_t correlation_id = 0;
  // How many kernels, thunks or ops the execution consists of.
  uint32_t kernels = 0;
};

struct LocalDevice {
  // Plane name for XSpace, device index for Kineto.
  std::string name;
  int64_t global_id = kUnknownId;
};

// Things that could not be resolved, by reason, with how often and the first example.
class UnresolvedCounts {
 public:
  struct Entry {
    int64_t count = 0;
    std::string example;
  };

  void Add(const std::string& reason, const std::string& example) {
    Entry& entry = entries_[reason];
    if (entry.count++ == 0) entry.example = example;
  }

  // What could not be resolved, by reason, in alphabetical order.
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

// All collectives of one profile.
struct ProfileCollectives {
  // The path of the file.
  std::string trace;
  // Unix time that the events' times count from. It lies near the first event: all events of a run
  // must lie within kMaxRunTimePs (40 hours) of the earliest base of its profiles.
  int64_t base_ns = 0;
  std::vector<CollectiveOp> ops;
  // In order of their starts; those of equal starts as they were found.
  std::vector<CollectiveEvent> events;
  std::vector<LocalDevice> devices;
  // Every global device id that a program of this profile is assigned to, ascending. A rank is a
  // position in the union of these over all profiles, so a source that states ranks lists all from
  // 0 to the last, also those of other processes.
  std::vector<int64_t> assigned_devices;
  // How many ranks the profile says that its job has; absent when it does not say.
  std::optional<int64_t> stated_ranks;
  UnresolvedCounts unresolved;
};

// Sets the groups of a device's events, or of all when none is named, from the device's id and the
// ops' groups; an event whose device no group holds is counted as unresolved.
void LookUpGroups(ProfileCollectives* profile, std::optional<uint32_t> local_device = std::nullopt);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COLLECTIVE_EVENT_H_
