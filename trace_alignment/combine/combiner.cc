#include "trace_alignment/combine/combiner.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "trace_alignment/combine/program_table.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {
namespace {

// Returns the plane without its lines.
absl::StatusOr<XPlaneProto> ReadHead(const XSpaceSource& source, absl::string_view payload) {
  ASSIGN_OR_RETURN(const std::string head,
                   RewriteFields(payload, source.origin(), kXPlaneDepth,
                                 [](const WireField& field, StringOutput* output) {
                                   if (!field.IsBytes(XPlaneField::kLines)) output->Raw(field.raw);
                                 }));
  XPlaneProto plane;
  if (!plane.ParseFromString(head)) {
    return InvalidArgument("a plane's metadata cannot be read, or is 2 GiB and more");
  }
  return plane;
}

// Returns an entry of a plane's map of event metadata.
std::string MetadataEntry(int64_t key, const XEventMetadataProto& metadata) {
  std::string entry;
  StringOutput output(&entry);
  WriteVarintField(MapEntryField::kKey, static_cast<uint64_t>(key), &output);
  WriteBytesField(MapEntryField::kValue, metadata.SerializeAsString(), &output);
  return entry;
}

// Serializes a plane without lines, entry by entry: together they may have 2 GiB and more.
std::string SerializeHead(const XPlaneProto& plane) {
  XPlaneProto rest;
  rest.set_id(plane.id());
  rest.set_name(plane.name());
  *rest.mutable_stats() = plane.stats();
  *rest.mutable_stat_metadata() = plane.stat_metadata();
  std::string head = SerializeWithSortedMaps(rest);
  StringOutput output(&head);
  for (int64_t key : SortedIds(plane.event_metadata())) {
    WriteBytesField(XPlaneField::kEventMetadata, MetadataEntry(key, plane.event_metadata().at(key)),
                    &output);
  }
  return head;
}

// Returns the fields of the plane that this project does not know.
absl::StatusOr<std::string> UnknownFields(const XSpaceSource& source, absl::string_view payload) {
  return RewriteFields(payload, source.origin(), kXPlaneDepth,
                       [](const WireField& field, StringOutput* output) {
                         if (field.number > XPlaneField::kStats) output->Raw(field.raw);
                       });
}

// Returns e.g. "Node 3: python3".
std::string DisplayName(int64_t node_id, const XLineHeader& line) {
  const absl::string_view name = line.display_name.empty() ? line.name : line.display_name;
  return absl::StrCat("Node ", node_id, ": ", name);
}

// Returns e.g. "/node:3/host:CPU" for "/host:CPU" of node 3, "/node:3/Task Environment" for "Task
// Environment".
std::string NodePlaneName(int64_t node_id, absl::string_view name) {
  return absl::StrCat("/node:", node_id, absl::StartsWith(name, "/") ? "" : "/", name);
}

// Takes "/device:TPU:12 SparseCore 0" apart into the kind "TPU", the number "12" and the rest.
bool ParseDeviceName(absl::string_view name, std::string* kind, std::string* number,
                     std::string* rest) {
  static const auto& device_name =
      *new RE2("(?s)/device:([^:]*):([0-9]+)(.*)", RE2::CannedOptions::Latin1);
  return RE2::FullMatch(std::string(name), device_name, kind, number, rest);
}

class PlaneNames {
 public:
  explicit PlaneNames(PlaneNaming naming) : naming_(naming) {}

  // To be called with all planes before any is named.
  void Announce(absl::string_view name) {
    std::string kind, number, rest;
    int64_t device = 0;
    if (!ParseDeviceName(name, &kind, &number, &rest)) return;
    if (absl::SimpleAtoi(number, &device) && device < kMaxStride) {
      stride_ = std::max(stride_, device + 1);
    }
  }

