#include "astra_bridge/edges/job_layout.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

absl::Status FillInMembers(const JobLayout& layout, CommEdge* edge) {
  const auto group = layout.groups.find(edge->group_id);
  if (edge->participants.empty()) {
    if (group == layout.groups.end()) {
      return InvalidArgument(
          "group_id ", Printable(edge->group_id),
          " has no members; list participants, or the group in the configuration");
    }
    edge->participants = group->second;
  } else if (group != layout.groups.end() && edge->kind != CollectiveKind::kPointToPoint &&
             group->second != edge->participants) {
    return InvalidArgument("the participants are not those of group ", Printable(edge->group_id),
                           " in the configuration, or in another order");
  }
  return absl::OkStatus();
}

absl::Status ToDevices(const RankToDevice& rank_to_device, CommEdge* edge) {
  if (rank_to_device.empty()) return absl::OkStatus();
  absl::flat_hash_set<int32_t> devices;
  for (int32_t& participant : edge->participants) {
    const auto device = rank_to_device.find(participant);
    if (device == rank_to_device.end()) {
      return InvalidArgument("rank ", participant, " is not in rank_to_device");
    }
    participant = device->second;
    if (!devices.insert(participant).second) {
      return InvalidArgument("two participants are device ", participant, " by rank_to_device");
    }
  }
  return absl::OkStatus();
}

absl::Status PlaceEdge(const JobLayout& layout, CommEdge* edge) {
  RETURN_IF_ERROR(FillInMembers(layout, edge));
  const auto topology = layout.group_topologies.find(edge->group_id);
  if (edge->topology_key.empty() && topology != layout.group_topologies.end()) {
    edge->topology_key = topology->second;
  }
  return ToDevices(layout.rank_to_device, edge);
}

}  // namespace

absl::Status PlaceEdges(const JobLayout& layout, std::vector<CommEdge>* edges) {
  for (CommEdge& edge : *edges) {
    RETURN_IF_ERROR(Annotate(PlaceEdge(layout, &edge), absl::StrCat("edge ", Printable(edge.id))));
  }
  return absl::OkStatus();
}

}  // namespace meridian
