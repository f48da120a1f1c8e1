#include "workload_model/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ChakraProtoMsg::Node;

constexpr int64_t kMaxNewRanks = 16384;

// What a rank communicates over one set of axes.
struct Traffic {
  int64_t communications = 0;
  int64_t bytes = 0;
  int64_t largest = 0;
  int64_t messages = 0;
  int64_t all_to_alls = 0;
};

// From one axis up to, not including, another.
using AxisRange = std::pair<size_t, size_t>;

class Mesh {
 public:
  // Cuts are strides of axes, from 1 to the number of ranks, each a divisor of the next.
  static absl::StatusOr<Mesh> FromCuts(const std::set<int64_t>& cuts) {
    Mesh mesh;
    mesh.cuts_.assign(cuts.begin(), cuts.end());
    for (size_t i = 1; i < mesh.cuts_.size(); ++i) {
      if (mesh.cuts_[i] % mesh.cuts_[i - 1] == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the groups are no rows of one mesh: some repeat after ", mesh.cuts_[i - 1],
                       " ranks, some after ", mesh.cuts_[i]));
    }
    for (size_t i = 1; i < mesh.cuts_.size(); ++i) {
      mesh.lengths_.push_back(mesh.cuts_[i] / mesh.cuts_[i - 1]);
    }
    return mesh;
  }

  size_t axes() const { return lengths_.size(); }
  int64_t length(size_t axis) const { return lengths_[axis]; }
  int64_t stride(size_t axis) const { return cuts_[axis]; }
  int64_t ranks() const { return cuts_.back(); }

  std::vector<int64_t> PlaceOf(int64_t rank) const {
    std::vector<int64_t> place;
    for (size_t axis = 0; axis < axes(); ++axis) {
      place.push_back(rank / cuts_[axis] % lengths_[axis]);
    }
    return place;
  }

  int64_t RankAt(const std::vector<int64_t>& place) const {
    int64_t rank = 0;
    for (size_t axis = 0; axis < axes(); ++axis) rank += place[axis] * cuts_[axis];
    return rank;
  }

  // Nullopt for groups of another stride or length than that of neighbouring axes.
  std::optional<AxisRange> RangeOf(int64_t stride, int64_t length) const {
    const auto first = std::find(cuts_.begin(), cuts_.end(), stride);
    const auto last = std::find(cuts_.begin(), cuts_.end(), stride * length);
    if (first == cuts_.end() || last == cuts_.end() || last <= first) return std::nullopt;
    return AxisRange(static_cast<size_t>(first - cuts_.begin()),
                     static_cast<size_t>(last - cuts_.begin()));
  }

  // Returns the axis along which a message goes; nullopt when it changes several places, or none.
  std::optional<size_t> AxisBetween(int64_t a, int64_t b) const {
    const std::vector<int64_t> from = PlaceOf(a), to = PlaceOf(b);
    std::optional<size_t> axis;
    for (size_t i = 0; i < axes(); ++i) {
      if (from[i] == to[i]) continue;
      if (axis.has_value()) return std::nullopt;
      axis = i;
    }
    return axis;
  }

 private:
  std::vector<int64_t> cuts_;
  std::vector<int64_t> lengths_;
};

// A group of ranks that follow each other at equal distances.
struct Row {
  int64_t stride = 0;
  int64_t length = 0;
};

absl::StatusOr<Row> RowOf(std::vector<int64_t> ranks, int64_t world) {
  std::sort(ranks.begin(), ranks.end());
  const Row row = {ranks.size() > 1 ? ranks[1] - ranks[0] : 1, static_cast<int64_t>(ranks.size())};
  bool is_row = row.stride > 0 && ranks.back() < world &&
                // It begins where a row of that stride and length does.
                ranks[0] / row.stride % row.length == 0;
  for (size_t i = 1; i < ranks.size(); ++i) is_row &= ranks[i] - ranks[i - 1] == row.stride;
  if (is_row) return row;
  return absl::InvalidArgumentError(
      absl::StrCat("the group {", absl::StrJoin(ranks, ","), "} is no row of a mesh of ranks"));
}

