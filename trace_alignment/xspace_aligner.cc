#include "trace_alignment/xspace_aligner.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/status_util.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

class AligningEditor : public XSpaceEditor {
 public:
  AligningEditor(const XSpaceReader& reader, const AlignOptions& options, int64_t new_start_ns,
                 LineAligner aligner)
      : reader_(reader),
        options_(options),
        new_start_ns_(new_start_ns),
        aligner_(std::move(aligner)) {}

  absl::Status EditPlane(const XPlaneLayout& plane, PlaneEdit* edit) override {
    edit->edit_lines = !plane.lines.empty();
    const bool is_environment = plane.name == kTaskEnvPlaneName;
    if (!edit->edit_lines && !is_environment) return absl::OkStatus();
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(reader_.source(), plane.payload));
    if (is_environment) {
      has_environment_ = true;
      RETURN_IF_ERROR(MoveSession(plane, visitor, edit));
    }
    PlaneAdditions additions(visitor);
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
  absl::Status MoveSession(const XPlaneLayout& plane, const XPlaneVisitor& visitor,
                           PlaneEdit* edit) {
    for (size_t i = 0; i < plane.stats.size(); ++i) {
      const XStatVisitor& stat = visitor.Stats()[i];
      const bool is_start = stat.Type() == StatType::kProfileStartTime;
      const bool is_stop = stat.Type() == StatType::kProfileStopTime;
      if (!is_start && !is_stop) continue;
      int64_t mapped_ns = new_start_ns_;
      if (is_stop) {
        if (!stat.IntOrUintValue().has_value()) continue;
        ASSIGN_OR_RETURN(mapped_ns, aligner_.MapHostTime(*stat.IntOrUintValue()));
      }
      XStatProto moved;
      moved.set_metadata_id(stat.Id());
      moved.set_uint64_value(static_cast<uint64_t>(mapped_ns));
      edit->replacements[plane.stats[i].data()] = moved.SerializeAsString();
    }
    return absl::OkStatus();
  }

  const XSpaceReader& reader_;
  const AlignOptions& options_;
  const int64_t new_start_ns_;
  LineAligner aligner_;
  bool has_environment_ = false;
  // Of the plane at hand.
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

absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink) {
  AlignedEvents room;
  ASSIGN_OR_RETURN(const int64_t new_start_ns,
                   LineAligner(clock, node, 0, options.lines, &room).MapHostTime(clock.start_ns()));
  AligningEditor editor(reader, options, new_start_ns,
                        LineAligner(clock, node, new_start_ns, options.lines, &room));
  const absl::Status status = RewriteXSpace(reader.source(), editor, sink);
  // An error of the sink is not the profile's.
  if (!status.ok()) {
    return ExitCode(status) == kExitBadInput ? Annotate(status, reader.name()) : status;
  }
  if (!editor.has_environment()) RETURN_IF_ERROR(sink.Append(EnvironmentField(new_start_ns)));
  return editor.stats();
}

}  // namespace meridian
