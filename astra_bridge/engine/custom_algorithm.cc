#include "astra_bridge/engine/custom_algorithm.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/send_matcher.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

std::string MemberName(const RankWorkload& nodes, size_t position) {
  return nodes.source.empty() ? absl::StrCat("member ", position) : nodes.source;
}

// Fills the sets as AstraSim's feeder does: nodes in the order of the trace, each followed by what it
// depends on.
absl::StatusOr<CustomMember> MakeMember(const RankWorkload& nodes) {
  CustomMember member;
  member.nodes = &nodes;
  ASSIGN_OR_RETURN(member.graph, DependencyGraph::Create(nodes));
  std::unordered_set<uint64_t> known;
  std::vector<std::unordered_set<uint64_t>> dependents(nodes.nodes().size());
  for (size_t node = 0; node < nodes.nodes().size(); ++node) {
    const uint64_t id = nodes.nodes()[node].id;
    const WorkloadNodeType type = nodes.nodes()[node].type;
    if (type == WorkloadNodeType::kCollective || type == WorkloadNodeType::kMemory) {
      return InvalidArgument("node ", id, ": is a ",
                             type == WorkloadNodeType::kMemory ? "memory node" : "collective",
                             "; an algorithm has sends, receives and computations");
    }
    known.insert(id);
    std::unordered_set<uint64_t> dependencies;
    for (const uint64_t dependency : nodes.dependencies(node)) dependencies.insert(dependency);
    for (const uint64_t dependency : dependencies) {
      known.insert(dependency);
      dependents[member.graph.Find(nodes, dependency)].insert(id);
    }
    member.dependency_counts.push_back(static_cast<uint32_t>(dependencies.size()));
  }
  for (const uint64_t id : known) {
    if (member.dependency_counts[member.graph.Find(nodes, id)] == 0) member.roots.insert(id);
  }
  for (const std::unordered_set<uint64_t>& ids : dependents) {
    std::vector<uint32_t>& found = member.dependents.emplace_back();
    for (const uint64_t id : ids) found.push_back(member.graph.Find(nodes, id));
  }
  CustomState state(member);
  for (std::vector<uint32_t> ready = state.TakeReady(); !ready.empty(); ready = state.TakeReady()) {
    for (const uint32_t node : ready) state.Finish(node);
  }
  if (!state.done()) return InvalidArgument("nodes depend on each other in a circle");
  return member;
}

// Fails on sends without receives and receives without sends.
absl::Status CheckMatched(absl::Span<const RankWorkload> members) {
  // Sends less receives.
  std::map<std::tuple<int32_t, int32_t, int32_t, int64_t>, int64_t> balance;
  for (size_t i = 0; i < members.size(); ++i) {
    const int32_t member = static_cast<int32_t>(i);
    for (const WorkloadNode& node : members[i].nodes()) {
      if (node.type == WorkloadNodeType::kSend) {
        ++balance[SendKeyOf(member, node.peer, node).key()];
      } else if (node.type == WorkloadNodeType::kReceive) {
        --balance[SendKeyOf(node.peer, member, node).key()];
      }
    }
  }
  for (const auto& [key, sends] : balance) {
    if (sends == 0) continue;
    const auto [source, destination, tag, bytes] = key;
    return InvalidArgument(MemberName(members[source], source), ": rank ", source,
                           sends > 0 ? " sends more often to rank " : " sends less often to rank ",
                           destination, " with tag ", tag, " and ", bytes,
                           " bytes than that receives it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CustomAlgorithm> CustomAlgorithm::Create(absl::Span<const RankWorkload> members) {
  CustomAlgorithm algorithm;
  for (size_t i = 0; i < members.size(); ++i) {
    ASSIGN_OR_RETURN(CustomMember member,
                     Annotate(MakeMember(members[i]), MemberName(members[i], i)));
    algorithm.members_.push_back(std::move(member));
  }
  RETURN_IF_ERROR(CheckMatched(members));
  return algorithm;
}

CustomState::CustomState(const CustomMember& member)
    : member_(&member), ready_(member.roots), waits_for_(member.dependency_counts) {}

std::vector<uint32_t> CustomState::TakeReady() {
  std::vector<uint32_t> ready;
  for (const uint64_t id : ready_) ready.push_back(member_->graph.Find(*member_->nodes, id));
  ready_.clear();
  return ready;
}

void CustomState::Finish(uint32_t node) {
  ++done_;
  for (const uint32_t dependent : member_->dependents[node]) {
    if (--waits_for_[dependent] == 0) ready_.insert(member_->nodes->nodes()[dependent].id);
  }
}

}  // namespace meridian