// Copies of nodes that do not fit together would not either: an error for ids that occur twice,
// dependencies that are no node, and cycles.
absl::Status CheckNodes(FileSystem& file_system, const EtFiles& files, const CommGroups& groups) {
  EtGraphReaderOptions options;
  options.groups = groups;
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, files, options));
  return TopologicalOrder(graph).status();
}

// What was read of the job, and how it is laid out.
class Job {
 public:
  static absl::StatusOr<Job> Read(FileSystem& file_system, const std::string& prefix) {
    Job job;
    ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
    RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
    job.files_ = files.files;
    const std::string groups = CommGroupsBeside(file_system, prefix);
    CommGroups known;
    if (!groups.empty()) {
      ASSIGN_OR_RETURN(known, ReadCommGroups(file_system, groups));
    }
    std::set<int64_t> cuts = {1, job.ranks()};
    std::map<std::string, Row> rows;
    for (const auto& [name, ranks] : known) {
      ASSIGN_OR_RETURN(const Row row, RowOf(ranks, job.ranks()));
      if (job.ranks() % (row.stride * row.length) != 0) {
        return absl::InvalidArgumentError(absl::StrCat("the group {", absl::StrJoin(ranks, ","),
                                                       "} does not divide the ", job.ranks(),
                                                       " ranks evenly"));
      }
      cuts.insert({row.stride, row.stride * row.length});
      rows[name] = row;
    }
    ASSIGN_OR_RETURN(job.mesh_, Mesh::FromCuts(cuts));
    for (const auto& [name, row] : rows) {
      // Groups of one rank communicate along nothing.
      job.axes_of_group_[name] =
          row.length == 1 ? AxisRange(0, 0) : *job.mesh_->RangeOf(row.stride, row.length);
    }
    RETURN_IF_ERROR(CheckNodes(file_system, files, known));
    return job;
  }

  int64_t ranks() const { return static_cast<int64_t>(files_.size()); }
  const Mesh& mesh() const { return *mesh_; }

  absl::StatusOr<EtReader> Open(FileSystem& file_system, int64_t rank) const {
    return EtReader::Open(file_system, files_[static_cast<size_t>(rank)].path);
  }

  // Returns the axes over which the rank's node communicates.
  absl::StatusOr<AxisRange> AxesOf(const Node& node, int64_t rank) const {
    if (IsMessage(node.type())) {
      ASSIGN_OR_RETURN(const int64_t peer, PeerOf(node));
      if (peer == rank) return AxisRange(0, 0);
      const std::optional<size_t> axis =
          peer < ranks() ? mesh_->AxisBetween(rank, peer) : std::nullopt;
      if (axis.has_value()) return AxisRange(*axis, *axis + 1);
      return absl::InvalidArgumentError(absl::StrCat("'", node.name(),
                                                     "': a message from or to rank ", peer,
                                                     " goes along no axis of the mesh"));
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> name,
                     GetStringAttribute(node.attr(), kPgNameAttribute));
    if (IsWorldGroup(name.value_or(""))) return AxisRange(0, mesh_->axes());
    const auto axes = axes_of_group_.find(PlainGroupName(*name));
    if (axes != axes_of_group_.end()) return axes->second;
    return absl::InvalidArgumentError(
        absl::StrCat("'", node.name(), "': there is no group ", *name));
  }

  static absl::StatusOr<int64_t> PeerOf(const Node& node) {
    const bool sends = node.type() == ChakraProtoMsg::COMM_SEND_NODE;
    ASSIGN_OR_RETURN(const std::optional<int64_t> peer,
                     GetIntAttribute(node.attr(), sends ? kCommDstAttribute : kCommSrcAttribute));
    if (peer.value_or(-1) >= 0) return *peer;
    return absl::InvalidArgumentError(
        absl::StrCat("'", node.name(), "' does not say which rank its message is from or to"));
  }

 private:
  std::vector<EtFile> files_;
  std::map<std::string, AxisRange> axes_of_group_;
  std::optional<Mesh> mesh_;
};

