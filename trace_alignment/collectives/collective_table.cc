#include "trace_alignment/collectives/collective_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

bool FitsRun(int64_t time_ps) { return time_ps >= -kMaxRunTimePs && time_ps <= kMaxRunTimePs; }

// A profile's op in the table, and the group that its devices were last found in.
struct ProfileOp {
  uint32_t op = 0;
  int64_t group_here = kUnknownId;
  uint32_t group = CollectiveInstance::kNoGroup;
};

}  // namespace

class CollectiveTableBuilder {
 public:
  CollectiveTableBuilder(absl::Span<const ProfileCollectives> profiles, const RankResolution& ranks,
                         const RunResolution& runs)
      : profiles_(profiles), ranks_(ranks), runs_(runs) {}

  absl::StatusOr<CollectiveTable> Build() {
    ListNodes();
    MatchOps();
    JoinSendsWithReceives();
    RETURN_IF_ERROR(AssignInstances());
    OrderInstances();
    PlaceMembers();
    for (CollectiveInstance& instance : table_.instances_) ConnectMembers(&instance);
    return std::move(table_);
  }

 private:
  void ListNodes() {
    table_.node_count_ = profiles_.size();
    table_.node_of_rank_.resize(ranks_.device_of_rank.size(), CollectiveTable::kNoNode);
    if (!profiles_.empty()) table_.base_ns_ = profiles_[0].base_ns;
    for (size_t p = 0; p < profiles_.size(); ++p) {
      table_.base_ns_ = std::min(table_.base_ns_, profiles_[p].base_ns);
      for (int64_t rank : ranks_.ranks[p]) {
        if (rank != kUnknownId) table_.node_of_rank_[rank] = static_cast<uint32_t>(p);
      }
    }
  }

  // Finds out which ops of different profiles are the same.
  void MatchOps() {
    absl::flat_hash_map<absl::uint128, uint32_t> by_identity;
    for (const ProfileCollectives& profile : profiles_) {
      std::vector<ProfileOp>& here = profile_ops_.emplace_back(profile.ops.size());
      for (size_t i = 0; i < profile.ops.size(); ++i) {
        const CollectiveOp& op = profile.ops[i];
        const auto [it, inserted] =
            by_identity.emplace(OpIdentity(op), static_cast<uint32_t>(table_.ops_.size()));
        here[i].op = it->second;
        if (inserted) AddOp(op);
      }
    }
  }

  void AddOp(const CollectiveOp& op) {
    table_.ops_.push_back({op.kind, op.module, op.instruction, op.operand_bytes, op.output_bytes});
    std::vector<SourceTargetPair>& pairs = rank_pairs_.emplace_back();
    for (const SourceTargetPair& pair : op.pairs) {
      pairs.push_back({ranks_.RankOf(pair.source), ranks_.RankOf(pair.target)});
    }
    fingerprints_.push_back(op.program_fingerprint.value_or(0));
  }

  // A program's sends and receives along the same pairs belong together in the order of their
  // numbers, provided that there are as many of each.
  void JoinSendsWithReceives() {
    struct Ops {
      std::vector<uint32_t> sends;
      std::vector<uint32_t> receives;
    };
    using Pairs = std::vector<std::pair<int64_t, int64_t>>;
    std::map<std::tuple<std::string, absl::uint128, Pairs>, Ops> candidates;
    for (uint32_t op = 0; op < table_.ops_.size(); ++op) {
      const CollectiveKind kind = table_.ops_[op].kind;
      if (kind != CollectiveKind::kSend && kind != CollectiveKind::kRecv) continue;
      Pairs pairs;
      for (const SourceTargetPair& pair : rank_pairs_[op]) {
        pairs.emplace_back(pair.source, pair.target);
      }
      absl::c_sort(pairs);
      Ops& ops = candidates[{table_.ops_[op].module, fingerprints_[op], std::move(pairs)}];
      (kind == CollectiveKind::kSend ? ops.sends : ops.receives).push_back(op);
    }

    std::vector<uint32_t> joined(table_.ops_.size());
    absl::c_iota(joined, 0);
    // By the numbers in their names: "send.9" comes before "send.10".
    const auto by_name = [&](uint32_t a, uint32_t b) {
      const std::string& first = table_.ops_[a].instruction;
      const std::string& second = table_.ops_[b].instruction;
      return std::make_pair(first.size(), first) < std::make_pair(second.size(), second);
    };
    for (auto& [program_and_pairs, ops] : candidates) {
      if (ops.sends.size() != ops.receives.size()) continue;
      absl::c_sort(ops.sends, by_name);
      absl::c_sort(ops.receives, by_name);
      for (size_t i = 0; i < ops.sends.size(); ++i) joined[ops.receives[i]] = ops.sends[i];
    }
    for (std::vector<ProfileOp>& here : profile_ops_) {
      for (ProfileOp& op : here) op.op = joined[op.op];
    }
  }

