#include "chakra_export/xspace/run_agreement.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {
namespace {

// One of the programs that share a name.
struct Variant {
  const HloProgram* program = nullptr;
  // Global ids of the devices that it is assigned to, in ascending order.
  std::vector<int64_t> devices;
  // Positions of the profiles that ran it.
  std::set<size_t> profiles;
  // Which of them ran each execution, by run id.
  std::map<int64_t, size_t> executions;
};

// The programs of one name by fingerprint; nullopt where the HLO is damaged.
using Variants = std::map<std::optional<absl::uint128>, Variant>;

// Returns nothing for a program that does not say which devices run it.
std::vector<int64_t> DevicesOf(const HloProgram& program) {
  const absl::StatusOr<const HloModule*> module = program.Module();
  if (!module.ok() || (*module)->device_assignment() == nullptr) return {};
  std::vector<int64_t> devices = (*module)->device_assignment()->device_ids();
  absl::c_sort(devices);
  return devices;
}

// Returns the programs of several devices that ran, by name.
std::map<std::string, Variants> ListVariants(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles) {
  std::map<std::string, Variants> by_name;
  for (size_t p = 0; p < profiles.size(); ++p) {
    absl::flat_hash_map<const HloProgram*, Variant*> known;
    for (const WorkingDevice& device : profiles[p]->devices) {
      for (const DeviceWork& work : device.work.view()) {
        const HloProgram* program = work.op->program;
        if (program == nullptr) continue;
        const auto [it, is_new] = known.try_emplace(program, nullptr);
        if (is_new) {
          const absl::StatusOr<absl::uint128> fingerprint = program->Fingerprint();
          std::vector<int64_t> devices = DevicesOf(*program);
          if (devices.size() < 2) continue;
          Variant& variant =
              by_name[std::string(program->name())]
                     [fingerprint.ok() ? std::make_optional(*fingerprint) : std::nullopt];
          if (variant.program == nullptr) {
            variant.program = program;
            variant.devices = std::move(devices);
          }
          variant.profiles.insert(p);
          it->second = &variant;
        }
        if (it->second != nullptr && work.run_id.has_value()) {
          it->second->executions.emplace(*work.run_id, p);
        }
      }
    }
    profiles[p]->Forget();
  }
  return by_name;
}

bool ShareDevices(const Variant& a, const Variant& b) {
  return absl::c_any_of(a.devices,
                        [&](int64_t device) { return absl::c_binary_search(b.devices, device); });
}

// The profiles of which one ran `a` where the other ran `b`.
using Conflict = std::optional<std::pair<size_t, size_t>>;

Conflict ConflictByExecution(const Variant& a, const Variant& b) {
  for (const auto& [execution, profile] : a.executions) {
    const auto other = b.executions.find(execution);
    if (other != b.executions.end() && other->second != profile) {
      return std::make_pair(profile, other->second);
    }
  }
  return std::nullopt;
}

// Returns the first profile that ran this variant and no other of the same name.
std::optional<size_t> ProfileWithNoOther(const Variant& variant, const Variants& all) {
  for (const size_t profile : variant.profiles) {
    const auto count = absl::c_count_if(
        all, [profile](const auto& entry) { return entry.second.profiles.count(profile) > 0; });
    if (count == 1) return profile;
  }
  return std::nullopt;
}

Conflict FindConflict(const Variant& a, const Variant& b, const Variants& all,
                      bool executions_have_ids) {
  if (!ShareDevices(a, b)) return std::nullopt;
  if (executions_have_ids && !a.executions.empty() && !b.executions.empty()) {
    return ConflictByExecution(a, b);
  }
  const std::optional<size_t> with_a = ProfileWithNoOther(a, all);
  const std::optional<size_t> with_b = ProfileWithNoOther(b, all);
  if (!with_a.has_value() || !with_b.has_value()) return std::nullopt;
  return std::make_pair(*with_a, *with_b);
}

bool Agree(const HloCollective& a, const HloCollective& b) {
  return a.kind == b.kind && a.instruction->name() == b.instruction->name() &&
         a.operand_bytes == b.operand_bytes && a.output_bytes == b.output_bytes &&
         a.participants->device_groups == b.participants->device_groups &&
         a.participants->device_pairs == b.participants->device_pairs;
}

// Returns e.g. "all-reduce psum.7 of 4096 bytes {0,1},{2,3}".
std::string Describe(const HloCollective& collective) {
  constexpr size_t kShownCharacters = 80;
  return absl::StrCat(
      CollectiveKindName(collective.kind), " ", std::string(collective.instruction->name()), " of ",
      collective.operand_bytes, " bytes ",
      FirstCharacters(ToString(collective.participants->device_groups), kShownCharacters));
}

// Says what two programs of one name differ in.
std::string DescribeDifference(const HloProgram& a, const HloProgram& b) {
  const absl::StatusOr<const HloCollectives*> of_a = a.Collectives();
  const absl::StatusOr<const HloCollectives*> of_b = b.Collectives();
  if (!of_a.ok() || !of_b.ok()) return "its collectives";
  const std::vector<HloCollective>& in_a = (*of_a)->all();
  const std::vector<HloCollective>& in_b = (*of_b)->all();
  for (size_t i = 0; i < std::min(in_a.size(), in_b.size()); ++i) {
    if (Agree(in_a[i], in_b[i])) continue;
    return absl::StrCat(Describe(in_a[i]), " in the one, ", Describe(in_b[i]), " in the other");
  }
  if (in_a.size() == in_b.size()) return "its parameters, result or shapes";
  return absl::StrCat(in_a.size(), " collectives in the one, ", in_b.size(), " in the other");
}

class MiddleCheck {
 public:
  explicit MiddleCheck(const CollectiveRun& run) : run_(run), table_(run.table) {}

