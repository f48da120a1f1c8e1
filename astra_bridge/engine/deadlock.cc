#include "astra_bridge/engine/deadlock.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meridian {
namespace {

constexpr size_t kShownNodes = 8;
constexpr size_t kShownRanks = 8;

std::string DescribeNode(const WorkloadNode& node) {
  if (node.type == WorkloadNodeType::kReceive) {
    return absl::StrCat("receive from rank ", node.peer, ", tag ", node.tag, ", ", node.bytes,
                        " bytes");
  }
  return node.group == kWorldGroup
             ? absl::StrCat(CollectiveKindName(node.op), " of all ranks")
             : absl::StrCat(CollectiveKindName(node.op), " of group ", node.group);
}

// Returns e.g. "ranks 2, 5 and others": the ranks but for one.
std::string DescribeRanks(absl::Span<const int32_t> ranks, int32_t except) {
  std::vector<int32_t> shown;
  for (size_t i = 0; i < ranks.size() && shown.size() <= kShownRanks; ++i) {
    if (ranks[i] != except) shown.push_back(ranks[i]);
  }
  const bool has_more = shown.size() > kShownRanks;
  if (has_more) shown.pop_back();
  return absl::StrCat(shown.size() == 1 ? "rank " : "ranks ", absl::StrJoin(shown, ", "),
                      has_more ? " and others" : "");
}

std::string DescribeWait(const Workload& workload, const WaitingNode& waiting) {
  const RankWorkload& rank = workload.ranks[waiting.rank];
  const WorkloadNode& node = rank.nodes()[waiting.node];
  return absl::StrCat("rank ", waiting.rank,
                      rank.source.empty() ? "" : absl::StrCat(" (", rank.source, ")"),
                      " waits in node ", node.id, " (", DescribeNode(node), ") for ",
                      DescribeRanks(waiting.for_ranks, waiting.rank),
                      waiting.note.empty() ? "" : ": ", waiting.note);
}

}  // namespace

std::vector<size_t> FindCircle(size_t count, absl::FunctionRef<size_t(size_t)> next) {
  // The walk that came by each number, from 1 on; 0 for none.
  std::vector<size_t> walks(count);
  for (size_t start = 0; start < count; ++start) {
    size_t at = start;
    while (at < count && walks[at] == 0) {
      walks[at] = start + 1;
      at = next(at);
    }
    if (at == count || walks[at] != start + 1) continue;
    std::vector<size_t> circle = {at};
    for (size_t i = next(at); i != at; i = next(i)) circle.push_back(i);
    return circle;
  }
  return {};
}

std::string DescribeDeadlock(const Workload& workload, const std::vector<WaitingNode>& waiting,
                             int64_t now_ns) {
  absl::flat_hash_map<int32_t, size_t> by_rank;
  for (size_t i = 0; i < waiting.size(); ++i) by_rank.try_emplace(waiting[i].rank, i);
  // Leads from a node to the node of a rank that it waits for, if that rank waits too.
  std::vector<size_t> order = FindCircle(waiting.size(), [&](size_t at) {
    for (const int32_t rank : waiting[at].for_ranks) {
      const auto found = by_rank.find(rank);
      if (rank != waiting[at].rank && found != by_rank.end()) return found->second;
    }
    return waiting.size();
  });
  std::vector<bool> is_listed(waiting.size());
  for (const size_t i : order) is_listed[i] = true;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (!is_listed[i]) order.push_back(i);
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(order.size(), kShownNodes); ++i) {
    lines.push_back(DescribeWait(workload, waiting[order[i]]));
  }
  if (order.size() > kShownNodes) {
    lines.push_back(absl::StrCat(order.size() - kShownNodes, " more nodes wait"));
  }
  return absl::StrCat("deadlock at ", now_ns, " ns: ", absl::StrJoin(lines, "; "));
}

}  // namespace meridian