  // Returns the table's group that the event's group is. An op's groups are told apart by their
  // first member and size.
  uint32_t GroupOf(const CollectiveOp& op, const CollectiveEvent& event, ProfileOp* here) {
    if (here->group_here == event.group) return here->group;
    const absl::Span<const int64_t> devices = op.groups[event.group];
    const auto [it, inserted] = groups_.emplace(
        std::make_tuple(here->op, devices.empty() ? kUnknownId : devices[0], devices.size()),
        static_cast<uint32_t>(table_.groups_.size()));
    if (inserted) {
      std::vector<int64_t> group;
      for (int64_t device : devices) group.push_back(ranks_.RankOf(device));
      table_.groups_.Add(group);
    }
    here->group_here = event.group;
    here->group = it->second;
    return it->second;
  }

  // Returns kNone for an event that has no instance.
  uint32_t InstanceOf(size_t profile, size_t event_index) {
    const CollectiveEvent& event = profiles_[profile].events[event_index];
    const EventRun& run = runs_.runs[profile][event_index];
    const CollectiveOp& op = profiles_[profile].ops[event.op];
    ProfileOp& here = profile_ops_[profile][event.op];
    const bool by_pairs = HasPairs(op.kind);
    if (run.run == kUnknownId || ranks_.ranks[profile][event.local_device] == kUnknownId) {
      return kNone;
    }
    if (by_pairs ? rank_pairs_[here.op].empty() && !op.pairs_are_members
                 : event.group == kUnknownId) {
      return kNone;
    }
    const uint32_t group = by_pairs ? CollectiveInstance::kNoGroup : GroupOf(op, event, &here);
    const auto [it, inserted] =
        by_key_.emplace(std::make_tuple(run.run, run.occurrence, here.op, group),
                        static_cast<uint32_t>(table_.instances_.size()));
    if (inserted) {
      CollectiveInstance& instance = table_.instances_.emplace_back();
      instance.op = here.op;
      instance.group = group;
      first_starts_ps_.push_back(kMaxRunTimePs);
    }
    return it->second;
  }

  // A profile whose own times do not fit together would make the others look wrong.
  absl::Status CheckOwnTimes() const {
    for (const ProfileCollectives& profile : profiles_) {
      for (const CollectiveEvent& event : profile.events) {
        if (FitsRun(event.start_ps) && FitsRun(event.end_ps)) continue;
        return absl::OutOfRangeError(absl::StrCat(
            profile.trace, ": a collective lies more than 40 hours from the profile's own start, ",
            profile.base_ns, " ns: a time in it is damaged"));
      }
    }
    return absl::OkStatus();
  }

  // Returns how long after the run's start the profile begins.
  absl::StatusOr<int64_t> ShiftOf(const ProfileCollectives& profile,
                                  const RunClock& run_clock) const {
    const absl::StatusOr<int64_t> shift_ps = run_clock.ToRunPs(profile.base_ns, 0);
    if (shift_ps.ok() && FitsRun(*shift_ps)) return shift_ps;
    const auto earliest = absl::c_min_element(
        profiles_, [](const auto& a, const auto& b) { return a.base_ns < b.base_ns; });
    return absl::OutOfRangeError(
        absl::StrCat(earliest->trace, " begins more than 40 hours before ", profile.trace,
                     "; are they of one run? If they are, the time of one of them is damaged"));
  }