  absl::Status Run() {
    ListParts();
    ListUnplaced();
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing == 0) continue;
      for (const int64_t rank : MissingRanks(instance)) {
        const std::optional<uint32_t> witness = FindWitness(instance, rank);
        if (witness.has_value()) return Refuse(instance, rank, *witness);
      }
    }
    return absl::OkStatus();
  }

 private:
  // The first end and the last start of those of a rank's parts whose instance another rank has,
  // too.
  struct Shared {
    int64_t first_end_ps = std::numeric_limits<int64_t>::max();
    int64_t last_start_ps = std::numeric_limits<int64_t>::min();
  };

  void ListParts() {
    parts_.resize(table_.node_of_rank().size());
    const std::vector<CollectiveInstance>& instances = table_.instances();
    for (uint32_t i = 0; i < instances.size(); ++i) {
      for (const CollectiveMember& member : table_.MembersOf(instances[i])) {
        parts_[member.rank].push_back({i, &member});
      }
    }
  }

  // A rank that ran an instruction in an execution that is not known may have run any execution.
  void ListUnplaced() {
    for (size_t p = 0; p < run_.profiles.size(); ++p) {
      const ProfileCollectives& profile = run_.profiles[p];
      for (size_t i = 0; i < profile.events.size(); ++i) {
        if (run_.runs.runs[p][i].run != kUnknownId) continue;
        const CollectiveOp& op = profile.ops[profile.events[i].op];
        unplaced_.insert({run_.ranks.ranks[p][profile.events[i].local_device], op.instruction});
      }
    }
  }

  const CollectiveOp& OpOf(const CollectiveMember& member) const {
    const ProfileCollectives& profile = run_.profiles[table_.NodeOf(member)];
    return profile.ops[profile.events[member.event].op];
  }

  // Returns the ranks that the instance lacks although their profile is at hand.
  std::set<int64_t> MissingRanks(const CollectiveInstance& instance) const {
    const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
    std::set<int64_t> ranks;
    const auto add = [&](int64_t rank) {
      if (rank == kUnknownId || table_.node_of_rank()[rank] == CollectiveTable::kNoNode) return;
      ranks.insert(rank);
    };
    if (instance.group != CollectiveInstance::kNoGroup) {
      for (const int64_t rank : table_.groups()[instance.group]) add(rank);
    } else if (!members.empty()) {
      for (const SourceTargetPair& pair : OpOf(members[0]).pairs) {
        add(run_.ranks.RankOf(pair.source));
        add(run_.ranks.RankOf(pair.target));
      }
    }
    for (const CollectiveMember& member : members) ranks.erase(member.rank);
    return ranks;
  }

  // Returns a member that shared collectives with the rank before and after this one.
  std::optional<uint32_t> FindWitness(const CollectiveInstance& instance, int64_t rank) {
    // Most members know the same.
    constexpr size_t kMaxWitnesses = 8;
    if (unplaced_.count({rank, table_.OpOf(instance).instruction}) > 0) return std::nullopt;
    const absl::Span<const CollectiveMember> members =
        table_.MembersOf(instance).subspan(0, kMaxWitnesses);
    for (const CollectiveMember& member : members) {
      const Shared& shared = SharedBy(member.rank, rank);
      if (shared.first_end_ps <= member.start_ps && member.end_ps <= shared.last_start_ps) {
        return member.rank;
      }
    }
    return std::nullopt;
  }

  const Shared& SharedBy(uint32_t rank, int64_t other) {
    const auto [it, is_new] = shared_.try_emplace({rank, other});
    if (!is_new) return it->second;
    // Both are in the order of the instances.
    auto there = parts_[other].begin();
    for (const auto& [instance, part] : parts_[rank]) {
      while (there != parts_[other].end() && there->first < instance) ++there;
      if (there == parts_[other].end()) break;
      if (there->first != instance) continue;
      it->second.first_end_ps = std::min(it->second.first_end_ps, part->end_ps);
      it->second.last_start_ps = std::max(it->second.last_start_ps, part->start_ps);
    }
    return it->second;
  }

  absl::Status Refuse(const CollectiveInstance& instance, int64_t rank, uint32_t witness) const {
    const auto trace = [this](int64_t of) {
      return run_.profiles[table_.node_of_rank()[of]].trace;
    };
    return InvalidArgument(
        trace(rank), ": rank ", rank, " has no part in ", DescribeInstance(table_, instance),
        ", which rank ", witness, " (", trace(witness),
        ") ran between others that both have; the profiles disagree about it, or lost events");
  }

  const CollectiveRun& run_;
  const CollectiveTable& table_;
  // The parts of each rank with their instances, in the order of these.
  std::vector<std::vector<std::pair<uint32_t, const CollectiveMember*>>> parts_;
  // Ranks and instructions that ran in an execution that is not known.
  std::set<std::pair<int64_t, std::string>> unplaced_;
  std::map<std::pair<uint32_t, int64_t>, Shared> shared_;
};

