#include "trace_alignment/aligner/xspace_aligner.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr absl::string_view kMethodStat = "alignment_method";

class AligningEditor : public XSpaceEditor {
 public:
  AligningEditor(const SessionClock& clock, const NodeClock& node, const AlignOptions& options,
                 int64_t new_start_ns)
      : node_(node),
        options_(options),
        new_start_ns_(new_start_ns),
        aligner_(clock, node, new_start_ns, options.lines, &room_) {}

  absl::Status EditPlane(const XPlaneVisitor& plane, PlaneEdit* edit) override {
    edit->edit_lines = plane.NumLines() > 0;
    const bool is_environment = plane.Name() == kTaskEnvPlaneName;
    if (!edit->edit_lines && !is_environment) return absl::OkStatus();
    if (is_environment) {
      has_environment_ = true;
      RETURN_IF_ERROR(MoveSession(plane, edit));
    }
    PlaneAdditions additions(plane);
    AddTo(&additions, options_.record);
    if (options_.lines.keep_original) original_times_ = DefineOriginalTimesStats(&additions);
    edit->additions = additions.Serialize();
    return absl::OkStatus();
  }

  absl::Status EditLine(const XPlaneLayout& plane, const XLineHeader& line, RewritePass pass,
                        LineEdit* edit) override {
    return aligner_.EditLine(plane.name, line, pass, original_times_, edit);
  }

  const AlignmentStats& stats() const { return aligner_.stats(); }
  bool has_environment() const { return has_environment_; }

 private:
  // The session's start is what lines count from, whatever the file said; the stop is a time of the
  // host's clock.
  absl::Status MoveSession(const XPlaneVisitor& plane, PlaneEdit* edit) {
    for (size_t i = 0; i < plane.Stats().size(); ++i) {
      const XStatVisitor& stat = plane.Stats()[i];
      const bool is_start = stat.Type() == StatType::kProfileStartTime;
      const bool is_stop = stat.Type() == StatType::kProfileStopTime;
      if (!is_start && !is_stop) continue;
      int64_t mapped_ns = new_start_ns_;
      if (is_stop) {
        if (!stat.IntOrUintValue().has_value()) continue;
        const absl::StatusOr<int64_t> stop_ns = MapHostTime(node_, *stat.IntOrUintValue());
        // What cannot be a time of the run stays as it was; no other command minds it.
        if (!stop_ns.ok()) continue;
        mapped_ns = *stop_ns;
      }
      XStatProto moved;
      moved.set_metadata_id(stat.Id());
      moved.set_uint64_value(static_cast<uint64_t>(mapped_ns));
      edit->replacements[plane.Layout().stats[i].data()] = moved.SerializeAsString();
    }
    return absl::OkStatus();
  }

  const NodeClock& node_;
  const AlignOptions& options_;
  // Unix time that the new line bases count from.
  const int64_t new_start_ns_;
  AlignedEvents room_;
  LineAligner aligner_;
  bool has_environment_ = false;
  // Where the events of the plane at hand keep their original times; absent when they do not.
  std::optional<OriginalTimesStats> original_times_;
};

// For profiles that do not say when they began: a plane that does, as a field of an XSpace.
std::string EnvironmentField(int64_t start_ns) {
  XSpaceProto space;
  space.add_planes()->set_name(std::string(kTaskEnvPlaneName));
  PlaneMetadataBuilder(space.mutable_planes(0))
      .SetPlaneStat(StatType::kProfileStartTime, static_cast<uint64_t>(start_ns));
  return space.SerializeAsString();
}

}  // namespace

void AddTo(PlaneAdditions* plane, const AlignmentRecord& record, absl::string_view prefix) {
  plane->AddInt64(absl::StrCat(prefix, "alignment_node_id"), record.node_id);
  plane->AddString(absl::StrCat(prefix, kMethodStat), record.method);
}

absl::StatusOr<bool> IsAligned(const XSpaceReader& reader) {
  bool aligned = false;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    for (const XStatVisitor& stat : plane.Stats()) {
      aligned |= absl::EndsWith(stat.Name(), kMethodStat);
    }
  }));
  return aligned;
}

absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink) {
  ASSIGN_OR_RETURN(const int64_t new_start_ns,
                   Annotate(MapHostTime(node, clock.start_ns()), reader.name()));
  AligningEditor editor(clock, node, options, new_start_ns);
  const absl::Status status = RewriteXSpace(reader.source(), editor, sink);
  // An error of the sink is not the profile's.
  if (!status.ok()) {
    return ExitCode(status) == kExitBadInput ? Annotate(status, reader.name()) : status;
  }
  if (!editor.has_environment()) RETURN_IF_ERROR(sink.Append(EnvironmentField(new_start_ns)));
  return editor.stats();
}

}  // namespace meridian
