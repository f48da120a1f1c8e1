#include "workload_model/scaling/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "workload_model/models/rank_mesh.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ChakraProtoMsg::Node;

constexpr int64_t kMaxNewRanks = 16384;

// What a rank communicates over one set of axes.
struct AxisTraffic {
  int64_t communications = 0;
  int64_t bytes = 0;
  // The bytes of the largest one.
  int64_t largest = 0;
  // How many of them are messages, or all-to-alls.
  int64_t messages = 0;
  int64_t all_to_alls = 0;
};

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

// The Chakra traces of a job, and the mesh that its groups make of its ranks.
class MeasuredJob {
 public:
  // InvalidArgument when the groups are no rows of one mesh, and for nodes of which copies would not fit
  // together: ids that occur twice, dependencies that are no node, cycles, and communication of more
  // bytes than simulators take, that its members disagree about, or that some of them lack.
  static absl::StatusOr<MeasuredJob> Read(FileSystem& file_system, const std::string& prefix) {
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
    RETURN_IF_ERROR(job.CheckBytes());
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
    const CommunicationMatch match(job.graph_);
    if (match.problems().empty()) return job;
    return InvalidArgument("communication does not match between ranks: ",
                           match.problems()[0].text);
  }

  const RankMesh& mesh() const { return mesh_; }
  // The traces, by rank, and their graph.
  const std::vector<std::string>& paths() const { return paths_; }
  const ExecutionGraph& graph() const { return graph_; }
  // Returns the node that comes first in the rank's trace; the others follow in its order.
  NodeIndex FirstNode(int64_t rank) const { return first_nodes_[static_cast<size_t>(rank)]; }

  // Returns the other rank of a message.
  int64_t PeerOf(NodeIndex node) const {
    const Communication& message = *graph_.communication(node);
    return graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE ? message.target : message.source;
  }

  // Returns the axes over which a node communicates.
  absl::StatusOr<AxisRange> AxesOf(NodeIndex node) const {
    if (!IsMessage(graph_.type(node))) return axes_of_group_[graph_.communication(node)->group];
    const int64_t rank = graph_.rank(node), peer = PeerOf(node);
    if (peer == rank) return AxisRange(0, 0);
    const bool is_rank = peer >= 0 && peer < mesh_.ranks();
    const std::optional<size_t> axis = is_rank ? mesh_.AxisBetween(rank, peer) : std::nullopt;
    if (axis.has_value()) return AxisRange(*axis, *axis + 1);
    return InvalidArgument(graph_.Describe(node), ": its message from or to rank ", peer,
                           " goes along no axis of the mesh");
  }

  // Returns for each set of axes what that rank communicates over it which communicates most: a middle
  // rank has all that the others have, and messages both ways.
  absl::StatusOr<std::map<AxisRange, AxisTraffic>> Traffic() const {
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

 private:
  absl::Status CheckBytes() const {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      const Communication* communication = graph_.communication(node);
      if (communication == nullptr || communication->bytes <= kMaxCommBytes) continue;
      return InvalidArgument(graph_.Describe(node), ": comm_size ", communication->bytes,
                             " is out of range; at most ", kMaxCommBytes, " bytes are possible");
    }
    return absl::OkStatus();
  }

  std::vector<std::string> paths_;
  ExecutionGraph graph_;
  std::vector<NodeIndex> first_nodes_;
  // By the graph's number of the group.
  std::vector<AxisRange> axes_of_group_;
  RankMesh mesh_;
};

// Says what the axes of a mesh are for (scaling.h); new lengths are the old ones.
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

double Ratio(const ScaledAxis& axis) {
  return static_cast<double>(axis.length()) / static_cast<double>(axis.new_length());
}

absl::Status TakeLayout(const ScaleOptions& options, std::vector<ScaledAxis>* axes) {
  if (options.layout.size() != axes->size()) {
    const auto length = [](std::string* out, const ScaledAxis& axis) {
      absl::StrAppend(out, axis.length());
    };
    return InvalidArgument("--layout has ", options.layout.size(),
                           " lengths; the job is a mesh of ", absl::StrJoin(*axes, "x", length));
  }
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto& [length, kind] = options.layout[i];
    if (length < 1) return InvalidArgument("--layout has a length below 1");
    (*axes)[i].set_new_length(length);
    if (kind.empty()) continue;
    if (kind != "tensor" && kind != "data" && kind != "pipeline") {
      return InvalidArgument("'", kind, "' is no kind of axis; expected tensor, data or pipeline");
    }
    (*axes)[i].set_kind(kind);
  }
  return absl::OkStatus();
}

