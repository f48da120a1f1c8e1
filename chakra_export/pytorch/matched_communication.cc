#include "chakra_export/pytorch/matched_communication.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/pytorch/op_tensors.h"
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

constexpr absl::string_view kRecordParamComms = "record_param_comms";

// What PyTorch records with a collective: [tensors, sequence, process group, root, name, ...].
struct CommArguments {
  std::string group;
  std::string name;
};

CommArguments ArgumentsOf(const HostOpDetails& details) {
  const std::vector<JsonValue> values = details.inputs.values.Elements(5);
  CommArguments arguments;
  if (values.size() == 5) {
    // The name of a group may stand in a list with its description.
    const std::vector<JsonValue> parts = values[2].Elements(1);
    const JsonValue group = parts.empty() ? values[2] : parts[0];
    arguments.group = group.AsString().value_or("");
    arguments.name = values[4].AsString().value_or("");
  }
  arguments.group = details.Attribute("pg_name").AsString().value_or(arguments.group);
  arguments.name = details.Attribute("collective_name").AsString().value_or(arguments.name);
  return arguments;
}

class CollectiveReader {
 public:
  CollectiveReader(const TraceJsonTable& trace, const HostTrace& host, const RankTimeline& timeline,
                   int64_t world_size, RankCollectives* out)
      : table_(trace.table), host_(host), timeline_(timeline), out_(*out) {
    ReadGroups();
    world_size_ =
        trace.header.Find("distributedInfo").Find("world_size").AsInt64().value_or(world_size);
  }

  void Run() {
    std::vector<TimelineIndex> kernels;
    for (TimelineIndex node = 0; node < timeline_.nodes.size(); ++node) {
      const TimelineNode& work = timeline_.nodes[node];
      if (!work.on_host && IsCommunicationKernel(table_.name(work.row))) kernels.push_back(node);
    }
    FindNodes(kernels);
    const absl::flat_hash_set<TimelineIndex> described(out_.nodes.begin(), out_.nodes.end());
    for (const TimelineIndex node : kernels) {
      if (!described.contains(node) && !AddFromHost(node)) out_.undescribed.push_back(node);
    }
    SortEvents();
  }

 private:
  void ReadGroups() {
    for (const JsonValue group : JsonValue(host_.process_groups()).Elements()) {
      const std::optional<std::string> name = group.Find("pg_name").AsString();
      const std::optional<std::vector<int64_t>> ranks = group.Find("ranks").AsInt64Array();
      if (name.has_value() && ranks.has_value()) ranks_of_group_[*name] = *ranks;
    }
  }

  // Events tell the start and the correlation of their first kernel.
  void FindNodes(const std::vector<TimelineIndex>& kernels) {
    absl::flat_hash_map<std::pair<int64_t, uint64_t>, TimelineIndex> nodes;
    for (const TimelineIndex node : kernels) {
      const TimelineNode& work = timeline_.nodes[node];
      nodes[{work.start_ps, table_.correlation(work.row).value_or(0)}] = node;
    }
    for (const CollectiveEvent& event : out_.profile.events) {
      const auto it = nodes.find({event.start_ps, event.correlation_id});
      out_.nodes.push_back(it == nodes.end() ? kNoTimelineNode : it->second);
    }
  }

  // Returns false when the host trace does not describe it either.
  bool AddFromHost(TimelineIndex node) {
    const TimelineNode& work = timeline_.nodes[node];
    if (work.launching_op == kNoHostOp) return false;
    const absl::string_view kernel = table_.name(work.row);
    HostOpIndex op = work.launching_op;
    for (HostOpIndex at = op; at != kNoHostOp; at = host_.ops()[at].parent) {
      if (host_.name(at) != kRecordParamComms) continue;
      op = at;
      break;
    }
    const HostOpIndex with_tensors = NearestOpWithTensors(host_, op);
    const CommArguments arguments = ArgumentsOf(host_.Details(op));
    const std::optional<CollectiveKind> kind = KindOf(kernel, op, arguments);
    if (!kind.has_value() || with_tensors == kNoHostOp) return false;
    CollectiveOp collective;
    collective.kind = *kind;
    collective.module = arguments.group;
    for (const HostTensor& tensor : TensorsIn(host_.Details(with_tensors).inputs.values)) {
      if (tensor.on_device) collective.operand_bytes += tensor.bytes;
    }
    collective.output_bytes = collective.operand_bytes;
    SetParticipants(arguments, &collective);
    AddEvent(node, std::move(collective));
    return true;
  }

