#include "cluster/replay/stall.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meridian {
namespace {

// An explanation has this many parts at most.
constexpr size_t kMaxParts = 16;

}  // namespace

std::string EncodeState(const RankState& state) {
  std::string bytes(1, static_cast<char>(state.kind));
  for (size_t i = 0; i < state.issued.size(); ++i) {
    bytes += static_cast<char>(state.issued[i] + 2 * state.finished[i]);
  }
  return bytes;
}

RankState DecodeState(absl::string_view bytes) {
  RankState state;
  state.kind = RankState::Kind::kMoving;
  if (bytes.empty() || bytes[0] != static_cast<char>(RankState::Kind::kStuck)) return state;
  state.kind = RankState::Kind::kStuck;
  for (const char node : bytes.substr(1)) {
    state.issued.push_back((node & 1) != 0);
    state.finished.push_back((node & 2) != 0);
  }
  return state;
}

std::string ExplainStall(const ExecutionGraph& graph, const CommunicationMatch& match,
                         absl::Span<const RankState> states) {
  // By rank: its first node.
  std::vector<NodeIndex> first(states.size(), kNoNodeIndex);
  for (NodeIndex node = static_cast<NodeIndex>(graph.node_count()); node-- > 0;) {
    if (graph.rank(node) < static_cast<int64_t>(first.size())) first[graph.rank(node)] = node;
  }
  const auto is = [&](const std::vector<bool> RankState::*what, NodeIndex node) {
    const auto rank = static_cast<size_t>(graph.rank(node));
    const std::vector<bool>& flags = states[rank].*what;
    const size_t position = node - first[rank];
    return position < flags.size() && flags[position];
  };
  std::vector<std::string> parts;
  for (size_t rank = 0; rank < states.size(); ++rank) {
    if (states[rank].kind != RankState::Kind::kStuck) {
      const bool silent = states[rank].kind == RankState::Kind::kSilent;
      parts.push_back(absl::StrCat("rank ", rank, silent ? " does not answer" : " is at work"));
      continue;
    }
    for (size_t i = 0; i < states[rank].issued.size(); ++i) {
      const auto node = static_cast<NodeIndex>(first[rank] + i);
      const CommunicationMatch::Instance instance = match.instance_of(node);
      if (instance == CommunicationMatch::kNoInstance || !states[rank].issued[i] ||
          states[rank].finished[i]) {
        continue;
      }
      std::vector<std::string> missing;
      for (const NodeIndex member : match.members(instance)) {
        if (!is(&RankState::issued, member)) missing.push_back(graph.Describe(member));
      }
      parts.push_back(missing.empty()
                          ? absl::StrCat(graph.Describe(node), " is under way on all its ranks")
                          : absl::StrCat(graph.Describe(node), " waits for ",
                                         absl::StrJoin(missing, " and "), ", not issued there"));
    }
  }
  if (parts.empty()) return "all ranks have finished but for the barrier between two repeats";
  const size_t more = parts.size() > kMaxParts ? parts.size() - kMaxParts : 0;
  if (more > 0) parts.resize(kMaxParts);
  std::string text = absl::StrJoin(parts, "; ");
  if (more > 0) absl::StrAppend(&text, "; and ", more, " more");
  return text;
}

}  // namespace meridian
