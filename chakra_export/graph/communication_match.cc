#include "chakra_export/graph/communication_match.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

class CommunicationMatcher {
 public:
  CommunicationMatcher(const ExecutionGraph& graph, CommunicationMatch* match)
      : graph_(graph), ranks_(graph.Ranks()), match_(match) {}

  void Run() {
    match_->instance_of_.assign(graph_.node_count(), CommunicationMatch::kNoInstance);
    Collect();
    for (const auto& [group, sequences] : collectives_) MatchCollectives(group, sequences);
    for (const auto& [key, message] : messages_) MatchMessages(message);
    absl::c_stable_sort(match_->problems_, [this](const MatchProblem& a, const MatchProblem& b) {
      return Place(a.node) < Place(b.node);
    });
  }

 private:
  // The nodes of each rank in the order of their ids.
  using Sequences = std::map<int64_t, std::vector<NodeIndex>>;
  struct Messages {
    std::vector<NodeIndex> sends;
    std::vector<NodeIndex> receives;
  };

  bool IsPresent(int64_t rank) const { return absl::c_binary_search(ranks_, rank); }

  void Collect() {
    for (const NodeIndex node : CommunicationNodes()) {
      const Communication& communication = *graph_.communication(node);
      switch (graph_.type(node)) {
        case ChakraProtoMsg::COMM_COLL_NODE:
          collectives_[communication.group][graph_.rank(node)].push_back(node);
          break;
        case ChakraProtoMsg::COMM_SEND_NODE:
          messages_[{graph_.rank(node), communication.target, communication.tag}].sends.push_back(
              node);
          break;
        default:
          messages_[{communication.source, graph_.rank(node), communication.tag}]
              .receives.push_back(node);
      }
    }
  }

  // Returns the nodes that communicate in the order of ranks and ids.
  std::vector<NodeIndex> CommunicationNodes() const {
    std::vector<NodeIndex> nodes;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (graph_.communication(node) != nullptr) nodes.push_back(node);
    }
    absl::c_sort(nodes, [this](NodeIndex a, NodeIndex b) { return Place(a) < Place(b); });
    return nodes;
  }

  std::tuple<int64_t, uint64_t, NodeIndex> Place(NodeIndex node) const {
    return {graph_.rank(node), graph_.id(node), node};
  }

  void MatchCollectives(GroupIndex group_index, const Sequences& sequences) {
    const ProcessGroup& group = graph_.groups()[group_index];
    std::vector<std::pair<int64_t, const std::vector<NodeIndex>*>> present;
    size_t longest = 0;
    for (const int64_t rank : group.ranks) {
      if (!IsPresent(rank)) continue;
      const auto it = sequences.find(rank);
      present.push_back({rank, it == sequences.end() ? &none_ : &it->second});
      longest = std::max(longest, present.back().second->size());
    }
    for (size_t k = 0; k < longest; ++k) {
      for (const auto& [rank, nodes] : present) {
        if (k < nodes->size()) match_->members_.push_back((*nodes)[k]);
      }
      const absl::Span<const NodeIndex> members = EndInstance();
      for (const auto& [rank, nodes] : present) {
        // What is missing is reported once, by the first collective that lacks it.
        if (k != nodes->size()) continue;
        Report(MatchProblem::Kind::kMissingPeer, members[0],
               absl::StrCat(graph_.Describe(members[0]), " is collective ", k + 1, " of group \"",
                            group.name, "\", but rank ", rank, " has only ", k));
      }
      CheckAgreement(members);
    }
    for (const auto& [rank, nodes] : sequences) {
      if (absl::c_linear_search(group.ranks, rank)) continue;
      for (const NodeIndex node : nodes) {
        Report(MatchProblem::Kind::kNotAMember, node,
               absl::StrCat(graph_.Describe(node), " runs a collective of group \"", group.name,
                            "\", which rank ", rank, " is no member of"));
      }
    }
  }

  void MatchMessages(const Messages& message) {
    const size_t longest = std::max(message.sends.size(), message.receives.size());
    for (size_t k = 0; k < longest; ++k) {
      const bool has_send = k < message.sends.size();
      const bool has_receive = k < message.receives.size();
      if (has_send) match_->members_.push_back(message.sends[k]);
      if (has_receive) match_->members_.push_back(message.receives[k]);
      const absl::Span<const NodeIndex> members = EndInstance();
      if (has_send && has_receive) {
        CheckAgreement(members);
      } else {
        CheckPeer(members[0]);
      }
    }
  }

  // Ends the instance that the last members belong to, and returns them.
  absl::Span<const NodeIndex> EndInstance() {
    const auto instance = static_cast<CommunicationMatch::Instance>(match_->instance_count());
    match_->first_member_.push_back(static_cast<uint32_t>(match_->members_.size()));
    const absl::Span<const NodeIndex> members = match_->members(instance);
    for (const NodeIndex member : members) match_->instance_of_[member] = instance;
    return members;
  }

  // Reports a message that lacks its other end, unless that is on a rank that is not at hand.
  void CheckPeer(NodeIndex node) {
    const bool sends = graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    const Communication& communication = *graph_.communication(node);
    const int64_t peer = sends ? communication.target : communication.source;
    const absl::string_view verb = sends ? " sends to" : " receives from";
    if (peer == kNoRank) {
      Report(MatchProblem::Kind::kMissingPeer, node,
             absl::StrCat(graph_.Describe(node), verb, " a rank it does not name"));
    } else if (IsPresent(peer)) {
      Report(
          MatchProblem::Kind::kMissingPeer, node,
          absl::StrCat(graph_.Describe(node), verb, " rank ", peer, " with tag ", communication.tag,
                       ", which has no ", sends ? "receive" : "send", " for it"));
    }
  }

  void CheckAgreement(absl::Span<const NodeIndex> members) {
    const Communication& first = *graph_.communication(members[0]);
    for (const NodeIndex member : members.subspan(1)) {
      const Communication& other = *graph_.communication(member);
      if (other.type == first.type && other.bytes == first.bytes) continue;
      Report(MatchProblem::Kind::kDisagreement, member,
             absl::StrCat(graph_.Describe(members[0]), " is ", What(members[0]), ", but its peer ",
                          graph_.Describe(member), " is ", What(member)));
      // One is enough to name the instance.
      return;
    }
  }

  std::string What(NodeIndex node) const {
    return absl::StrCat(IsMessage(graph_.type(node)) ? "a message" : graph_.CommunicationKind(node),
                        " of ", graph_.communication(node)->bytes, " bytes");
  }

  void Report(MatchProblem::Kind kind, NodeIndex node, std::string text) {
    match_->problems_.push_back({kind, node, std::move(text)});
  }

  const ExecutionGraph& graph_;
  const std::vector<int64_t> ranks_;
  CommunicationMatch* match_;
  const std::vector<NodeIndex> none_;
  std::map<GroupIndex, Sequences> collectives_;
  // Messages of one source, target and tag.
  std::map<std::tuple<int64_t, int64_t, int32_t>, Messages> messages_;
};

CommunicationMatch::CommunicationMatch(const ExecutionGraph& graph) {
  CommunicationMatcher(graph, this).Run();
}

}  // namespace meridian