  std::optional<CollectiveKind> KindOf(absl::string_view kernel, HostOpIndex op,
                                       const CommArguments& arguments) const {
    std::string name = arguments.name;
    for (HostOpIndex at = op; name.empty() && at != kNoHostOp; at = host_.ops()[at].parent) {
      if (absl::StartsWith(host_.name(at), "nccl:")) name = std::string(host_.name(at).substr(5));
    }
    const absl::string_view first_word = absl::string_view(name).substr(0, name.find(' '));
    // Messages run as the same kernels as an all-to-all; the profile names their peers from PyTorch
    // 2.2 on.
    if (first_word == "send" || first_word == "recv") return std::nullopt;
    return KindOfKernel(kernel, /*has_groups=*/true);
  }

  void SetParticipants(const CommArguments& arguments, CollectiveOp* op) {
    std::vector<int64_t> ranks;
    const auto group = ranks_of_group_.find(arguments.group);
    if (group != ranks_of_group_.end()) ranks = group->second;
    if (ranks.empty()) {
      for (int64_t rank = 0; rank < std::min(world_size_, kMaxGroupIds); ++rank) {
        ranks.push_back(rank);
      }
    }
    op->instruction = absl::StrCat(CollectiveKindName(op->kind), " ", op->operand_bytes, " bytes");
    if (!ranks.empty()) op->groups.Add(ranks);
  }

  void AddEvent(TimelineIndex node, CollectiveOp op) {
    const TimelineNode& work = timeline_.nodes[node];
    const auto [it, is_new] = ops_.try_emplace(std::make_tuple(op.kind, op.module, op.instruction),
                                               static_cast<uint32_t>(out_.profile.ops.size()));
    CollectiveEvent event;
    event.op = it->second;
    event.device = out_.profile.devices[0].global_id;
    if (is_new) out_.profile.ops.push_back(std::move(op));
    if (!out_.profile.ops[event.op].groups.empty()) event.group = 0;
    event.start_ps = work.start_ps;
    event.end_ps = work.end_ps();
    event.correlation_id = table_.correlation(work.row).value_or(0);
    event.kernels = 1;
    out_.profile.events.push_back(event);
    out_.nodes.push_back(node);
  }

  void SortEvents() {
    std::vector<std::pair<CollectiveEvent, TimelineIndex>> sorted;
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      sorted.emplace_back(out_.profile.events[i], out_.nodes[i]);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.first.start_ps < b.first.start_ps;
    });
    for (size_t i = 0; i < sorted.size(); ++i) {
      std::tie(out_.profile.events[i], out_.nodes[i]) = sorted[i];
    }
  }

  const EventTable& table_;
  const HostTrace& host_;
  const RankTimeline& timeline_;
  RankCollectives& out_;
  std::map<std::string, std::vector<int64_t>> ranks_of_group_;
  int64_t world_size_ = 0;
  std::map<std::tuple<CollectiveKind, std::string, std::string>, uint32_t> ops_;
};

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
      "; put them on one clock with combine --output_dir first, or insist with "
      "--allow_violations"));
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
        rank.unmatched[node] = "neither trace says what it communicates";
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
                                    absl::string_view name, const HostTrace& host,
                                    const RankTimeline& timeline, int64_t world_size) {
  RankCollectives result;
  result.profile = ReadKinetoCollectives(trace, text, name);
  CollectiveReader(trace, host, timeline, world_size, &result).Run();
  return result;
}

absl::StatusOr<MatchedCommunication> MatchCommunication(std::vector<RankCollectives> collectives,
                                                        bool allow_violations) {
  std::vector<ProfileCollectives> profiles;
  for (RankCollectives& rank : collectives) profiles.push_back(std::move(rank.profile));
  RETURN_IF_ERROR(CheckGroupsAgree(profiles));
  ASSIGN_OR_RETURN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const absl::Status clocks = CheckClocks(run);
  if (!clocks.ok() && !allow_violations) return clocks;
  MatchedCommunication result = Matcher(run, collectives).Match();
  result.clocks_agree = clocks.ok();
  return result;
}

}  // namespace meridian