// The data axis becomes longer, or the outermost where there is none.
absl::Status TakeRanks(int64_t ranks, int64_t old_ranks, std::vector<ScaledAxis>* axes) {
  auto grows = absl::c_find_if(*axes, [](const ScaledAxis& axis) { return axis.kind() == "data"; });
  if (grows == axes->end()) --grows;
  const int64_t others = old_ranks / grows->length();
  if (ranks < others || ranks % others != 0) {
    return InvalidArgument("--ranks=", ranks, " is no multiple of ", others,
                           ", the ranks beside the data axis; give all lengths with --layout");
  }
  grows->set_new_length(ranks / others);
  return absl::OkStatus();
}

// Checks new lengths; returns the new mesh.
absl::StatusOr<RankMesh> NewMesh(const std::vector<ScaledAxis>& axes,
                                 const std::map<AxisRange, AxisTraffic>& traffic) {
  std::vector<int64_t> lengths;
  int64_t ranks = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ScaledAxis& axis = axes[i];
    if (axis.new_length() > kMaxNewRanks || ranks * axis.new_length() > kMaxNewRanks) {
      return InvalidArgument("at most ", kMaxNewRanks, " ranks can be written");
    }
    ranks *= axis.new_length();
    lengths.push_back(axis.new_length());
    const auto along = traffic.find({i, i + 1});
    const bool has_messages = along != traffic.end() && along->second.messages > 0;
    if (axis.kind() == "pipeline" && !has_messages) {
      return InvalidArgument("--layout calls the axis of stride ", axis.stride(),
                             " a pipeline, but no messages go along it");
    }
    if (has_messages && axis.new_length() != axis.length() && axis.length() < 3) {
      return InvalidArgument("messages between two ranks (those ", axis.stride(),
                             " apart) may be of a ring, of pairs or of a pipeline, of which they "
                             "do not show what a stage between does; measure three");
    }
  }
  if (absl::c_count(lengths, 1) > 0) {
    return InvalidArgument("an axis of one position cannot be told; keep at least two");
  }
  return RankMesh(std::move(lengths));
}

class Scaler {
 public:
  Scaler(const MeasuredJob& job, std::vector<ScaledAxis> axes, RankMesh new_mesh)
      : job_(job), axes_(std::move(axes)), new_mesh_(std::move(new_mesh)) {
    for (const ScaledAxis& axis : axes_) work_ *= axis.kind() == "tensor" ? Ratio(axis) : 1;
  }

  // Returns the old rank that the new one does the same as.
  int64_t TemplateOf(int64_t new_rank) const {
    std::vector<int64_t> place = new_mesh_.PlaceOf(new_rank);
    for (size_t i = 0; i < place.size(); ++i) place[i] = OldPosition(i, place[i]);
    return job_.mesh().RankAt(place);
  }

  // Changes a node of the template, which is `old` in the measured job, into one of the new rank.
  absl::Status Change(int64_t new_rank, NodeIndex old, Node* node) {
    auto& attributes = *node->mutable_attr();
    node->set_start_time_micros(0);
    RemoveAttribute(kStartNsAttribute, &attributes);
    if (!IsCommunication(node->type())) return ScaleWork(node);
    // How long it took is the measured job's.
    node->set_duration_micros(0);
    RemoveAttribute(kDurationNsAttribute, &attributes);
    RemoveAttribute(kRawDurationNsAttribute, &attributes);
    ASSIGN_OR_RETURN(const AxisRange axes, job_.AxesOf(old));
    if (IsMessage(node->type())) return MoveMessage(new_rank, old, axes.first, node);
    const Communication& communication = *job_.graph().communication(old);
    if (communication.bytes > 0) {
      const bool is_gather = communication.type == ChakraProtoMsg::ALL_GATHER;
      auto bytes = static_cast<int64_t>(
          std::ceil(static_cast<double>(communication.bytes) * ShareOf(axes, is_gather)));
      if (is_gather && bytes < kMinAllGatherBytes) {
        raised_shares_ = true;
        bytes = kMinAllGatherBytes;
      }
      SetIntAttribute(kCommSizeAttribute, bytes, &attributes);
    }
    if (axes == AxisRange(0, axes_.size())) {
      RemoveAttribute(kPgNameAttribute, &attributes);
    } else {
      SetStringAttribute(kPgNameAttribute, GroupOf(new_rank, axes), &attributes);
    }
    return absl::OkStatus();
  }