bool Agree(const CollectiveOp& a, const CollectiveOp& b) {
  return a.kind == b.kind && a.operand_bytes == b.operand_bytes && a.groups == b.groups;
}

bool ShareDevices(const CollectiveOp& a, const CollectiveOp& b) {
  const std::set<int64_t> devices(a.groups.ids().begin(), a.groups.ids().end());
  return absl::c_any_of(b.groups.ids(), [&](int64_t device) { return devices.count(device) > 0; });
}

}  // namespace

absl::Status CheckProgramsAgree(const std::vector<std::unique_ptr<ProfileWork>>& profiles,
                                const CollectiveRun& run) {
  const bool executions_have_ids = run.runs.method == RunMethod::kRunId;
  for (const auto& [name, variants] : ListVariants(profiles)) {
    for (auto a = variants.begin(); a != variants.end(); ++a) {
      for (auto b = std::next(a); b != variants.end(); ++b) {
        const Conflict conflict = FindConflict(a->second, b->second, variants, executions_have_ids);
        if (!conflict.has_value()) continue;
        return InvalidArgument(run.profiles[conflict->first].trace, " and ",
                               run.profiles[conflict->second].trace, " disagree about the program ",
                               name, ": ",
                               DescribeDifference(*a->second.program, *b->second.program),
                               "; they are not of one run");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNoneLacksTheMiddle(const CollectiveRun& run) { return MiddleCheck(run).Run(); }

absl::Status CheckCollectivesAgree(const CollectiveRun& run) {
  struct Said {
    size_t profile = 0;
    const CollectiveOp* op = nullptr;
    bool is_ambiguous = false;
  };
  // By module and instruction.
  using AllSaid = std::map<std::pair<std::string, std::string>, Said>;
  AllSaid first;
  for (size_t p = 0; p < run.profiles.size(); ++p) {
    AllSaid here;
    for (const CollectiveOp& op : run.profiles[p].ops) {
      const auto [it, is_new] =
          here.emplace(std::make_pair(op.module, op.instruction), Said{p, &op, false});
      if (!is_new) it->second.is_ambiguous = true;
    }
    for (const auto& [name, said] : here) {
      const auto [it, is_new] = first.emplace(name, said);
      if (is_new || said.is_ambiguous || it->second.is_ambiguous) continue;
      const CollectiveOp& other = *it->second.op;
      if (Agree(other, *said.op) || !ShareDevices(other, *said.op)) continue;
      return InvalidArgument(run.profiles[it->second.profile].trace, " and ", run.profiles[p].trace,
                             " disagree about the kind, bytes or groups of ", name.second, " of ",
                             name.first, "; they are not of one run");
    }
  }
  return absl::OkStatus();
}

}  // namespace meridian