  // Names the node's next plane. Devices are numbered per kind, in the order they come; planes of
  // one device of a node (a TPU and its SparseCores) share its number. InvalidArgument beyond what
  // viewers show, or numbers hold.
  absl::StatusOr<std::string> Name(int64_t node_id, absl::string_view name) {
    std::string kind, number, rest;
    if (naming_ == PlaneNaming::kNodePrefix || !ParseDeviceName(name, &kind, &number, &rest)) {
      return NodePlaneName(node_id, name);
    }
    if (naming_ == PlaneNaming::kHostNode) {
      int64_t device = 0;
      if (!absl::SimpleAtoi(number, &device) || device >= stride_) {
        return NodePlaneName(node_id, name);
      }
      if (node_id < 0 || node_id >= std::numeric_limits<int64_t>::max() / stride_) {
        return InvalidArgument("devices cannot be numbered by the node id ", node_id,
                               ": give --node_ids, or --plane_naming=node_prefix");
      }
      return absl::StrCat(kDevicePlanePrefix, kind, ":Host_Node_", node_id * stride_ + device,
                          rest);
    }
    const auto [it, is_new] =
        devices_.try_emplace(absl::StrCat(kind, " ", node_id, " ", number), 0);
    if (is_new) {
      it->second = counts_[kind]++;
      if (devices_.size() > kMaxViewerDevices) {
        return InvalidArgument("more than ", kMaxViewerDevices,
                               " devices, which viewers cannot show in one file; give --output_dir "
                               "for one aligned file per node, or --plane_naming=node_prefix");
      }
    }
    return absl::StrCat(kDevicePlanePrefix, kind, ":", it->second, rest);
  }

 private:
  // Of more devices a node has none.
  static constexpr int64_t kMaxStride = 1 << 16;

  const PlaneNaming naming_;
  int64_t stride_ = 1;
  // The numbers of devices, by "kind node number", and how many devices of a kind there are.
  absl::flat_hash_map<std::string, int64_t> devices_;
  absl::flat_hash_map<std::string, int64_t> counts_;
};

// Which planes of a node become part of a plane of all nodes, and which stay the node's own.
enum class PlaneRole { kEnvironment, kPrograms, kHostThreads, kOwn };

PlaneRole RoleOf(const XPlaneLayout& plane, PlaneNaming naming) {
  if (plane.name == kTaskEnvPlaneName) return PlaneRole::kEnvironment;
  if (plane.name == kMetadataPlaneName && plane.lines.empty()) return PlaneRole::kPrograms;
  const bool joined = naming == PlaneNaming::kViewer && plane.name == kHostThreadsPlaneName;
  return joined && !plane.lines.empty() ? PlaneRole::kHostThreads : PlaneRole::kOwn;
}

// Moves, renames and renumbers what one node contributes.
class NodeEditor : public XSpaceEditor {
 public:
  // `names` are the new names of the node's own planes, by the address of their payload.
  NodeEditor(const CombineInput& input, const LineAlignerOptions& options, int64_t start_ns,
             const RenumberedPrograms& programs,
             const absl::flat_hash_map<const char*, std::string>& names, AlignedEvents* room)
      : input_(input),
        programs_(programs),
        names_(names),
        keeps_original_(options.keep_original),
        aligner_(*input.clock, *input.node, start_ns, options, room) {}

  // Called for the planes that stay the node's own.
  absl::Status EditPlane(const XPlaneVisitor& plane, PlaneEdit* edit) override {
    edit->edit_lines = plane.NumLines() > 0;
    const int64_t node_id = input_.record.node_id;
    edit->name = names_.at(plane.Layout().payload.data());
    PlaneAdditions additions(plane);
    additions.AddInt64(kNodeIdStatName, node_id);
    additions.AddString(kOriginalPlaneNameStatName, plane.Name());
    AddTo(&additions, input_.record);
    if (keeps_original_) original_times_ = DefineOriginalTimesStats(&additions);
    joint_ids_ = nullptr;
    edit->additions = additions.Serialize();
    SetProgramStat(plane);
    return RenumberEntries(plane.Layout(), edit);
  }