absl::StatusOr<std::map<AxisRange, Traffic>> TrafficOf(FileSystem& file_system, const Job& job,
                                                       int64_t rank) {
  std::map<AxisRange, Traffic> by_axes;
  ASSIGN_OR_RETURN(EtReader reader, job.Open(file_system, rank));
  RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
    if (!IsCommunication(node.type())) return absl::OkStatus();
    ASSIGN_OR_RETURN(const AxisRange axes, job.AxesOf(node, rank));
    ASSIGN_OR_RETURN(const std::optional<int64_t> bytes,
                     GetIntAttribute(node.attr(), kCommSizeAttribute));
    ASSIGN_OR_RETURN(const std::optional<int64_t> type,
                     GetIntAttribute(node.attr(), kCommTypeAttribute));
    Traffic& traffic = by_axes[axes];
    ++traffic.communications;
    traffic.bytes += bytes.value_or(0);
    traffic.largest = std::max(traffic.largest, bytes.value_or(0));
    traffic.messages += IsMessage(node.type()) ? 1 : 0;
    traffic.all_to_alls += !IsMessage(node.type()) && type == ChakraProtoMsg::ALL_TO_ALL ? 1 : 0;
    return absl::OkStatus();
  }));
  return by_axes;
}

// Says what the axes are for.
std::vector<ScaledAxis> DescribeAxes(const Mesh& mesh,
                                     const std::map<AxisRange, Traffic>& by_axes) {
  std::vector<ScaledAxis> axes(mesh.axes());
  int64_t largest = 0;
  for (size_t i = 0; i < mesh.axes(); ++i) {
    axes[i].set_stride(mesh.stride(i));
    axes[i].set_length(mesh.length(i));
    axes[i].set_new_length(mesh.length(i));
    axes[i].set_kind("unused");
    const auto it = by_axes.find({i, i + 1});
    if (it == by_axes.end()) continue;
    const Traffic& traffic = it->second;
    axes[i].set_communications(traffic.communications);
    axes[i].set_bytes(traffic.bytes);
    if (traffic.messages == traffic.communications) {
      axes[i].set_kind("pipeline");
    } else if (traffic.all_to_alls == traffic.communications) {
      axes[i].set_kind("expert");
    } else {
      axes[i].set_kind("tensor");
      largest = std::max(largest, traffic.largest);
    }
  }
  // The outermost of those with the largest collectives.
  for (size_t i = mesh.axes(); i-- > 0;) {
    const auto it = by_axes.find({i, i + 1});
    if (axes[i].kind() != "tensor" || it->second.largest != largest) continue;
    axes[i].set_kind("data");
    break;
  }
  return axes;
}

// Messages go along the axes of these strides.
absl::Status ChooseLengths(const ScaleOptions& options, const Mesh& mesh,
                           const std::set<int64_t>& messages_along, std::vector<ScaledAxis>* axes) {
  if (!options.layout.empty()) {
    if (options.layout.size() != axes->size()) {
      std::vector<int64_t> lengths;
      for (const ScaledAxis& axis : *axes) lengths.push_back(axis.length());
      return absl::InvalidArgumentError(absl::StrCat("--layout has ", options.layout.size(),
                                                     " lengths; the job is a mesh of ",
                                                     absl::StrJoin(lengths, "x")));
    }
    for (size_t i = 0; i < axes->size(); ++i) {
      if (options.layout[i] < 1) return absl::InvalidArgumentError("--layout has a length below 1");
      (*axes)[i].set_new_length(options.layout[i]);
      const std::string kind = options.kinds.empty() ? "" : options.kinds[i];
      if (kind.empty()) continue;
      if (kind != "tensor" && kind != "data" && kind != "pipeline") {
        return absl::InvalidArgumentError(
            absl::StrCat("'", kind, "' is no kind of axis; expected tensor, data or pipeline"));
      }
      (*axes)[i].set_kind(kind);
    }
  } else {
    size_t grows = axes->size() - 1;
    for (size_t i = 0; i < axes->size(); ++i) {
      if ((*axes)[i].kind() == "data") grows = i;
    }
    const int64_t others = mesh.ranks() / mesh.length(grows);
    if (options.ranks < others || options.ranks % others != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ranks=", options.ranks, " is no multiple of ", others,
                       ", the ranks beside the data axis; give all lengths with --layout"));
    }
    (*axes)[grows].set_new_length(options.ranks / others);
  }
  int64_t ranks = 1;
  for (const ScaledAxis& axis : *axes) {
    if (axis.new_length() > kMaxNewRanks || ranks * axis.new_length() > kMaxNewRanks) {
      return absl::InvalidArgumentError(
          absl::StrCat("at most ", kMaxNewRanks, " ranks can be written"));
    }
    ranks *= axis.new_length();
    const bool has_messages = messages_along.count(axis.stride()) > 0;
    if (axis.kind() == "pipeline" && !has_messages) {
      return absl::InvalidArgumentError(absl::StrCat("--layout calls the axis of stride ",
                                                     axis.stride(),
                                                     " a pipeline, but no messages go along it"));
    }
    if (has_messages && axis.new_length() != axis.length() && axis.length() < 3) {
      return absl::InvalidArgumentError(absl::StrCat(
          "messages between two ranks (those ", axis.stride(),
          " apart) may be of a ring, of pairs or of a pipeline, of which they do not show what a "
          "stage between does; measure three"));
    }
  }
  return absl::OkStatus();
}

