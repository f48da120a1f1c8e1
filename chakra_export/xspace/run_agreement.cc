#include "chakra_export/xspace/run_agreement.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
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
