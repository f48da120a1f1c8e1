#include "astra_bridge/engine/workload.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

absl::Status GroupError(const Workload& workload, int32_t id, absl::string_view reason) {
  return InvalidArgument(workload.groups_source, workload.groups_source.empty() ? "" : ": ",
                         "group ", id, ": ", reason);
}

}  // namespace

void RankWorkload::Add(WorkloadNode node, absl::Span<const uint64_t> dependencies) {
  nodes_.push_back(std::move(node));
  dependencies_.insert(dependencies_.end(), dependencies.begin(), dependencies.end());
  dependencies_end_.push_back(dependencies_.size());
}

absl::Span<const uint64_t> RankWorkload::dependencies(size_t node) const {
  const size_t begin = node == 0 ? 0 : dependencies_end_[node - 1];
  return absl::MakeConstSpan(dependencies_).subspan(begin, dependencies_end_[node] - begin);
}

absl::StatusOr<GroupTable> GroupTable::Create(const Workload& workload) {
  GroupTable table;
  table.ranks_ = static_cast<int32_t>(workload.ranks.size());
  table.groups_.emplace_back();
  for (const auto& [id, members] : workload.groups) {
    if (id < 1) return GroupError(workload, id, "ids start at 1; 0 stands for all ranks");
    if (members.empty()) return GroupError(workload, id, "has no members");
    const uint32_t number = static_cast<uint32_t>(table.groups_.size());
    const bool has_all = members.size() == workload.ranks.size();
    for (size_t i = 0; i < members.size(); ++i) {
      const int32_t rank = members[i];
      if (rank < 0 || rank >= table.ranks_) {
        return GroupError(
            workload, id,
            absl::StrCat("rank ", rank, " does not exist; the network has ranks 0 to ",
                         table.ranks_ - 1));
      }
      if (!table.members_.try_emplace({number, rank}, static_cast<int32_t>(i)).second) {
        return GroupError(workload, id, absl::StrCat("rank ", rank, " is there twice"));
      }
    }
    Group& group = table.groups_.emplace_back();
    group.id = id;
    if (!has_all) group.members = members;
    table.by_id_[id] = number;
  }
  return table;
}

absl::StatusOr<Membership> GroupTable::Find(int32_t rank, int32_t group_id) const {
  Membership membership;
  membership.member = rank;
  if (group_id == kWorldGroup) return membership;
  const auto found = by_id_.find(group_id);
  if (found == by_id_.end()) {
    return NotFound("group ", group_id,
                    " is not among the communicator groups; name their file with --comm_groups, "
                    "e.g. PREFIX.comm_groups.json");
  }
  membership.group = found->second;
  if (groups_[membership.group].members.empty()) return membership;
  const auto member = members_.find({membership.group, rank});
  if (member == members_.end()) {
    return InvalidArgument("rank ", rank, " is no member of group ", group_id);
  }
  membership.member = member->second;
  return membership;
}

bool Computes(const WorkloadNode& node, bool has_device) {
  return node.type == WorkloadNodeType::kCompute && !node.is_host_gap &&
         (!node.on_host || !has_device);
}

bool HasDevice(const RankWorkload& rank) {
  return std::any_of(rank.nodes().begin(), rank.nodes().end(), [](const WorkloadNode& node) {
    return node.type == WorkloadNodeType::kCompute && !node.is_host_gap && !node.on_host;
  });
}

std::optional<int64_t> MeasuredSpanNs(const Workload& workload) {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
  for (const RankWorkload& rank : workload.ranks) {
    for (const WorkloadNode& node : rank.nodes()) {
      if (node.measured_start_ns == kNotMeasured) {
        if (node.duration_ns > 0 && !node.is_host_gap) return std::nullopt;
        continue;
      }
      first_ns = std::min(first_ns, node.measured_start_ns);
      last_ns = std::max(last_ns, node.measured_start_ns + node.duration_ns);
    }
  }
  if (last_ns < first_ns) return std::nullopt;
  return last_ns - first_ns;
}

}  // namespace meridian
