#include "cluster/replay/issue_order.h"

#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

// Devices take about a thousand launches before a launch waits.
constexpr size_t kMostQueued = 400;
// A device starts within this time what its host calls for.
constexpr int64_t kLaunchNs = 20'000;

}  // namespace

IssueOrder::IssueOrder(const ExecutionGraph& graph, int64_t rank,
                       absl::FunctionRef<bool(NodeIndex)> is_queued)
    : graph_(graph), successors_(graph) {
  while (first_node_ < graph.node_count() && graph.rank(first_node_) != rank) ++first_node_;
  while (first_node_ + node_count_ < graph.node_count() &&
         graph.rank(static_cast<NodeIndex>(first_node_ + node_count_)) == rank) {
    is_queued_.push_back(is_queued(static_cast<NodeIndex>(first_node_ + node_count_)));
    ++node_count_;
  }
  LinkSequences();
  Restart();
}

void IssueOrder::LinkSequences() {
  next_in_sequence_.assign(node_count_, kNoNodeIndex);
  has_predecessor_.assign(node_count_, false);
  std::vector<NodeIndex> by_id;
  for (size_t i = 0; i < node_count_; ++i) {
    const auto node = static_cast<NodeIndex>(first_node_ + i);
    if (graph_.communication(node) != nullptr) by_id.push_back(node);
  }
  absl::c_sort(by_id, [this](NodeIndex a, NodeIndex b) { return graph_.id(a) < graph_.id(b); });
  // The last node so far of each type, group or pair of ranks, and tag.
  std::map<std::tuple<int, GroupIndex, int64_t, int64_t, int32_t>, NodeIndex> last;
  for (const NodeIndex node : by_id) {
    const Communication& of = *graph_.communication(node);
    const auto [it, is_first] =
        last.try_emplace({static_cast<int>(graph_.type(node)), of.group, of.source, of.target,
                          IsQueued(node) ? 0 : of.tag},
                         node);
    if (is_first) continue;
    next_in_sequence_[it->second - first_node_] = node;
    has_predecessor_[node - first_node_] = true;
    it->second = node;
  }
}

void IssueOrder::Restart(bool waits_for_gaps) {
  waits_for_gaps_ = waits_for_gaps;
  under_way_.clear();
  finished_count_ = 0;
  slots_.assign(graph_.resources().size(), Slot());
  touched_slots_.clear();
  issuable_.clear();
  last_gap_.assign(node_count_, kNoNodeIndex);
  has_passed_.assign(node_count_, false);
  awaited_gap_ = kNoNodeIndex;
  ready_ = ReadyNodes();
  queued_count_ = 0;
  waiting_.resize(node_count_);
  for (size_t i = 0; i < node_count_; ++i) {
    const auto node = static_cast<NodeIndex>(first_node_ + i);
    // One more than it waits for, which Approach takes off.
    waiting_[i] = static_cast<uint32_t>(graph_.dependencies(node).size()) + has_predecessor_[i] + 1;
    Approach(node);
  }
}

bool IssueOrder::Occupies(NodeIndex node) const {
  return !IsQueued(node) && graph_.type(node) != ChakraProtoMsg::COMM_RECV_NODE;
}

void IssueOrder::Approach(NodeIndex node) {
  if (--waiting_[node - first_node_] > 0) return;
  if (IsQueued(node)) {
    ready_.push({graph_.id(node), node});
    return;
  }
  if (!Occupies(node)) {
    issuable_.push_back(node);
    return;
  }
  const ResourceIndex resource = graph_.resource_index(node);
  slots_[resource].queue.push({graph_.id(node), node});
  touched_slots_.push_back(resource);
}

NodeIndex IssueOrder::LastGapBefore(NodeIndex node) const {
  NodeIndex last = kNoNodeIndex;
  for (const NodeIndex source : graph_.dependencies(node)) {
    const NodeIndex gap = last_gap_[source - first_node_];
    if (gap == kNoNodeIndex || has_passed_[gap - first_node_]) continue;
    if (last == kNoNodeIndex || graph_.id(last) < graph_.id(gap)) last = gap;
  }
  return last;
}

void IssueOrder::Pass(NodeIndex gap) {
  has_passed_[gap - first_node_] = true;
  if (gap == awaited_gap_) awaited_gap_ = kNoNodeIndex;
}

void IssueOrder::MarkIssued(NodeIndex node) {
  under_way_.insert(node);
  const NodeIndex next = next_in_sequence_[node - first_node_];
  if (next != kNoNodeIndex) Approach(next);
  if (!IsQueued(node)) return;
  ++queued_count_;
  for (const NodeIndex successor : successors_.Of(node)) {
    if (IsQueued(successor)) Approach(successor);
  }
}

std::vector<NodeIndex> IssueOrder::TakeIssuable() {
  std::vector<NodeIndex> taken;
  // To issue a node may let the next of its sequence follow.
  while (!touched_slots_.empty() || !issuable_.empty()) {
    std::vector<NodeIndex> now;
    now.swap(issuable_);
    for (const ResourceIndex resource : touched_slots_) {
      Slot& slot = slots_[resource];
      if (!slot.is_free || slot.queue.empty()) continue;
      slot.is_free = false;
      now.push_back(slot.queue.top().second);
      slot.queue.pop();
    }
    touched_slots_.clear();
    absl::c_sort(now, [this](NodeIndex a, NodeIndex b) { return graph_.id(a) < graph_.id(b); });
    for (const NodeIndex node : now) MarkIssued(node);
    taken.insert(taken.end(), now.begin(), now.end());
  }
  while (!ready_.empty() && queued_count_ < kMostQueued) {
    const NodeIndex node = ready_.top().second;
    const NodeIndex gap = LastGapBefore(node);
    if (graph_.communication(node) == nullptr) {
      const bool is_long = graph_.is_host_gap(node) && graph_.duration_ns(node) > kLaunchNs;
      last_gap_[node - first_node_] = is_long ? node : gap;
    } else if (gap != kNoNodeIndex && waits_for_gaps_) {
      awaited_gap_ = gap;
      break;
    }
    taken.push_back(node);
    ready_.pop();
    MarkIssued(node);
  }
  return taken;
}

void IssueOrder::Finish(NodeIndex node) {
  under_way_.erase(node);
  ++finished_count_;
  if (Occupies(node)) {
    slots_[graph_.resource_index(node)].is_free = true;
    touched_slots_.push_back(graph_.resource_index(node));
  }
  if (IsQueued(node)) --queued_count_;
  Pass(node);
  for (const NodeIndex next : successors_.Of(node)) {
    if (!IsQueued(node) || !IsQueued(next)) Approach(next);
  }
}

}  // namespace meridian