  // To be called before the writer asks about the lines of the node's part of a joint plane. Lines
  // are numbered from `first_line_id` on; original times are stats of that plane.
  absl::Status BeginJointPlane(const XPlaneLayout& plane, const MetadataIds* ids,
                               int64_t first_line_id,
                               const std::optional<OriginalTimesStats>& original_times) {
    original_times_ = original_times;
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(input_.reader->source(), plane.payload));
    joint_ids_ = ids;
    SetProgramStat(visitor);
    for (absl::string_view line : plane.lines) joint_line_ids_[line.data()] = first_line_id++;
    return absl::OkStatus();
  }

  absl::Status EditLine(const XPlaneLayout& plane, const XLineHeader& line, RewritePass pass,
                        LineEdit* edit) override {
    if (joint_ids_ != nullptr) {
      edit->id = joint_line_ids_.at(line.payload.data());
      edit->display_name = DisplayName(input_.record.node_id, line);
      edit->ids.metadata = joint_ids_;
    }
    if (program_stat_.has_value()) {
      edit->ids.values = &programs_.ids;
      edit->ids.values_stat_id = *program_stat_;
    }
    return aligner_.EditLine(plane.name, line, pass, original_times_, edit);
  }

  const AlignmentStats& stats() const { return aligner_.stats(); }

 private:
  // Which stat of the plane's events names programs, when some have a new id.
  void SetProgramStat(const XPlaneVisitor& plane) {
    program_stat_.reset();
    if (programs_.empty()) return;
    for (const XStatMetadata& metadata : plane.StatMetadata()) {
      if (metadata.type == StatType::kProgramId) program_stat_ = metadata.id;
    }
  }

  absl::Status RenumberEntries(const XPlaneLayout& plane, PlaneEdit* edit) const {
    if (programs_.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(XPlaneProto head, ReadHead(input_.reader->source(), plane.payload));
    const XPlaneProto before = head;
    RenumberMetadata(programs_, &head);
    for (absl::string_view entry : plane.event_metadata) {
      XPlaneProto one;
      std::string bytes;
      StringOutput output(&bytes);
      WriteBytesField(XPlaneField::kEventMetadata, entry, &output);
      if (!one.ParseFromString(bytes) || one.event_metadata().size() != 1) continue;
      const int64_t id = one.event_metadata().begin()->first;
      const XEventMetadataProto& renumbered = head.event_metadata().at(id);
      if (renumbered.SerializeAsString() == before.event_metadata().at(id).SerializeAsString()) {
        continue;
      }
      edit->replacements[entry.data()] = MetadataEntry(id, renumbered);
    }
    return absl::OkStatus();
  }

  const CombineInput& input_;
  const RenumberedPrograms& programs_;
  const absl::flat_hash_map<const char*, std::string>& names_;
  const bool keeps_original_;
  LineAligner aligner_;
  // Where the events of the plane at hand keep their original times; absent when they do not.
  std::optional<OriginalTimesStats> original_times_;
  // The new ids of the metadata of the plane at hand; null when the plane is the node's own.
  const MetadataIds* joint_ids_ = nullptr;
  // The new ids of lines of joint planes, by the address of their payload.
  absl::flat_hash_map<const char*, int64_t> joint_line_ids_;
  // The stat of the plane at hand that names programs; absent when no program has a new id.
  std::optional<int64_t> program_stat_;
};

class Combiner {
 public:
  Combiner(absl::Span<const CombineInput> nodes, const CombineOptions& options, ByteSink& sink)
      : nodes_(nodes), options_(options), names_(options.naming), writer_(&sink) {}