class Scaler {
 public:
  Scaler(const Job& job, std::vector<ScaledAxis> axes, Mesh new_mesh)
      : job_(job), axes_(std::move(axes)), new_mesh_(std::move(new_mesh)) {
    for (const ScaledAxis& axis : axes_) {
      if (axis.kind() != "tensor") continue;
      work_ *= static_cast<double>(axis.length()) / static_cast<double>(axis.new_length());
    }
  }

  // Returns the old rank that the new one does the same as.
  int64_t TemplateOf(int64_t new_rank) const {
    std::vector<int64_t> place = new_mesh_.PlaceOf(new_rank);
    for (size_t i = 0; i < place.size(); ++i) place[i] = OldPosition(i, place[i]);
    return job_.mesh().RankAt(place);
  }

  // Changes a node of the template into one of the new rank.
  absl::Status Change(int64_t new_rank, Node* node) {
    auto& attributes = *node->mutable_attr();
    const int64_t old_rank = TemplateOf(new_rank);
    node->set_start_time_micros(0);
    RemoveAttribute(kStartNsAttribute, &attributes);
    if (!IsCommunication(node->type())) return ScaleWork(node);
    // How long it took is the measured job's.
    node->set_duration_micros(0);
    RemoveAttribute(kDurationNsAttribute, &attributes);
    RemoveAttribute(kRawDurationNsAttribute, &attributes);
    ASSIGN_OR_RETURN(const AxisRange axes, job_.AxesOf(*node, old_rank));
    if (IsMessage(node->type())) return MoveMessage(new_rank, old_rank, axes.first, node);
    ASSIGN_OR_RETURN(const std::optional<int64_t> type,
                     GetIntAttribute(attributes, kCommTypeAttribute));
    ASSIGN_OR_RETURN(const std::optional<int64_t> bytes,
                     GetIntAttribute(attributes, kCommSizeAttribute));
    if (bytes.has_value()) {
      const bool is_gather = type == ChakraProtoMsg::ALL_GATHER;
      int64_t scaled =
          static_cast<int64_t>(std::ceil(static_cast<double>(*bytes) * ShareOf(axes, is_gather)));
      if (is_gather && scaled < kMinAllGatherBytes) {
        raised_shares_ = true;
        scaled = kMinAllGatherBytes;
      }
      SetIntAttribute(kCommSizeAttribute, scaled, &attributes);
    }
    if (axes.first == 0 && axes.second == axes_.size()) {
      RemoveAttribute(kPgNameAttribute, &attributes);
    } else {
      SetStringAttribute(kPgNameAttribute, GroupOf(new_rank, axes), &attributes);
    }
    return absl::OkStatus();
  }

  const CommGroups& groups() const { return groups_; }
  // True when a share was too small for simulators.
  bool raised_shares() const { return raised_shares_; }

