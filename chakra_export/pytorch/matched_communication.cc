#include "chakra_export/pytorch/matched_communication.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "chakra_export/et/collective_type.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/hlo/hlo_collective.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::CollectiveCommType;

// Two groups of one name that share a rank must be the same.
absl::Status CheckGroupsAgree(absl::Span<const ProfileCollectives> profiles) {
  std::map<std::string, std::vector<std::pair<std::vector<int64_t>, std::string>>> groups;
  for (const ProfileCollectives& profile : profiles) {
    for (const CollectiveOp& op : profile.ops) {
      for (size_t i = 0; i < op.groups.size(); ++i) {
        const std::vector<int64_t> ranks(op.groups[i].begin(), op.groups[i].end());
        bool known = false;
        for (const auto& [other, trace] : groups[op.module]) {
          known |= other == ranks;
          const bool shares = std::any_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
            return std::find(other.begin(), other.end(), rank) != other.end();
          });
          if (other == ranks || !shares) continue;
          return absl::InvalidArgumentError(
              absl::StrCat(profile.trace, ": process group ", op.module, " has the ranks ",
                           absl::StrJoin(ranks, ", "), ", but ", absl::StrJoin(other, ", "), " in ",
                           trace, "; are the traces of one run?"));
        }
        if (!known) groups[op.module].emplace_back(ranks, profile.trace);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckClocks(const CollectiveRun& run) {
  const HappensBefore happens_before = CheckHappensBefore(run.table);
  if (happens_before.violations.empty()) return absl::OkStatus();
  const Violation& first = happens_before.violations[0];
  const auto trace = [&run](uint32_t member) {
    return run.profiles[run.table.NodeOf(run.table.members()[member])].trace;
  };
  return absl::FailedPreconditionError(absl::StrCat(
      trace(first.ended), " and ", trace(first.started),
      ": the clocks of the ranks contradict each other in ", happens_before.violations.size(),
      " of ", happens_before.checked, " collectives: ", DescribeViolation(run.table, first),
      "; align the traces first, or insist with --allow_violations"));
}

class Matcher {
 public:
  // By profile, the nodes of its events and those that are in no event.
  Matcher(const CollectiveRun& run, std::vector<std::vector<TimelineIndex>> nodes,
          std::vector<std::vector<TimelineIndex>> undescribed)
      : run_(run),
        table_(run.table),
        nodes_(std::move(nodes)),
        undescribed_(std::move(undescribed)) {}

  MatchedCommunication Match() {
    for (size_t p = 0; p < run_.profiles.size(); ++p) {
      RankCommunication& rank = result_.ranks.emplace_back();
      rank.rank = run_.ranks.ranks[p][0];
      for (const TimelineIndex node : nodes_[p]) {
        if (node != kNoTimelineNode)
          rank.unmatched[node] = "no counterpart on other ranks is known";
      }
    }
    AddUndescribed();
    result_.world_size = static_cast<int64_t>(run_.ranks.device_of_rank.size());
    result_.notes = run_.ranks.notes;
    result_.notes.insert(result_.notes.end(), run_.runs.notes.begin(), run_.runs.notes.end());
    for (const uint32_t i : InOrderOfLastStarts()) AddInstance(table_.instances()[i]);
    return std::move(result_);
  }

 private:
  void AddUndescribed() {
    for (size_t p = 0; p < undescribed_.size(); ++p) {
      for (const TimelineIndex node : undescribed_[p]) {
        result_.ranks[p].unmatched[node] = "neither trace says what it communicates";
      }
    }
  }

  int64_t LastStart(const CollectiveInstance& instance) const {
    int64_t last_ps = std::numeric_limits<int64_t>::min();
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      last_ps = std::max(last_ps, member.start_ps);
    }
    return last_ps;
  }

  // Where clocks agree, what ends on a rank before something else starts there also comes first
  // here: nothing ends before the last start of its members.
  std::vector<uint32_t> InOrderOfLastStarts() const {
    std::vector<std::tuple<int64_t, uint32_t>> keys;
    for (uint32_t i = 0; i < table_.instances().size(); ++i) {
      keys.emplace_back(LastStart(table_.instances()[i]), i);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<uint32_t> order;
    for (const auto& [last_ps, i] : keys) order.push_back(i);
    return order;
  }

  const CollectiveOp& OpOf(const CollectiveMember& member) const {
    const ProfileCollectives& profile = run_.profiles[table_.NodeOf(member)];
    return profile.ops[profile.events[member.event].op];
  }

  // Returns why it cannot be simulated; nullptr when it can.
  const char* Problem(const CollectiveInstance& instance) const {
    const MatchedOp& op = table_.OpOf(instance);
    if (op.operand_bytes <= 0) return "its bytes are not known";
    if (HasPairs(op.kind)) {
      const CollectiveMember& member = table_.MembersOf(instance)[0];
      if (OpOf(member).pairs.empty()) return "its peer is not known";
      const SourceTargetPair& pair = OpOf(member).pairs[0];
      const uint32_t wanted = HasProfile(pair.source) + HasProfile(pair.target);
      return instance.member_count == wanted ? nullptr : "its peer's profile does not show it";
    }
    if (!CommTypeOf(op.kind).has_value()) return "its kind is unknown to Chakra";
    if (instance.group == CollectiveInstance::kNoGroup) return "its ranks are not known";
    const absl::Span<const int64_t> ranks = table_.groups()[instance.group];
    if (ranks.size() < 2) return "its group has one rank";
    uint32_t wanted = 0;
    for (const int64_t rank : ranks) wanted += HasProfile(rank);
    return instance.member_count == wanted ? nullptr : "not all ranks of its group show it";
  }

  bool HasProfile(int64_t rank) const {
    return rank >= 0 && rank < static_cast<int64_t>(table_.node_of_rank().size()) &&
           table_.node_of_rank()[static_cast<size_t>(rank)] != CollectiveTable::kNoNode;
  }

  void AddInstance(const CollectiveInstance& instance) {
    const char* problem = Problem(instance);
    const int64_t last_start_ps = LastStart(instance);
    int64_t bytes = 0;
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      bytes = std::max(bytes, OpOf(member).operand_bytes);
    }
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      const size_t p = table_.NodeOf(member);
      const TimelineIndex node = nodes_[p][member.event];
      if (node == kNoTimelineNode) continue;
      if (problem != nullptr) {
        result_.ranks[p].unmatched[node] = problem;
        continue;
      }
      NodeCommunication communication = Describe(instance, member);
      communication.bytes = bytes;
      const int64_t waited_ps = std::max<int64_t>(0, last_start_ps - member.start_ps);
      const int64_t raw_ps = member.end_ps - member.start_ps;
      // Clocks that contradict each other were insisted on: who waited is not known then.
      communication.transfer_ps = waited_ps <= raw_ps ? raw_ps - waited_ps : raw_ps;
      result_.ranks[p].unmatched.erase(node);
      result_.ranks[p].nodes.emplace(node, std::move(communication));
    }
    if (problem == nullptr) ++next_instance_;
  }

  NodeCommunication Describe(const CollectiveInstance& instance,
                             const CollectiveMember& member) const {
    NodeCommunication communication;
    communication.instance = next_instance_;
    const CollectiveOp& op = OpOf(member);
    communication.process_group = op.module;
    if (HasPairs(op.kind)) {
      communication.type = op.kind == CollectiveKind::kSend ? ChakraProtoMsg::COMM_SEND_NODE
                                                            : ChakraProtoMsg::COMM_RECV_NODE;
      communication.source = op.pairs[0].source;
      communication.target = op.pairs[0].target;
      return communication;
    }
    communication.collective = *CommTypeOf(op.kind);
    const absl::Span<const int64_t> ranks = table_.groups()[instance.group];
    communication.ranks.assign(ranks.begin(), ranks.end());
    return communication;
  }

  const CollectiveRun& run_;
  const CollectiveTable& table_;
  const std::vector<std::vector<TimelineIndex>> nodes_;
  const std::vector<std::vector<TimelineIndex>> undescribed_;
  MatchedCommunication result_;
  uint32_t next_instance_ = 0;
};

}  // namespace

absl::StatusOr<MatchedCommunication> MatchCommunication(std::vector<RankCollectives> collectives,
                                                        const MatchOptions& options) {
  std::vector<ProfileCollectives> profiles;
  std::vector<std::vector<TimelineIndex>> nodes, undescribed;
  for (RankCollectives& rank : collectives) {
    profiles.push_back(std::move(rank.profile));
    nodes.push_back(std::move(rank.nodes));
    undescribed.push_back(std::move(rank.undescribed));
  }
  RETURN_IF_ERROR(CheckGroupsAgree(profiles));
  ASSIGN_OR_RETURN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const absl::Status clocks = CheckClocks(run);
  if (!clocks.ok() && !options.allow_violations) return clocks;
  MatchedCommunication result = Matcher(run, std::move(nodes), std::move(undescribed)).Match();
  result.clocks_agree = clocks.ok();
  return result;
}

}  // namespace meridian