  absl::Status AssignInstances() {
    RETURN_IF_ERROR(CheckOwnTimes());
    const RunClock run_clock(table_.base_ns_);
    uint64_t events = 0;
    for (size_t p = 0; p < profiles_.size(); ++p) {
      const ProfileCollectives& profile = profiles_[p];
      events += profile.events.size();
      if (events >= kNone) {
        return absl::ResourceExhaustedError("the profiles hold more than 2^32 collectives");
      }
      ASSIGN_OR_RETURN(const int64_t shift_ps, ShiftOf(profile, run_clock));
      shifts_ps_.push_back(shift_ps);
      std::vector<uint32_t>& assigned = assigned_.emplace_back(profile.events.size());
      for (size_t i = 0; i < assigned.size(); ++i) {
        const CollectiveEvent& event = profile.events[i];
        if (!FitsRun(shift_ps + event.start_ps) || !FitsRun(shift_ps + event.end_ps)) {
          return absl::OutOfRangeError(absl::StrCat(
              profile.trace, ": a collective lies more than 40 hours from the run's start, ",
              table_.base_ns_, " ns; are the profiles of one run?"));
        }
        assigned[i] = InstanceOf(p, i);
        if (assigned[i] == kNone) {
          ++table_.unplaced_events_;
          continue;
        }
        ++table_.instances_[assigned[i]].member_count;
        int64_t& first_start_ps = first_starts_ps_[assigned[i]];
        first_start_ps = std::min(first_start_ps, shift_ps + event.start_ps);
      }
    }
    by_key_.clear();
    return absl::OkStatus();
  }

  void OrderInstances() {
    std::vector<uint32_t> order(table_.instances_.size());
    absl::c_iota(order, 0);
    absl::c_sort(order, [this](uint32_t a, uint32_t b) {
      return std::make_pair(first_starts_ps_[a], a) < std::make_pair(first_starts_ps_[b], b);
    });
    std::vector<CollectiveInstance> ordered;
    ordered.reserve(order.size());
    position_.resize(order.size());
    uint32_t first_member = 0;
    for (uint32_t instance : order) {
      position_[instance] = static_cast<uint32_t>(ordered.size());
      ordered.push_back(table_.instances_[instance]);
      ordered.back().first_member = first_member;
      first_member += ordered.back().member_count;
    }
    table_.instances_ = std::move(ordered);
    table_.members_.resize(first_member);
  }

  void PlaceMembers() {
    std::vector<uint32_t> next;
    next.reserve(table_.instances_.size());
    for (const CollectiveInstance& instance : table_.instances_) {
      next.push_back(instance.first_member);
    }
    for (size_t p = 0; p < profiles_.size(); ++p) {
      for (size_t i = 0; i < assigned_[p].size(); ++i) {
        if (assigned_[p][i] == kNone) continue;
        const CollectiveEvent& event = profiles_[p].events[i];
        table_.members_[next[position_[assigned_[p][i]]]++] = {
            shifts_ps_[p] + event.start_ps, shifts_ps_[p] + event.end_ps, event.correlation_id,
            static_cast<uint32_t>(ranks_.ranks[p][event.local_device]), static_cast<uint32_t>(i)};
      }
    }
  }

  // Counts who is missing, and pairs the members of kinds that do not synchronise.
  void ConnectMembers(CollectiveInstance* instance) {
    instance->first_pair = static_cast<uint32_t>(table_.pairs_.size());
    if (instance->group == CollectiveInstance::kNoGroup) {
      PairAsTheProgramSays(instance);
    } else {
      const size_t expected = table_.groups_[instance->group].size();
      instance->missing =
          static_cast<uint32_t>(expected - std::min<size_t>(expected, instance->member_count));
      if (!IsSynchronising(table_.OpOf(*instance).kind)) PairWithRoot(instance);
    }
    instance->pair_count = static_cast<uint32_t>(table_.pairs_.size()) - instance->first_pair;
  }

