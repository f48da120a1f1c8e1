#include "workload_model/scaling/measured_job.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/graph_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

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

absl::StatusOr<MeasuredJob> MeasuredJob::Read(FileSystem& file_system, const std::string& prefix) {
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  MeasuredJob job;
  for (const EtFile& file : files.files) job.paths_.push_back(file.path);
  const auto ranks = static_cast<int64_t>(job.paths_.size());
  if (ranks < 2) return InvalidArgument("a job of one rank has no axis to scale");
  EtGraphReaderOptions options;
  ASSIGN_OR_RETURN(options.groups, FindCommGroups(file_system, "", prefix));
  ASSIGN_OR_RETURN(job.graph_, ReadEtGraph(file_system, files, options));
  RETURN_IF_ERROR(TopologicalOrder(job.graph_).status());
  job.first_nodes_.assign(static_cast<size_t>(ranks) + 1, 0);
  for (NodeIndex node = 0; node < job.graph_.node_count(); ++node) {
    ++job.first_nodes_[static_cast<size_t>(job.graph_.rank(node)) + 1];
  }
  std::partial_sum(job.first_nodes_.begin(), job.first_nodes_.end(), job.first_nodes_.begin());
  std::set<int64_t> cuts = {1, ranks};
  std::vector<RankRow> rows;
  for (const ProcessGroup& group : job.graph_.groups()) {
    const std::optional<RankRow> row = RowOfMembers(group.ranks, ranks);
    if (!row.has_value()) {
      return InvalidArgument("the group {", absl::StrJoin(group.ranks, ","),
                             "} is no row of a mesh of ", ranks, " ranks");
    }
    cuts.insert({row->stride, row->stride * row->length});
    rows.push_back(*row);
  }
  ASSIGN_OR_RETURN(job.mesh_, MeshOf(cuts));
  for (const RankRow& row : rows) job.axes_of_group_.push_back(job.mesh_.AxesOf(row));
  return job;
}

int64_t MeasuredJob::PeerOf(NodeIndex node) const {
  const Communication& message = *graph_.communication(node);
  return graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE ? message.target : message.source;
}

absl::StatusOr<AxisRange> MeasuredJob::AxesOf(NodeIndex node) const {
  if (!IsMessage(graph_.type(node))) return axes_of_group_[graph_.communication(node)->group];
  const int64_t rank = graph_.rank(node), peer = PeerOf(node);
  if (peer == rank) return AxisRange(0, 0);
  const bool is_rank = peer >= 0 && peer < mesh_.ranks();
  const std::optional<size_t> axis = is_rank ? mesh_.AxisBetween(rank, peer) : std::nullopt;
  if (axis.has_value()) return AxisRange(*axis, *axis + 1);
  return InvalidArgument(graph_.Describe(node), ": its message from or to rank ", peer,
                         " goes along no axis of the mesh");
}

absl::StatusOr<std::map<AxisRange, AxisTraffic>> MeasuredJob::Traffic() const {
  std::map<std::pair<int64_t, AxisRange>, AxisTraffic> by_rank;
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    const Communication* communication = graph_.communication(node);
    if (communication == nullptr) continue;
    ASSIGN_OR_RETURN(const AxisRange axes, AxesOf(node));
    AxisTraffic& traffic = by_rank[{graph_.rank(node), axes}];
    ++traffic.communications;
    traffic.bytes += communication->bytes;
    traffic.largest = std::max(traffic.largest, communication->bytes);
    if (IsMessage(graph_.type(node))) {
      ++traffic.messages;
    } else if (communication->type == ChakraProtoMsg::ALL_TO_ALL) {
      ++traffic.all_to_alls;
    }
  }
  std::map<AxisRange, AxisTraffic> most;
  for (const auto& [rank_and_axes, traffic] : by_rank) {
    AxisTraffic& of_axes = most[rank_and_axes.second];
    if (traffic.communications > of_axes.communications) of_axes = traffic;
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
