#include "trace_alignment/xspace_aligner.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/xplane_builder.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

class AligningEditor : public XSpaceEditor {
 public:
  AligningEditor(const XSpaceReader& reader, const AlignOptions& options, LineAligner aligner)
      : reader_(reader), options_(options), aligner_(std::move(aligner)) {}

  absl::Status EditPlane(const XPlaneLayout& plane, PlaneEdit* edit) override {
    edit->edit_lines = !plane.lines.empty();
    const bool is_environment = plane.name == kTaskEnvPlaneName;
    if (!edit->edit_lines && !is_environment) return absl::OkStatus();
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(reader_.source(), plane.payload));
    if (is_environment) MoveSession(plane, visitor, edit);
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

 private:
  // The session's start and stop are times of the host's clock.
  void MoveSession(const XPlaneLayout& plane, const XPlaneVisitor& visitor, PlaneEdit* edit) {
    for (size_t i = 0; i < plane.stats.size(); ++i) {
      const XStatVisitor& stat = visitor.Stats()[i];
      const bool is_time =
          stat.Type() == StatType::kProfileStartTime || stat.Type() == StatType::kProfileStopTime;
      const std::optional<int64_t> unix_ns = stat.IntOrUintValue();
      if (!is_time || !unix_ns.has_value()) continue;
      const absl::StatusOr<int64_t> mapped_ns = aligner_.MapHostTime(*unix_ns);
      if (!mapped_ns.ok()) continue;
      XStatProto moved;
      moved.set_metadata_id(stat.Id());
      moved.set_uint64_value(static_cast<uint64_t>(*mapped_ns));
      edit->replacements[plane.stats[i].data()] = moved.SerializeAsString();
    }
  }

  const XSpaceReader& reader_;
  const AlignOptions& options_;
  LineAligner aligner_;
  // Of the plane at hand.
  std::optional<OriginalTimesStats> original_times_;
};

}  // namespace

absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink) {
  ASSIGN_OR_RETURN(const int64_t new_start_ns,
                   LineAligner(clock, node, 0, options.lines).MapHostTime(clock.start_ns()));
  AligningEditor editor(reader, options, LineAligner(clock, node, new_start_ns, options.lines));
  const absl::Status status = RewriteXSpace(reader.source(), editor, sink);
  if (!status.ok()) return Annotate(status, reader.name());
  return editor.stats();
}

}  // namespace meridian