  CollectiveKind KindOf(const CollectiveMember& member) const {
    const ProfileCollectives& profile = profiles_[table_.NodeOf(member)];
    return profile.ops[profile.events[member.event].op].kind;
  }

  void PairAsTheProgramSays(CollectiveInstance* instance) {
    // Positions of the members by rank, and ranks that the instance lacks.
    absl::flat_hash_map<int64_t, uint32_t> sources, targets;
    absl::flat_hash_set<int64_t> missing;
    const absl::Span<const CollectiveMember> members = table_.MembersOf(*instance);
    for (uint32_t m = 0; m < members.size(); ++m) {
      const CollectiveKind kind = KindOf(members[m]);
      if (kind != CollectiveKind::kRecv) sources[members[m].rank] = m;
      if (kind != CollectiveKind::kSend) targets[members[m].rank] = m;
    }
    if (rank_pairs_[instance->op].empty()) {
      for (const auto& [source_rank, source] : sources) {
        for (const auto& [target_rank, target] : targets) table_.pairs_.push_back({source, target});
      }
      instance->missing = members.size() == 1 ? 1 : 0;
      return;
    }
    // A rank that is lacking counts once, one that is not known each time.
    const auto lacks = [&](int64_t rank) {
      instance->missing += rank == kUnknownId || missing.insert(rank).second ? 1 : 0;
    };
    for (const SourceTargetPair& pair : rank_pairs_[instance->op]) {
      const auto source = sources.find(pair.source), target = targets.find(pair.target);
      if (source == sources.end()) lacks(pair.source);
      if (target == targets.end()) lacks(pair.target);
      if (source == sources.end() || target == targets.end()) continue;
      table_.pairs_.push_back({source->second, target->second});
    }
  }

  void PairWithRoot(CollectiveInstance* instance) {
    if (table_.OpOf(*instance).kind == CollectiveKind::kUnknown) return;
    const absl::Span<const CollectiveMember> members = table_.MembersOf(*instance);
    const int64_t root_rank = table_.groups_[instance->group][0];
    const auto root_member = absl::c_find_if(
        members, [root_rank](const CollectiveMember& member) { return member.rank == root_rank; });
    if (root_member == members.end()) return;
    const uint32_t root = static_cast<uint32_t>(root_member - members.begin());
    const bool root_sends = table_.OpOf(*instance).kind == CollectiveKind::kCollectiveBroadcast;
    for (uint32_t m = 0; m < members.size(); ++m) {
      if (m == root) continue;
      table_.pairs_.push_back(root_sends ? MemberPair{root, m} : MemberPair{m, root});
    }
  }

  const absl::Span<const ProfileCollectives> profiles_;
  const RankResolution& ranks_;
  const RunResolution& runs_;
  CollectiveTable table_;
  // For each profile: its ops in the table, and its base in ps from the run base.
  std::vector<std::vector<ProfileOp>> profile_ops_;
  std::vector<int64_t> shifts_ps_;
  // For each op of the table: its pairs as ranks, and the fingerprint of its program.
  std::vector<std::vector<SourceTargetPair>> rank_pairs_;
  std::vector<absl::uint128> fingerprints_;
  // Positions in the table's groups, by op, first device and size.
  absl::flat_hash_map<std::tuple<uint32_t, int64_t, size_t>, uint32_t> groups_;
  // Instances by what their members have in common: run, occurrence in it, op and group. They are
  // numbered as found until OrderInstances.
  absl::flat_hash_map<std::tuple<int64_t, uint32_t, uint32_t, uint32_t>, uint32_t> by_key_;
  std::vector<int64_t> first_starts_ps_;
  std::vector<std::vector<uint32_t>> assigned_;
  std::vector<uint32_t> position_;
};

bool IsSynchronising(CollectiveKind kind) {
  return !HasPairs(kind) && kind != CollectiveKind::kCollectiveBroadcast &&
         kind != CollectiveKind::kCollectiveReduce && kind != CollectiveKind::kUnknown;
}

absl::StatusOr<CollectiveTable> BuildCollectiveTable(absl::Span<const ProfileCollectives> profiles,
                                                     const RankResolution& ranks,
                                                     const RunResolution& runs) {
  return CollectiveTableBuilder(profiles, ranks, runs).Build();
}