  // InvalidArgument when something is sent in the new job and not received, or the other way round.
  absl::Status CheckMessages() const {
    for (const auto& [message, count] : unmatched_) {
      if (count == 0) continue;
      return InvalidArgument(
          "messages do not go along an axis as a ring, a pipeline or pairs do: in the new job, "
          "rank ",
          std::get<0>(message), " and rank ", std::get<1>(message), " would not agree on ",
          std::abs(count), " of them");
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
      if (is_gather) share *= Ratio(axes_[i]);
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
  absl::Status MoveMessage(int64_t new_rank, NodeIndex old, size_t axis, Node* node) {
    const int64_t old_rank = job_.graph().rank(old), old_peer = job_.PeerOf(old);
    std::vector<int64_t> place = new_mesh_.PlaceOf(new_rank);
    if (old_peer != old_rank) {
      const int64_t length = axes_[axis].length(), new_length = axes_[axis].new_length();
      const int64_t from = job_.mesh().PlaceOf(old_rank)[axis];
      const int64_t to = job_.mesh().PlaceOf(old_peer)[axis];
      int64_t distance = to - from;
      const bool goes_around = length > 2 && std::abs(distance) == length - 1;
      if (goes_around) distance = distance > 0 ? -1 : 1;
      place[axis] += distance;
      if (goes_around) place[axis] = (place[axis] + new_length) % new_length;
      if (place[axis] < 0 || place[axis] >= new_length) {
        return InvalidArgument("'", node->name(), "': its message would leave the axis of stride ",
                               axes_[axis].stride());
      }
    }
    const int64_t peer = new_mesh_.RankAt(place);
    const bool sends = node->type() == ChakraProtoMsg::COMM_SEND_NODE;
    const int64_t source = sends ? new_rank : peer, target = sends ? peer : new_rank;
    SetIntAttribute(kCommSrcAttribute, source, node->mutable_attr());
    SetIntAttribute(kCommDstAttribute, target, node->mutable_attr());
    unmatched_[{source, target, job_.graph().communication(old)->bytes}] += sends ? 1 : -1;
    return absl::OkStatus();
  }

  // Returns the name of the group over the axes that the new rank is in.
  std::string GroupOf(int64_t new_rank, const AxisRange& axes) {
    const RankRow row = new_mesh_.RowOf(axes);
    const auto [it, is_new] =
        names_.insert({{row.First(new_rank), axes}, absl::StrCat(names_.size() + 1)});
    if (is_new) groups_[it->second] = row.Members(new_rank);
    return it->second;
  }

  const MeasuredJob& job_;
  const std::vector<ScaledAxis> axes_;
  const RankMesh new_mesh_;
  // What computation is multiplied by.
  double work_ = 1;
  bool raised_shares_ = false;
  // Messages that were sent and not received, less those received and not sent: by sender, receiver
  // and bytes.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> unmatched_;
  // Names of groups, by their first rank and their axes.
  std::map<std::pair<int64_t, AxisRange>, std::string> names_;
  CommGroups groups_;
};

void AddAssumptions(bool raised_shares, ScaleReport* report) {
  const auto with_collectives = absl::c_count_if(report->axes(), [](const ScaledAxis& axis) {
    return axis.kind() == "data" || axis.kind() == "tensor";
  });
  if (with_collectives == 1) {
    report->add_assumptions(
        "only one axis has collectives, which do not tell data from tensor parallel ranks; "
        "--layout can say which it is, e.g. tensor=4");
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
  if (raised_shares) {
    report->add_assumptions(absl::StrCat("shares of less than ", kMinAllGatherBytes,
                                         " bytes are that many, which simulators need"));
  }
}

}  // namespace

absl::Status ParseLayout(const std::string& text, ScaleOptions* options) {
  if (options->ranks < 0) {
    return InvalidArgument("--ranks is no number of ranks; expected e.g. --ranks=64");
  }
  if ((options->ranks != 0) == !text.empty()) {
    return InvalidArgument("give either --ranks=64 or --layout=2x32");
  }
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("x,"))) {
    const std::vector<std::string> words = absl::StrSplit(part, '=');
    int64_t length = 0;
    if (words.size() > 2 || !absl::SimpleAtoi(words.back(), &length)) {
      return InvalidArgument(
          "--layout=", text,
          " is no list of lengths; expected e.g. --layout=2x4 or --layout=tensor=2,data=4");
    }
    options->layout.push_back({length, words.size() == 2 ? words[0] : ""});
  }
  return absl::OkStatus();
}