  absl::StatusOr<std::vector<AlignmentStats>> Run() {
    RETURN_IF_ERROR(CheckNodeIds());
    if (options_.naming == PlaneNaming::kHostNode) RETURN_IF_ERROR(AnnounceNames());
    RETURN_IF_ERROR(
        ForEachNode([this](size_t n) { return Annotate(Index(n), nodes_[n].reader->name()); }));
    MakeEditors();
    RETURN_IF_ERROR(WriteEnvironment());
    RETURN_IF_ERROR(WritePrograms());
    RETURN_IF_ERROR(WriteHostThreads());
    for (size_t n = 0; n < nodes_.size(); ++n) RETURN_IF_ERROR(WriteOwnPlanes(n));
    for (size_t n = 0; n < nodes_.size(); ++n) RETURN_IF_ERROR(WriteOtherFields(n));
    RETURN_IF_ERROR(writer_.Finish());
    std::vector<AlignmentStats> stats;
    for (const std::unique_ptr<NodeEditor>& editor : editors_) stats.push_back(editor->stats());
    return stats;
  }

 private:
  // What the first pass finds in a node's profile. Planes are their payloads.
  struct Indexed {
    // Absent when the profile has no such plane.
    std::optional<absl::string_view> environment;
    std::optional<absl::string_view> host_threads;
    // The ids that the lines of host_threads have in the profile, in order.
    std::vector<int64_t> thread_ids;
    // The planes that are not joined with other nodes', and their new names, by the address of the
    // payload.
    std::vector<absl::string_view> own;
    absl::flat_hash_map<const char*, std::string> names;
    // The stats of the plane of programs itself, and its fields that this project does not know.
    XPlaneProto programs;
    std::string unknown_of_programs;
    // The session, Unix time on the common clock.
    int64_t start_ns = 0;
    int64_t stop_ns = 0;
  };

  // Calls fn(n) for each node; its errors get the name of the node's profile.
  template <typename Fn>
  absl::Status ForEachNode(Fn fn) {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      RETURN_IF_ERROR(Annotate(fn(n), nodes_[n].reader->name()));
    }
    return absl::OkStatus();
  }

  absl::Status AnnounceNames() {
    return ForEachNode([this](size_t n) -> absl::Status {
      for (absl::string_view payload : nodes_[n].reader->layout().planes) {
        ASSIGN_OR_RETURN(const XPlaneLayout plane,
                         ReadXPlaneLayout(nodes_[n].reader->source(), payload));
        names_.Announce(plane.name);
      }
      return absl::OkStatus();
    });
  }

  absl::Status CheckNodeIds() const {
    std::set<int64_t> ids;
    for (const CombineInput& node : nodes_) {
      if (ids.insert(node.record.node_id).second) continue;
      return InvalidArgument("two profiles are of node ", node.record.node_id);
    }
    return absl::OkStatus();
  }

  // Finds the node's planes, its span on the common clock and its programs.
  absl::Status Index(size_t n) {
    const CombineInput& node = nodes_[n];
    const XSpaceSource& source = node.reader->source();
    Indexed indexed;
    ASSIGN_OR_RETURN(indexed.start_ns, MapHostTime(*node.node, node.clock->start_ns()));
    indexed.stop_ns = indexed.start_ns;
    start_ns_ = std::min(start_ns_, indexed.start_ns);
    RenumberedPrograms renumbered;
    for (absl::string_view payload : node.reader->layout().planes) {
      ASSIGN_OR_RETURN(const XPlaneLayout plane, ReadXPlaneLayout(source, payload));
      std::vector<int64_t> line_ids;
      for (absl::string_view line : plane.lines) {
        ASSIGN_OR_RETURN(const XLineHeader header, ReadXLineHeader(source, line));
        // A line that begins at no time of the run is written as it is.
        start_ns_ =
            std::min(start_ns_,
                     MapLineBase(*node.clock, *node.node, plane.name, header).value_or(start_ns_));
        line_ids.push_back(header.id);
        source.Forget(line);
      }
      const bool had_threads = indexed.host_threads.has_value();
      RETURN_IF_ERROR(Place(plane, n, &indexed, &renumbered));
      if (!had_threads && indexed.host_threads.has_value())
        indexed.thread_ids = std::move(line_ids);
    }
    indexed_.push_back(std::move(indexed));
    programs_of_node_.push_back(std::move(renumbered));
    return absl::OkStatus();
  }