std::string DescribeGroup(const CollectiveTable& table, const CollectiveInstance& instance) {
  constexpr size_t kRanksToName = 16;
  if (instance.group == CollectiveInstance::kNoGroup) return "";
  const absl::Span<const int64_t> group = table.groups()[instance.group];
  if (group.size() <= kRanksToName) return absl::StrCat("{", absl::StrJoin(group, ","), "}");
  return absl::StrCat("{", absl::StrJoin(group.subspan(0, kRanksToName), ","), ",...} (",
                      group.size(), " ranks)");
}

std::string DescribeInstance(const CollectiveTable& table, const CollectiveInstance& instance) {
  const MatchedOp& op = table.OpOf(instance);
  const std::string group = DescribeGroup(table, instance);
  return absl::StrCat(CollectiveKindName(op.kind), " ", op.instruction, " of ", op.module,
                      group.empty() ? "" : " ", group);
}

void CollectiveTable::PlaceByDurations(absl::Span<const ProfileCollectives> profiles) {
  const auto ran_ps = [&](const CollectiveMember& member) {
    return profiles[NodeOf(member)].events[member.event].ran_ps;
  };
  // Instances with the first of their ends, the last first.
  std::vector<std::pair<int64_t, const CollectiveInstance*>> bounded;
  for (const CollectiveInstance& instance : instances_) {
    int64_t end_ps = kMaxRunTimePs;
    bool is_bounded = false;
    for (const CollectiveMember& member : MembersOf(instance)) {
      is_bounded |= ran_ps(member).has_value();
      end_ps = std::min(end_ps, member.end_ps);
    }
    if (is_bounded) bounded.emplace_back(end_ps, &instance);
  }
  absl::c_sort(bounded, std::greater<>());
  // When the next member of a rank starts.
  absl::flat_hash_map<uint32_t, int64_t> next_ps;
  for (auto [end_ps, instance] : bounded) {
    const absl::Span<CollectiveMember> members =
        absl::MakeSpan(members_).subspan(instance->first_member, instance->member_count);
    int64_t last_start_ps = members[0].start_ps;
    bool is_known = true;
    for (const CollectiveMember& member : members) {
      last_start_ps = std::max(last_start_ps, member.start_ps);
      is_known = is_known && ran_ps(member).value_or(0) > 0;
      end_ps = std::min(end_ps, next_ps.try_emplace(member.rank, end_ps).first->second);
    }
    // Not before all times: others may make up how long they ran.
    end_ps = is_known ? std::max(end_ps, -kMaxRunTimePs) : last_start_ps;
    for (CollectiveMember& member : members) {
      member.end_ps = end_ps;
      if (is_known) member.start_ps = end_ps - *ran_ps(member);
      if (is_known) next_ps[member.rank] = member.start_ps;
    }
  }
}

std::optional<GroupTiming> TimingOf(const CollectiveTable& table,
                                    const CollectiveInstance& instance) {
  if (!IsSynchronising(table.OpOf(instance).kind) || instance.missing > 0) return std::nullopt;
  const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
  GroupTiming timing;
  timing.last_start_ps = members[0].start_ps;
  int64_t last_end_ps = members[0].end_ps;
  for (uint32_t m = 1; m < members.size(); ++m) {
    last_end_ps = std::max(last_end_ps, members[m].end_ps);
    if (members[m].start_ps > timing.last_start_ps) {
      timing.last_start_ps = members[m].start_ps;
      timing.last_member = m;
    }
  }
  timing.transfer_ps = last_end_ps - timing.last_start_ps;
  return timing;
}

int64_t PairTransferPs(const CollectiveTable& table, const CollectiveInstance& instance,
                       const MemberPair& pair) {
  const CollectiveMember& source = table.MembersOf(instance)[pair.source];
  const CollectiveMember& target = table.MembersOf(instance)[pair.target];
  return target.end_ps - std::max(source.start_ps, target.start_ps);
}

}  // namespace meridian
