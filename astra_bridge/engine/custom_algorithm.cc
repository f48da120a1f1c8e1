#include "astra_bridge/engine/custom_algorithm.h"

#include <algorithm>
#include <optional>
#include <string>
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
    if (nodes.nodes()[node].type == WorkloadNodeType::kCollective) {
      return InvalidArgument(
          "node ", id, ": is a collective; an algorithm has sends, receives and computations");
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
  return member;
}

}  // namespace

absl::StatusOr<CustomAlgorithm> CustomAlgorithm::Create(absl::Span<const RankWorkload> members) {
  CustomAlgorithm algorithm;
  for (size_t i = 0; i < members.size(); ++i) {
    ASSIGN_OR_RETURN(CustomMember member,
                     Annotate(MakeMember(members[i]), MemberName(members[i], i)));
    algorithm.members_.push_back(std::move(member));
  }
  RETURN_IF_ERROR(algorithm.CheckEnds());
  return algorithm;
}

absl::Status CustomAlgorithm::CheckEnds() const {
  std::vector<CustomState> states(members_.begin(), members_.end());
  SendMatcher sends;
  // Members that may go on.
  std::vector<int32_t> awake(members_.size());
  for (size_t i = 0; i < awake.size(); ++i) awake[i] = static_cast<int32_t>(i);
  while (!awake.empty()) {
    const int32_t at = awake.back();
    awake.pop_back();
    for (const uint32_t node : states[at].TakeReady()) {
      const WorkloadNode& operation = members_[at].nodes->nodes()[node];
      if (operation.type == WorkloadNodeType::kReceive) {
        if (!sends.Receive(SendKeyOf(operation.peer, at, operation), node)) continue;
      } else if (operation.type == WorkloadNodeType::kSend) {
        const std::optional<uint32_t> receive =
            sends.Arrive(SendKeyOf(at, operation.peer, operation));
        if (receive.has_value()) {
          states[operation.peer].Finish(*receive);
          awake.push_back(operation.peer);
        }
      }
      states[at].Finish(node);
      awake.push_back(at);
    }
  }
  const auto error = [&](int32_t member, const std::string& reason) {
    return InvalidArgument(MemberName(*members_[member].nodes, member), ": ", reason);
  };
  const auto describe = [](const SendKey& key) {
    return absl::StrCat(" (tag ", key.tag, ", ", key.bytes, " bytes)");
  };
  std::vector<WaitingReceive> receives = sends.WaitingReceives();
  if (!receives.empty()) {
    const WaitingReceive& first = *std::min_element(
        receives.begin(), receives.end(), [](const WaitingReceive& a, const WaitingReceive& b) {
          return std::pair(a.key.destination, a.node) < std::pair(b.key.destination, b.node);
        });
    return error(
        first.key.destination,
        absl::StrCat("node ", members_[first.key.destination].nodes->nodes()[first.node].id,
                     ": the send of rank ", first.key.source, describe(first.key),
                     " never comes: there is none, or it waits for this receive",
                     first.other_bytes.has_value()
                         ? absl::StrCat("; one has ", *first.other_bytes, " bytes")
                         : ""));
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].done()) continue;
    return error(static_cast<int32_t>(i), "nodes depend on each other in a circle");
  }
  const std::vector<SendKey> messages = sends.WaitingMessages();
  if (messages.empty()) return absl::OkStatus();
  const SendKey& first =
      *std::min_element(messages.begin(), messages.end(),
                        [](const SendKey& a, const SendKey& b) { return a.key() < b.key(); });
  return error(first.source, absl::StrCat("a send to rank ", first.destination, describe(first),
                                          " has no receive"));
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