  absl::Status Place(const XPlaneLayout& plane, size_t n, Indexed* indexed,
                     RenumberedPrograms* renumbered) {
    const XSpaceSource& source = nodes_[n].reader->source();
    const int64_t node_id = nodes_[n].record.node_id;
    const PlaneRole role = RoleOf(plane, options_.naming);
    if (role == PlaneRole::kPrograms) return PlacePrograms(plane, source, indexed, renumbered);
    // Profilers write one plane of threads; another one stays as it is.
    if (role == PlaneRole::kHostThreads && !indexed->host_threads.has_value()) {
      indexed->host_threads = plane.payload;
      return absl::OkStatus();
    }
    std::string& name = indexed->names[plane.payload.data()];
    if (role == PlaneRole::kEnvironment) {
      indexed->environment = plane.payload;
      ASSIGN_OR_RETURN(indexed->stop_ns, StopOf(plane, nodes_[n], indexed->start_ns));
      name = NodePlaneName(node_id, plane.name);
    } else {
      ASSIGN_OR_RETURN(name, names_.Name(node_id, plane.name));
    }
    indexed->own.push_back(plane.payload);
    return absl::OkStatus();
  }

  absl::Status PlacePrograms(const XPlaneLayout& plane, const XSpaceSource& source,
                             Indexed* indexed, RenumberedPrograms* renumbered) {
    ASSIGN_OR_RETURN(XPlaneProto head, ReadHead(source, plane.payload));
    ASSIGN_OR_RETURN(const std::string unknown, UnknownFields(source, plane.payload));
    indexed->unknown_of_programs += unknown;
    *indexed->programs.mutable_stats() = head.stats();
    *indexed->programs.mutable_stat_metadata() = head.stat_metadata();
    ASSIGN_OR_RETURN(RenumberedPrograms own, programs_.AddNode(std::move(head)));
    renumbered->ids.insert(own.ids.begin(), own.ids.end());
    renumbered->names.insert(own.names.begin(), own.names.end());
    return absl::OkStatus();
  }

