#include "chakra_export/pytorch/matched_communication.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "chakra_export/et/collective_type.h"
#include "third_party/chakra/et_def.pb.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/kineto/kineto_collectives.h"

namespace meridian {
namespace {

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
          return InvalidArgument(profile.trace, ": process group ", op.module, " has the ranks ",
                                 absl::StrJoin(ranks, ", "), ", but ", absl::StrJoin(other, ", "),
                                 " in ", trace, "; are the traces of one run?");
        }
        if (!known) groups[op.module].emplace_back(ranks, profile.trace);
      }
    }
  }
  return absl::OkStatus();
}

class Matcher {
 public:
  // Of the collectives only the nodes are looked at: the run has the profiles.
  Matcher(const CollectiveRun& run, const std::vector<RankCollectives>& collectives)
      : run_(run), table_(run.table), collectives_(collectives) {}

  MatchedCommunication Match() {
    for (size_t p = 0; p < run_.profiles.size(); ++p) {
      RankCommunication& rank = result_.ranks.emplace_back();
      rank.rank = run_.ranks.ranks[p][0];
      for (const TimelineIndex node : collectives_[p].nodes) {
        if (node != kNoTimelineNode)
          rank.unmatched[node] = "no counterpart on other ranks is known";
      }
      for (const TimelineIndex node : collectives_[p].undescribed) {
        rank.unmatched[node] = "its profile does not say what it communicates";
      }
    }
    result_.world_size = static_cast<int64_t>(run_.ranks.device_of_rank.size());
    result_.notes = run_.ranks.notes;
    result_.notes.insert(result_.notes.end(), run_.runs.notes.begin(), run_.runs.notes.end());
    for (const auto& [last_start_ps, i] : InOrderOfLastStarts()) {
      AddInstance(table_.instances()[i], last_start_ps);
    }
    for (const auto& [place, reasons] : problems_) {
      RankCommunication& rank = result_.ranks[place.first];
      if (!rank.nodes.contains(place.second)) {
        rank.unmatched[place.second] = reasons[0];
        continue;
      }
      for (const char* reason : reasons) ++rank.lost_parts[reason];
    }
    return std::move(result_);
  }

 private:
  // Where clocks agree, what ends on a rank before something else starts there also comes first
  // here: nothing ends before the last start of its members. Returns each instance with that start.
  std::vector<std::pair<int64_t, uint32_t>> InOrderOfLastStarts() const {
    std::vector<std::pair<int64_t, uint32_t>> order;
    for (uint32_t i = 0; i < table_.instances().size(); ++i) {
      int64_t last_ps = std::numeric_limits<int64_t>::min();
      for (const CollectiveMember& member : table_.MembersOf(table_.instances()[i])) {
        last_ps = std::max(last_ps, member.start_ps);
      }
      order.emplace_back(last_ps, i);
    }
    std::sort(order.begin(), order.end());
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

  void AddInstance(const CollectiveInstance& instance, int64_t last_start_ps) {
    const char* problem = Problem(instance);
    int64_t bytes = 0;
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      bytes = std::max(bytes, OpOf(member).operand_bytes);
    }
    for (const CollectiveMember& member : table_.MembersOf(instance)) {
      const size_t p = table_.NodeOf(member);
      const TimelineIndex node = collectives_[p].nodes[member.event];
      if (node == kNoTimelineNode) continue;
      if (problem != nullptr) {
        problems_[{p, node}].push_back(problem);
        continue;
      }
      NodeCommunication communication = Describe(instance, member);
      communication.bytes = bytes;
      const int64_t waited_ps = std::max<int64_t>(0, last_start_ps - member.start_ps);
      const int64_t raw_ps = member.end_ps - member.start_ps;
      communication.waited_ps = waited_ps;
      // Clocks that contradict each other were insisted on: who waited is not known then.
      communication.transfer_ps = waited_ps <= raw_ps ? raw_ps - waited_ps : raw_ps;
      result_.ranks[p].unmatched.erase(node);
      result_.ranks[p].nodes[node].push_back(std::move(communication));
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
    communication.type = ChakraProtoMsg::COMM_COLL_NODE;
    communication.collective = *CommTypeOf(op.kind);
    communication.simulated = SimulatedCommTypeOf(op.kind);
    const absl::Span<const int64_t> ranks = table_.groups()[instance.group];
    communication.ranks.assign(ranks.begin(), ranks.end());
    return communication;
  }

  const CollectiveRun& run_;
  const CollectiveTable& table_;
  const std::vector<RankCollectives>& collectives_;
  MatchedCommunication result_;
  // Why parts of a kernel are not matched, by trace and node.
  std::map<std::pair<size_t, TimelineIndex>, std::vector<const char*>> problems_;
  uint32_t next_instance_ = 0;
};

}  // namespace

RankCollectives ReadRankCollectives(const TraceJsonTable& trace, absl::string_view text,
                                    absl::string_view name, const RankTimeline& timeline) {
  RankCollectives result;
  result.profile = ReadKinetoCollectives(trace, text, name);
  std::vector<TimelineIndex> kernels;
  // Events tell the start and the correlation of their first kernel.
  absl::flat_hash_map<std::pair<int64_t, uint64_t>, TimelineIndex> nodes;
  for (TimelineIndex node = 0; node < timeline.nodes.size(); ++node) {
    const TimelineNode& work = timeline.nodes[node];
    if (work.on_host || !IsCommunicationKernel(trace.table.name(work.row))) continue;
    nodes[{work.start_ps, trace.table.correlation(work.row).value_or(0)}] = node;
    kernels.push_back(node);
  }
  absl::flat_hash_set<TimelineIndex> described;
  for (const CollectiveEvent& event : result.profile.events) {
    const auto it = nodes.find({event.start_ps, event.correlation_id});
    result.nodes.push_back(it == nodes.end() ? kNoTimelineNode : it->second);
    described.insert(result.nodes.back());
  }
  for (const TimelineIndex node : kernels) {
    if (!described.contains(node)) result.undescribed.push_back(node);
  }
  return result;
}

absl::StatusOr<MatchedCommunication> MatchCommunication(std::vector<RankCollectives> collectives,
                                                        bool allow_violations) {
  std::vector<ProfileCollectives> profiles;
  for (RankCollectives& rank : collectives) profiles.push_back(std::move(rank.profile));
  RETURN_IF_ERROR(CheckGroupsAgree(profiles));
  ASSIGN_OR_RETURN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const absl::Status clocks = RefuseViolations(run, CheckHappensBefore(run.table));
  if (!clocks.ok() && !allow_violations) return clocks;
  MatchedCommunication result = Matcher(run, collectives).Match();
  result.clocks_agree = clocks.ok();
  return result;
}

}  // namespace meridian