absl::StatusOr<ScaleReport> ScaleWorkload(FileSystem& file_system, const std::string& prefix,
                                          const std::string& output, const ScaleOptions& options) {
  ASSIGN_OR_RETURN(const MeasuredJob job, MeasuredJob::Read(file_system, prefix));
  RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, job.paths()));
  ASSIGN_OR_RETURN(const auto old_traffic, job.Traffic());
  std::vector<ScaledAxis> axes = DescribeAxes(job.mesh(), old_traffic);
  RETURN_IF_ERROR(options.layout.empty() ? TakeRanks(options.ranks, job.mesh().ranks(), &axes)
                                         : TakeLayout(options, &axes));
  ASSIGN_OR_RETURN(const RankMesh new_mesh, NewMesh(axes, old_traffic));
  Scaler scaler(job, axes, new_mesh);
  ScaleReport report;
  report.set_ranks(job.mesh().ranks());
  report.set_new_ranks(new_mesh.ranks());
  for (ScaledAxis& axis : axes) *report.add_axes() = std::move(axis);
  EtWorkloadWriter writer(file_system, output);
  for (int64_t rank = 0; rank < new_mesh.ranks(); ++rank) {
    if (options.progress) options.progress(rank);
    const int64_t old_rank = scaler.TemplateOf(rank);
    NodeIndex old = job.FirstNode(old_rank);
    ASSIGN_OR_RETURN(EtReader reader,
                     EtReader::Open(file_system, job.paths()[static_cast<size_t>(old_rank)]));
    ASSIGN_OR_RETURN(EtTrace trace, writer.Begin(rank, reader.metadata()));
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
      Node changed = node;
      RETURN_IF_ERROR(scaler.Change(rank, old++, &changed));
      report.set_nodes(report.nodes() + 1);
      CompleteForSimulators(&changed);
      return trace.Add(changed);
    }));
    RETURN_IF_ERROR(writer.Finish(std::move(trace)));
  }
  RETURN_IF_ERROR(scaler.CheckMessages());
  report.set_groups(static_cast<int64_t>(scaler.groups().size()));
  if (report.groups() > kMaxGroupNumber) {
    return InvalidArgument("the new job has ", report.groups(), " groups; simulators take ",
                           kMaxGroupNumber, " at most: make axes within longer, not those outside");
  }
  writer.AddGroups(scaler.groups());
  RETURN_IF_ERROR(writer.Commit(new_mesh.ranks()).status());
  AddAssumptions(scaler.raised_shares(), &report);
  return report;
}

std::string FormatScaleReport(const ScaleReport& report) {
  TextTable axes(
      {">axis of stride", ">length", ">new length", "kind", ">communications of a rank", ">bytes"});
  for (const ScaledAxis& axis : report.axes()) {
    axes.AddRow({absl::StrCat(axis.stride()), absl::StrCat(axis.length()),
                 absl::StrCat(axis.new_length()), axis.kind(), WithThousands(axis.communications()),
                 WithThousands(axis.bytes())});
  }
  std::string text = absl::StrCat(report.ranks(), " ranks -> ", report.new_ranks(), " ranks, ",
                                  WithThousands(report.nodes()), " nodes, ", report.groups(),
                                  " groups\n\n", axes.ToString(), "\n");
  for (const std::string& assumption : report.assumptions()) {
    absl::StrAppend(&text, "assumed: ", assumption, "\n");
  }
  return text;
}

}  // namespace meridian