 private:
  // By how much bytes of a collective along these axes change: a gather's share is that of a whole
  // which more divide, and what copies exchange is that of parameters which more tensor parallel ranks
  // divide.
  double ShareOf(const AxisRange& axes, bool is_gather) const {
    double share = 1;
    bool is_of_copies = axes.first < axes.second;
    for (size_t i = axes.first; i < axes.second; ++i) {
      is_of_copies &= axes_[i].kind() == "data";
      if (is_gather) {
        share *=
            static_cast<double>(axes_[i].length()) / static_cast<double>(axes_[i].new_length());
      }
    }
    return is_of_copies ? share * work_ : share;
  }

  int64_t OldPosition(size_t axis, int64_t position) const {
    const int64_t length = axes_[axis].length(), new_length = axes_[axis].new_length();
    if (axes_[axis].kind() != "pipeline") return position % length;
    if (new_length == length || position == 0) return position;
    if (position == new_length - 1) return length - 1;
    return 1 + (position - 1) % (length - 2);
  }

  absl::Status ScaleWork(Node* node) const {
    if (work_ == 1 || node->name() == kHostGapOpKind) return absl::OkStatus();
    auto& attributes = *node->mutable_attr();
    node->set_duration_micros(
        static_cast<uint64_t>(std::llround(static_cast<double>(node->duration_micros()) * work_)));
    for (absl::string_view name : {kDurationNsAttribute, kNumOpsAttribute, kTensorSizeAttribute}) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> value, GetIntAttribute(attributes, name));
      if (!value.has_value()) continue;
      SetIntAttribute(name, std::llround(static_cast<double>(*value) * work_), &attributes);
    }
    return absl::OkStatus();
  }

  // To the rank at the same distance, around the end where the old message went around.
  absl::Status MoveMessage(int64_t new_rank, int64_t old_rank, size_t axis, Node* node) const {
    ASSIGN_OR_RETURN(const int64_t old_peer, Job::PeerOf(*node));
    std::vector<int64_t> place = new_mesh_.PlaceOf(new_rank);
    if (old_peer != old_rank) {
      const int64_t length = axes_[axis].length(), new_length = axes_[axis].new_length();
      const int64_t from = job_.mesh().PlaceOf(old_rank)[axis];
      const int64_t to = job_.mesh().PlaceOf(old_peer)[axis];
      int64_t distance = to - from;
      const bool goes_around = length > 2 && std::abs(distance) == length - 1;
      if (goes_around) distance = distance > 0 ? -1 : 1;
      // Pairs of neighbours stay pairs: an axis of two is repeated as it is.
      const int64_t base =
          axes_[axis].kind() == "pipeline" ? place[axis] + distance : place[axis] - from + to;
      place[axis] = goes_around ? (place[axis] + distance + new_length) % new_length : base;
      if (place[axis] < 0 || place[axis] >= new_length) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", node->name(), "': its message would leave the axis of stride ",
                         axes_[axis].stride()));
      }
    }
    const int64_t peer = new_mesh_.RankAt(place);
    const bool sends = node->type() == ChakraProtoMsg::COMM_SEND_NODE;
    SetIntAttribute(kCommSrcAttribute, sends ? new_rank : peer, node->mutable_attr());
    SetIntAttribute(kCommDstAttribute, sends ? peer : new_rank, node->mutable_attr());
    return absl::OkStatus();
  }

  // Returns the name of the group over the axes that the new rank is in.
  std::string GroupOf(int64_t new_rank, const AxisRange& axes) {
    // Neighbouring axes are one row.
    const int64_t stride = new_mesh_.stride(axes.first);
    int64_t length = 1;
    for (size_t axis = axes.first; axis < axes.second; ++axis) length *= new_mesh_.length(axis);
    const int64_t first = new_rank - new_rank / stride % length * stride;
    const auto [it, is_new] = names_.insert({{first, axes}, absl::StrCat(names_.size() + 1)});
    if (is_new) {
      std::vector<int64_t>& ranks = groups_[it->second];
      for (int64_t i = 0; i < length; ++i) ranks.push_back(first + i * stride);
    }
    return it->second;
  }

  const Job& job_;
  const std::vector<ScaledAxis> axes_;
  const Mesh new_mesh_;
  // By how much computation changes.
  double work_ = 1;
  bool raised_shares_ = false;
  // Names of groups, by their first rank and their axes.
  std::map<std::pair<int64_t, AxisRange>, std::string> names_;
  CommGroups groups_;
};