  static absl::StatusOr<int64_t> StopOf(const XPlaneLayout& environment, const CombineInput& node,
                                        int64_t start_ns) {
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(node.reader->source(), environment.payload));
    const XStatVisitor* stop = visitor.GetStat(StatType::kProfileStopTime);
    if (stop == nullptr || !stop->IntOrUintValue().has_value()) return start_ns;
    // What cannot be a time of the run says nothing.
    return MapHostTime(*node.node, *stop->IntOrUintValue()).value_or(start_ns);
  }

  void MakeEditors() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      LineAlignerOptions options;
      options.node_id = nodes_[n].record.node_id;
      options.max_extrapolation_ns = options_.max_extrapolation_ns;
      options.keep_original = options_.keep_original;
      editors_.push_back(std::make_unique<NodeEditor>(
          nodes_[n], options, start_ns_, programs_of_node_[n], indexed_[n].names, &room_));
    }
  }

  // Writes the first node's environment, from the earliest start to the latest stop.
  absl::Status WriteEnvironment() {
    XPlaneProto environment;
    int64_t stop_ns = start_ns_;
    for (size_t n = nodes_.size(); n-- > 0;) {
      stop_ns = std::max(stop_ns, indexed_[n].stop_ns);
      if (!indexed_[n].environment.has_value()) continue;
      ASSIGN_OR_RETURN(environment, ReadHead(nodes_[n].reader->source(), *indexed_[n].environment));
    }
    environment.set_name(std::string(kTaskEnvPlaneName));
    PlaneMetadataBuilder builder(&environment);
    builder.SetPlaneStat(StatType::kProfileStartTime, static_cast<uint64_t>(start_ns_));
    builder.SetPlaneStat(StatType::kProfileStopTime, static_cast<uint64_t>(stop_ns));
    return WritePlane(SerializeWithSortedMaps(environment));
  }

  absl::Status WritePrograms() {
    PlaneAdditions additions(programs_.plane());
    std::string unknown_fields;
    bool any = !programs_.plane().event_metadata().empty();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      AddNodeStats(n, indexed_[n].programs, &additions);
      unknown_fields += indexed_[n].unknown_of_programs;
      any |= !indexed_[n].programs.stats().empty() || !indexed_[n].unknown_of_programs.empty();
    }
    if (!any) return absl::OkStatus();
    return WritePlane(
        absl::StrCat(SerializeHead(programs_.plane()), additions.Serialize(), unknown_fields));
  }

  absl::Status WritePlane(absl::string_view payload) {
    std::string field;
    StringOutput output(&field);
    WriteBytesField(XSpaceField::kPlanes, payload, &output);
    return writer_.WriteFields(field);
  }

  struct JointPart {
    size_t node = 0;
    XPlaneLayout plane;
    XPlaneProto head;
    MetadataIds ids;
    int64_t first_line_id = 0;
  };

  absl::Status WriteHostThreads() {
    XPlaneProto head;
    head.set_name(std::string(kHostThreadsPlaneName));
    PlaneMetadataMerger merger(&head);
    std::string unknown_fields;
    std::vector<JointPart> parts;
    std::vector<NodeLines> owners;
    int64_t next_line_id = 1;
    RETURN_IF_ERROR(ForEachNode([&](size_t n) -> absl::Status {
      if (!indexed_[n].host_threads.has_value()) return absl::OkStatus();
      const XSpaceSource& source = nodes_[n].reader->source();
      const absl::string_view payload = *indexed_[n].host_threads;
      JointPart part;
      part.node = n;
      ASSIGN_OR_RETURN(part.plane, ReadXPlaneLayout(source, payload));
      ASSIGN_OR_RETURN(part.head, ReadHead(source, payload));
      RETURN_IF_ERROR(CheckMetadataIds(part.head));
      RenumberMetadata(programs_of_node_[n], &part.head);
      part.ids = merger.Merge(part.head);
      part.first_line_id = next_line_id;
      next_line_id += static_cast<int64_t>(part.plane.lines.size());
      owners.push_back({nodes_[n].record.node_id, part.first_line_id, next_line_id - 1});
      ASSIGN_OR_RETURN(const std::string unknown, UnknownFields(source, payload));
      unknown_fields += unknown;
      parts.push_back(std::move(part));
      return absl::OkStatus();
    }));
    if (parts.empty()) return absl::OkStatus();

    PlaneAdditions additions(head);
    additions.AddString(kNodeLinesStatName, FormatNodeLines(owners));
    for (const JointPart& part : parts) {
      AddTo(&additions, nodes_[part.node].record, NodePrefix(part.node));
      AddNodeStats(part.node, part.head, &additions);
      // The ids that the lines had in their own profile, in order.
      additions.AddString(absl::StrCat(NodePrefix(part.node), "line_ids"),
                          absl::StrJoin(indexed_[part.node].thread_ids, ","));
    }
    std::optional<OriginalTimesStats> original_times;
    if (options_.keep_original) original_times = DefineOriginalTimesStats(&additions);
    std::vector<EditedPlane> edited;
    for (const JointPart& part : parts) {
      NodeEditor* editor = editors_[part.node].get();
      RETURN_IF_ERROR(
          editor->BeginJointPlane(part.plane, &part.ids, part.first_line_id, original_times));
      const XSpaceReader& reader = *nodes_[part.node].reader;
      edited.push_back({&reader.source(), part.plane.payload, editor, reader.name()});
    }
    RETURN_IF_ERROR(writer_.WriteJoinedPlane(
        absl::StrCat(SerializeHead(head), additions.Serialize(), unknown_fields), edited));
    for (const JointPart& part : parts) {
      nodes_[part.node].reader->Forget(part.plane.payload);
      Progress(part.plane.payload.size());
    }
    return absl::OkStatus();
  }

  std::string NodePrefix(size_t n) const {
    return absl::StrCat("node:", nodes_[n].record.node_id, "/");
  }

  // Adds what the node's own plane said of itself, under names like "node:3/process_id".
  void AddNodeStats(size_t n, const XPlaneProto& part, PlaneAdditions* additions) const {
    const auto name_of = [&](int64_t id) {
      const auto it = part.stat_metadata().find(id);
      return it == part.stat_metadata().end() ? absl::StrCat("stat ", id) : it->second.name();
    };
    for (XStatProto stat : part.stats()) {
      const std::string name = absl::StrCat(NodePrefix(n), name_of(stat.metadata_id()));
      if (stat.has_ref_value()) {
        stat.set_str_value(name_of(static_cast<int64_t>(stat.ref_value())));
      }
      additions->AddStat(name, std::move(stat));
    }
  }

  absl::Status WriteOwnPlanes(size_t n) {
    for (absl::string_view payload : indexed_[n].own) {
      const XSpaceReader& reader = *nodes_[n].reader;
      RETURN_IF_ERROR(
          writer_.WritePlane({&reader.source(), payload, editors_[n].get(), reader.name()}));
      reader.Forget(payload);
      Progress(payload.size());
    }
    return absl::OkStatus();
  }

  // Writes hostnames, errors, warnings and fields that this project does not know.
  absl::Status WriteOtherFields(size_t n) {
    const XSpaceSource& source = nodes_[n].reader->source();
    const auto write = [&](const WireField& field, StringOutput* output) {
      if (field.IsBytes(XSpaceField::kErrors) || field.IsBytes(XSpaceField::kWarnings)) {
        WriteBytesField(field.number,
                        absl::StrCat("node ", nodes_[n].record.node_id, ": ", field.bytes), output);
      } else if (!field.IsBytes(XSpaceField::kPlanes)) {
        output->Raw(field.raw);
      }
    };
    ASSIGN_OR_RETURN(const std::string fields,
                     RewriteFields(source.bytes, source.origin(), kXSpaceDepth, write));
    return writer_.WriteFields(fields);
  }

  void Progress(uint64_t bytes) {
    bytes_done_ += bytes;
    if (options_.progress) options_.progress(bytes_done_);
  }

  const absl::Span<const CombineInput> nodes_;
  const CombineOptions& options_;
  PlaneNames names_;
  XSpaceWriter writer_;
  ProgramTable programs_;
  // One of each per node, in the order of nodes_.
  std::vector<RenumberedPrograms> programs_of_node_;
  std::vector<Indexed> indexed_;
  std::vector<std::unique_ptr<NodeEditor>> editors_;
  AlignedEvents room_;
  // The earliest start of all sessions and lines, Unix time on the common clock.
  int64_t start_ns_ = std::numeric_limits<int64_t>::max();
  uint64_t bytes_done_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<AlignmentStats>> CombineXSpaces(absl::Span<const CombineInput> nodes,
                                                           const CombineOptions& options,
                                                           ByteSink& sink) {
  if (nodes.empty()) return InvalidArgument("there are no profiles to combine");
  return Combiner(nodes, options, sink).Run();
}

absl::StatusOr<bool> FitViewers(absl::Span<const CombineInput> nodes) {
  PlaneNames names(PlaneNaming::kViewer);
  for (const CombineInput& node : nodes) {
    for (absl::string_view payload : node.reader->layout().planes) {
      const absl::StatusOr<XPlaneLayout> plane = ReadXPlaneLayout(node.reader->source(), payload);
      if (!plane.ok()) return Annotate(plane.status(), node.reader->name());
      if (!names.Name(node.record.node_id, plane->name).ok()) return false;
    }
  }
  return true;
}

}  // namespace meridian
