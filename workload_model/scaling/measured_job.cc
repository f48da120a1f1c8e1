#include "workload_model/scaling/measured_job.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using ChakraProtoMsg::Node;

// Cuts are strides of axes, from 1 to the number of ranks; each must be a divisor of the next.
absl::StatusOr<RankMesh> MeshOf(const std::set<int64_t>& cuts) {
  std::vector<int64_t> lengths;
  for (auto cut = cuts.begin(), next = std::next(cut); next != cuts.end(); cut = next++) {
    if (*next % *cut != 0) {
      return InvalidArgument("the groups are no rows of one mesh: some repeat after ", *cut,
                             " ranks, some after ", *next);
    }
    lengths.push_back(*next / *cut);
  }
  return RankMesh(std::move(lengths));
}

}  // namespace

absl::StatusOr<CommunicationNode> ReadCommunication(const Node& node) {
  CommunicationNode result;
  result.is_message = IsMessage(node.type());
  ASSIGN_OR_RETURN(result.bytes, GetIntAttribute(node.attr(), kCommSizeAttribute));
  ASSIGN_OR_RETURN(const std::optional<int64_t> type,
                   GetIntAttribute(node.attr(), kCommTypeAttribute));
  result.type = static_cast<ChakraProtoMsg::CollectiveCommType>(type.value_or(0));
  if (!result.is_message) return result;
  const bool sends = node.type() == ChakraProtoMsg::COMM_SEND_NODE;
  ASSIGN_OR_RETURN(const std::optional<int64_t> peer,
                   GetIntAttribute(node.attr(), sends ? kCommDstAttribute : kCommSrcAttribute));
  if (peer.value_or(-1) < 0) {
    return InvalidArgument("'", node.name(), "' does not say which rank its message is from or to");
  }
  result.peer = *peer;
  return result;
}

absl::StatusOr<MeasuredJob> MeasuredJob::Read(FileSystem& file_system, const std::string& prefix) {
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  MeasuredJob job;
  for (const EtFile& file : files.files) job.paths_.push_back(file.path);
  const auto ranks = static_cast<int64_t>(job.paths_.size());
  if (ranks < 2) return InvalidArgument("a job of one rank has no axis to scale");
  EtGraphReaderOptions options;
  if (const std::string path = CommGroupsBeside(file_system, prefix); !path.empty()) {
    ASSIGN_OR_RETURN(options.groups, ReadCommGroups(file_system, path));
  }
  std::set<int64_t> cuts = {1, ranks};
  std::map<std::string, RankRow> rows;
  for (const auto& [name, members] : options.groups) {
    const std::optional<RankRow> row = RowOfMembers(members, ranks);
    if (!row.has_value()) {
      return InvalidArgument("the group {", absl::StrJoin(members, ","),
                             "} is no row of a mesh of ", ranks, " ranks");
    }
    cuts.insert({row->stride, row->stride * row->length});
    rows[name] = *row;
  }
  ASSIGN_OR_RETURN(job.mesh_, MeshOf(cuts));
  for (const auto& [name, row] : rows) job.axes_of_group_[name] = job.mesh_.AxesOf(row);
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, files, options));
  RETURN_IF_ERROR(TopologicalOrder(graph).status());
  return job;
}

absl::StatusOr<EtReader> MeasuredJob::Open(FileSystem& file_system, int64_t rank) const {
  return EtReader::Open(file_system, paths_[static_cast<size_t>(rank)]);
}

absl::StatusOr<AxisRange> MeasuredJob::AxesOf(const Node& node, int64_t rank) const {
  if (IsMessage(node.type())) {
    ASSIGN_OR_RETURN(const CommunicationNode message, ReadCommunication(node));
    if (message.peer == rank) return AxisRange(0, 0);
    const std::optional<size_t> axis =
        message.peer < mesh_.ranks() ? mesh_.AxisBetween(rank, message.peer) : std::nullopt;
    if (axis.has_value()) return AxisRange(*axis, *axis + 1);
    return InvalidArgument("'", node.name(), "': a message from or to rank ", message.peer,
                           " goes along no axis of the mesh");
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> name,
                   GetStringAttribute(node.attr(), kPgNameAttribute));
  if (IsWorldGroup(name.value_or(""))) return AxisRange(0, mesh_.axes());
  const auto axes = axes_of_group_.find(PlainGroupName(*name));
  if (axes != axes_of_group_.end()) return axes->second;
  return InvalidArgument("'", node.name(), "': there is no group ", *name);
}

absl::StatusOr<std::map<AxisRange, AxisTraffic>> MeasuredJob::Traffic(
    FileSystem& file_system) const {
  std::map<AxisRange, AxisTraffic> most;
  for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
    std::map<AxisRange, AxisTraffic> by_axes;
    ASSIGN_OR_RETURN(EtReader reader, Open(file_system, rank));
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
      if (!IsCommunication(node.type())) return absl::OkStatus();
      ASSIGN_OR_RETURN(const AxisRange axes, AxesOf(node, rank));
      ASSIGN_OR_RETURN(const CommunicationNode communication, ReadCommunication(node));
      AxisTraffic& traffic = by_axes[axes];
      const int64_t bytes = communication.bytes.value_or(0);
      ++traffic.communications;
      traffic.bytes += bytes;
      traffic.largest = std::max(traffic.largest, bytes);
      if (communication.is_message) {
        ++traffic.messages;
      } else if (communication.type == ChakraProtoMsg::ALL_TO_ALL) {
        ++traffic.all_to_alls;
      }
      return absl::OkStatus();
    }));
    for (const auto& [axes, traffic] : by_axes) {
      if (traffic.communications > most[axes].communications) most[axes] = traffic;
    }
  }
  return most;
}

std::vector<ScaledAxis> DescribeAxes(const RankMesh& mesh,
                                     const std::map<AxisRange, AxisTraffic>& by_axes) {
  std::vector<ScaledAxis> axes(mesh.axes());
  // The outermost of the axes with the largest collectives.
  ScaledAxis* data = nullptr;
  int64_t largest = 0;
  for (size_t i = 0; i < mesh.axes(); ++i) {
    axes[i].set_stride(mesh.stride(i));
    axes[i].set_length(mesh.length(i));
    axes[i].set_new_length(mesh.length(i));
    axes[i].set_kind("unused");
    const auto it = by_axes.find({i, i + 1});
    if (it == by_axes.end()) continue;
    const AxisTraffic& traffic = it->second;
    axes[i].set_communications(traffic.communications);
    axes[i].set_bytes(traffic.bytes);
    if (traffic.messages == traffic.communications) {
      axes[i].set_kind("pipeline");
    } else if (traffic.all_to_alls == traffic.communications) {
      axes[i].set_kind("expert");
    } else {
      axes[i].set_kind("tensor");
      if (traffic.largest >= largest) data = &axes[i];
      largest = std::max(largest, traffic.largest);
    }
  }
  if (data != nullptr) data->set_kind("data");
  return axes;
}

}  // namespace meridian