void AddAssumptions(ScaleReport* report) {
  const auto with_collectives = std::count_if(
      report->axes().begin(), report->axes().end(),
      [](const ScaledAxis& axis) { return axis.kind() == "data" || axis.kind() == "tensor"; });
  if (with_collectives == 1) {
    report->add_assumptions(
        "only one axis has collectives, which do not tell data from tensor parallel ranks; "
        "--layout "
        "can say which it is, e.g. tensor=4");
  }
  for (const ScaledAxis& axis : report->axes()) {
    if (axis.length() == axis.new_length()) continue;
    report->add_assumptions(absl::StrCat(
        "the axis of stride ", axis.stride(), " is ", axis.kind(), " parallel and has ",
        axis.new_length(), " positions in place of ", axis.length(), ": ",
        axis.kind() == "tensor"
            ? "each rank computes as much less, exchanges as much less with its copies, and "
              "communicates along this axis as much as it did"
        : axis.kind() == "pipeline" ? "stages between do what those between did"
                                    : "each rank computes as much as it did, on data of its own"));
  }
  report->add_assumptions(
      "an all-gather's share is that of the same whole, divided by more; bytes that are not named "
      "here stay");
  report->add_assumptions("gaps of the host and the order of work stay as they were measured");
}

}  // namespace

absl::StatusOr<ScaleReport> ScaleWorkload(FileSystem& file_system, const std::string& prefix,
                                          const std::string& output, const ScaleOptions& options) {
  ASSIGN_OR_RETURN(const Job job, Job::Read(file_system, prefix));
  if (job.ranks() < 2) return absl::InvalidArgumentError("a job of one rank has no axis to scale");
  // A middle rank has all that the others have, and messages both ways.
  std::map<AxisRange, Traffic> by_axes;
  for (int64_t rank = 0; rank < job.ranks(); ++rank) {
    ASSIGN_OR_RETURN(const auto of_rank, TrafficOf(file_system, job, rank));
    for (const auto& [range, traffic] : of_rank) {
      Traffic& known = by_axes[range];
      if (traffic.communications > known.communications) known = traffic;
    }
  }
  std::vector<ScaledAxis> axes = DescribeAxes(job.mesh(), by_axes);
  std::set<int64_t> messages_along;
  for (const auto& [range, traffic] : by_axes) {
    if (traffic.messages > 0 && range.first < range.second) {
      messages_along.insert(job.mesh().stride(range.first));
    }
  }
  RETURN_IF_ERROR(ChooseLengths(options, job.mesh(), messages_along, &axes));
  std::set<int64_t> cuts = {1};
  int64_t ranks = 1;
  for (const ScaledAxis& axis : axes) {
    if (axis.new_length() == 1) {
      return absl::InvalidArgumentError(
          "an axis of one position can not be told; keep at least two");
    }
    cuts.insert(ranks *= axis.new_length());
  }
  ASSIGN_OR_RETURN(const Mesh new_mesh, Mesh::FromCuts(cuts));
  ScaleReport report;
  report.set_ranks(job.ranks());
  report.set_new_ranks(ranks);
  for (const ScaledAxis& axis : axes) *report.add_axes() = axis;
  Scaler scaler(job, axes, new_mesh);
  EtWorkloadWriter writer(file_system, output);
  std::map<std::string, ScaledTraffic> traffic;
  // Messages that were sent and not received, less those received and not sent: by sender, receiver
  // and bytes.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> unmatched;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (options.progress) options.progress(rank);
    const int64_t old_rank = scaler.TemplateOf(rank);
    ASSIGN_OR_RETURN(EtReader reader, job.Open(file_system, old_rank));
    RETURN_IF_ERROR(writer.BeginTrace(rank, reader.metadata()));
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
      Node changed = node;
      RETURN_IF_ERROR(scaler.Change(rank, &changed));
      report.set_nodes(report.nodes() + 1);
      if (IsCommunication(changed.type())) {
        ASSIGN_OR_RETURN(const std::optional<int64_t> type,
                         GetIntAttribute(changed.attr(), kCommTypeAttribute));
        ASSIGN_OR_RETURN(const std::optional<int64_t> bytes,
                         GetIntAttribute(changed.attr(), kCommSizeAttribute));
        const std::string kind =
            IsMessage(changed.type())
                ? ChakraProtoMsg::NodeType_Name(changed.type())
                : ChakraProtoMsg::CollectiveCommType_Name(
                      static_cast<ChakraProtoMsg::CollectiveCommType>(type.value_or(0)));
        traffic[kind].set_nodes(traffic[kind].nodes() + 1);
        traffic[kind].set_bytes(traffic[kind].bytes() + bytes.value_or(0));
        if (IsMessage(changed.type())) {
          ASSIGN_OR_RETURN(const int64_t peer, Job::PeerOf(changed));
          const bool sends = changed.type() == ChakraProtoMsg::COMM_SEND_NODE;
          unmatched[{sends ? rank : peer, sends ? peer : rank, bytes.value_or(0)}] +=
              sends ? 1 : -1;
        }
      }
      CompleteForSimulators(&changed);
      return writer.Add(changed);
    }));
  }
  for (const auto& [message, count] : unmatched) {
    if (count == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "messages do not go along an axis as a ring, a pipeline or pairs do: in the new job, rank ",
        std::get<0>(message), " and rank ", std::get<1>(message), " would not agree on ",
        std::abs(count), " of them"));
  }
  report.set_groups(static_cast<int64_t>(scaler.groups().size()));
  if (report.groups() > kMaxGroupNumber) {
    return absl::InvalidArgumentError(
        absl::StrCat("the new job has ", report.groups(), " groups; simulators take ",
                     kMaxGroupNumber, " at most: make axes within longer, not those outside"));
  }
  writer.AddGroups(scaler.groups());
  RETURN_IF_ERROR(writer.Commit(ranks).status());
  for (auto& [kind, sum] : traffic) {
    sum.set_kind(kind);
    *report.add_traffic() = sum;
  }
  AddAssumptions(&report);
  if (scaler.raised_shares()) {
    report.add_assumptions(absl::StrCat("shares of less than ", kMinAllGatherBytes,
                                        " bytes are that many, which simulators need"));
  }
  return report;
}

std::string FormatScaleReport(const ScaleReport& report) {
  using Align = TextTable::Align;
  TextTable axes({{"axis of stride", Align::kRight},
                  {"length", Align::kRight},
                  {"new length", Align::kRight},
                  {"kind", Align::kLeft},
                  {"communications of a rank", Align::kRight},
                  {"bytes", Align::kRight}});
  for (const ScaledAxis& axis : report.axes()) {
    axes.AddRow({absl::StrCat(axis.stride()), absl::StrCat(axis.length()),
                 absl::StrCat(axis.new_length()), axis.kind(), WithThousands(axis.communications()),
                 WithThousands(axis.bytes())});
  }
  TextTable traffic(
      {{"communication", Align::kLeft}, {"nodes", Align::kRight}, {"bytes", Align::kRight}});
  for (const ScaledTraffic& kind : report.traffic()) {
    traffic.AddRow({kind.kind(), WithThousands(kind.nodes()), WithThousands(kind.bytes())});
  }
  std::string text = absl::StrCat(report.ranks(), " ranks -> ", report.new_ranks(), " ranks, ",
                                  WithThousands(report.nodes()), " nodes, ", report.groups(),
                                  " groups\n\n", axes.ToString(), "\n", traffic.ToString(), "\n");
  for (const std::string& assumption : report.assumptions()) {
    absl::StrAppend(&text, "assumed: ", assumption, "\n");
  }
  return text;
}

}  // namespace meridian
