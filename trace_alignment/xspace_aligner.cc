#include "trace_alignment/xspace_aligner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "third_party/xplane/xplane.pb.h"
#include "trace_alignment/event_order.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/xplane_builder.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr int64_t kPsPerNs = 1000;

// Stats that an aligned profile has and no profiler writes.
constexpr absl::string_view kNodeIdStat = "alignment_node_id";
constexpr absl::string_view kMethodStat = "alignment_method";
constexpr absl::string_view kOriginalStartStat = "original_start_ps";
constexpr absl::string_view kOriginalDurationStat = "original_duration_ps";
constexpr absl::string_view kCorrectionStat = "timestamp_correction_ns";

int64_t FloorToNs(int64_t ps) {
  const int64_t ns = ps / kPsPerNs;
  return ps % kPsPerNs < 0 ? ns - 1 : ns;
}

// Ids of the stats that are added to the events of a plane.
struct OriginalStatIds {
  int64_t start = 0;
  int64_t duration = 0;
  int64_t correction = 0;
};

class AligningEditor : public XSpaceEditor {
 public:
  AligningEditor(const XSpaceReader& reader, const SessionClock& clock, const NodeClock& node,
                 const AlignOptions& options)
      : reader_(reader),
        clock_(clock),
        run_(clock.start_ns()),
        node_(node),
        options_(options),
        new_start_ns_(FloorToNs(LineClock(node, ClockDomain::kHost).Map(0))) {}

  absl::Status EditPlane(const XPlaneLayout& plane, PlaneEdit* edit) override {
    edit->edit_lines = !plane.lines.empty();
    const bool is_environment = plane.name == kTaskEnvPlaneName;
    if (!edit->edit_lines && !is_environment) return absl::OkStatus();
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(reader_.source(), plane.payload));
    if (is_environment) MoveSession(plane, visitor, edit);
    AddStats(visitor, edit);
    return absl::OkStatus();
  }

  absl::Status EditLine(const XPlaneLayout& plane, const XLineHeader& line, RewritePass pass,
                        LineEdit* edit) override {
    const ClockDomain domain = ClockDomainOf(plane.name, line.name);
    LineClock clock(node_, domain);
    ASSIGN_OR_RETURN(const int64_t base_ns, clock_.LineBaseNs(line));
    ASSIGN_OR_RETURN(const int64_t base_ps, run_.ToRunPs(base_ns, 0));
    RETURN_IF_ERROR(MapEvents(line, base_ps, clock, edit->times));
    const int64_t new_base_ns = FloorToNs(LineClock(node_, domain).Map(base_ps));
    edit->timestamp_ns = new_base_ns - new_start_ns_;
    if (pass == RewritePass::kWrite) {
      Count(clock, edit->times);
      RETURN_IF_ERROR(CheckExtrapolation(plane, line, clock));
    }
    if (options_.keep_original) KeepOriginals(base_ps, edit);
    return WriteTimes(line, new_base_ns, edit);
  }

  AlignmentStats TakeStats() { return std::move(stats_); }

 private:
  // The session's start and stop are times of the host's clock.
  void MoveSession(const XPlaneLayout& plane, const XPlaneVisitor& visitor, PlaneEdit* edit) {
    LineClock clock(node_, ClockDomain::kHost);
    for (size_t i = 0; i < plane.stats.size(); ++i) {
      const XStatVisitor& stat = visitor.Stats()[i];
      const bool is_time =
          stat.Type() == StatType::kProfileStartTime || stat.Type() == StatType::kProfileStopTime;
      const std::optional<int64_t> unix_ns = stat.IntOrUintValue();
      if (!is_time || !unix_ns.has_value()) continue;
      const absl::StatusOr<int64_t> run_ps = run_.ToRunPs(*unix_ns, 0);
      if (!run_ps.ok()) continue;
      XStatProto moved;
      moved.set_metadata_id(stat.Id());
      moved.set_uint64_value(
          static_cast<uint64_t>(clock_.start_ns() + FloorToNs(clock.Map(*run_ps))));
      edit->replacements[plane.stats[i].data()] = moved.SerializeAsString();
    }
  }

  // Says on the plane that, and how, it was aligned.
  void AddStats(const XPlaneVisitor& visitor, PlaneEdit* edit) {
    int64_t next_id = 1;
    for (const XStatMetadata& metadata : visitor.StatMetadata()) {
      if (metadata.id < std::numeric_limits<int64_t>::max() - 8) {
        next_id = std::max(next_id, metadata.id + 1);
      }
    }
    XPlaneProto additions;
    const auto define = [&](absl::string_view name) {
      const int64_t id = next_id++;
      XStatMetadataProto& metadata = (*additions.mutable_stat_metadata())[id];
      metadata.set_id(id);
      metadata.set_name(std::string(name));
      return id;
    };
    XStatProto* node_id = additions.add_stats();
    node_id->set_metadata_id(define(kNodeIdStat));
    node_id->set_int64_value(options_.node_id);
    XStatProto* method = additions.add_stats();
    method->set_metadata_id(define(kMethodStat));
    method->set_str_value(options_.method);
    if (options_.keep_original) {
      original_ids_.start = define(kOriginalStartStat);
      original_ids_.duration = define(kOriginalDurationStat);
      original_ids_.correction = define(kCorrectionStat);
    }
    edit->additions = additions.SerializeAsString();
  }

  // Fills before_ and mapped_ with the line's events that have a start.
  absl::Status MapEvents(const XLineHeader& line, int64_t base_ps, LineClock& clock,
                         const std::vector<EventTimes>& times) {
    before_.clear();
    mapped_.clear();
    extrapolated_ = {};
    for (const EventTimes& event : times) {
      if (event.is_aggregated) continue;
      int64_t start_ps = 0, end_ps = 0;
      if (event.duration_ps < 0 || __builtin_add_overflow(base_ps, event.offset_ps, &start_ps) ||
          __builtin_add_overflow(start_ps, event.duration_ps, &end_ps)) {
        return absl::InvalidArgumentError(
            absl::StrCat("line '", line.name, "' has an event at ", event.offset_ps, " ps of ",
                         event.duration_ps, " ps, which no clock can show"));
      }
      const int64_t snapshots = clock.snapshot_extrapolations();
      const int64_t offsets = clock.offset_extrapolations();
      const int64_t repaired = clock.repaired_times();
      before_.push_back(Timespan(start_ps, event.duration_ps));
      mapped_.push_back({clock.Map(start_ps), clock.Map(end_ps)});
      extrapolated_.snapshots += clock.snapshot_extrapolations() > snapshots;
      extrapolated_.offsets += clock.offset_extrapolations() > offsets;
      extrapolated_.repaired += clock.repaired_times() > repaired;
    }
    extrapolated_.repaired += options_.strict_monotonic
                                  ? MakeStrictlyIncreasing(before_, absl::MakeSpan(mapped_))
                                  : KeepOrderAndNesting(before_, absl::MakeSpan(mapped_));
    return absl::OkStatus();
  }

  void Count(const LineClock& clock, const std::vector<EventTimes>& times) {
    stats_.set_lines(stats_.lines() + 1);
    stats_.set_events(stats_.events() + static_cast<int64_t>(times.size()));
    stats_.set_snapshot_extrapolations(stats_.snapshot_extrapolations() + extrapolated_.snapshots);
    stats_.set_offset_extrapolations(stats_.offset_extrapolations() + extrapolated_.offsets);
    stats_.set_events_clamped_monotonic(stats_.events_clamped_monotonic() + extrapolated_.repaired);
    if (clock.farthest_extrapolation_ps() > 0) {
      stats_.set_farthest_extrapolation_ns(std::max(stats_.farthest_extrapolation_ns(),
                                                    clock.farthest_extrapolation_ps() / kPsPerNs));
    }
    for (size_t i = 0; i < before_.size(); ++i) {
      const int64_t correction_ps = mapped_[i].start_ps - before_[i].begin_ps();
      if (correction_ps != 0 || mapped_[i].end_ps != before_[i].end_ps()) {
        stats_.set_events_corrected(stats_.events_corrected() + 1);
      }
      const int64_t correction_ns = FloorToNs(correction_ps);
      const bool first = !any_event_;
      any_event_ = true;
      stats_.set_min_correction_ns(first ? correction_ns
                                         : std::min(stats_.min_correction_ns(), correction_ns));
      stats_.set_max_correction_ns(first ? correction_ns
                                         : std::max(stats_.max_correction_ns(), correction_ns));
    }
  }

  absl::Status CheckExtrapolation(const XPlaneLayout& plane, const XLineHeader& line,
                                  const LineClock& clock) const {
    const int64_t farthest_ns = clock.farthest_extrapolation_ps() / kPsPerNs;
    if (farthest_ns <= options_.max_extrapolation_ns) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "node ", options_.node_id, ": plane '", plane.name, "', line '", line.name, "' has events ",
        farthest_ns / 1000000,
        " ms outside the snapshot pairs or offsets; give samples that cover the trace, or a larger "
        "--max_extrapolation_ms (now ",
        options_.max_extrapolation_ns / 1000000, ")"));
  }

  void KeepOriginals(int64_t base_ps, LineEdit* edit) {
    // The times as they are now, before WriteTimes.
    std::vector<EventTimes> originals = edit->times;
    std::vector<MappedEvent> mapped = mapped_;
    const OriginalStatIds ids = original_ids_;
    // Positions of the events that have a start among all events.
    std::vector<size_t> position(originals.size(), 0);
    size_t next = 0;
    for (size_t i = 0; i < originals.size(); ++i) {
      if (!originals[i].is_aggregated) position[i] = next++;
    }
    edit->event_additions = [=](size_t event, std::string* fields) {
      if (originals[event].is_aggregated) return;
      const int64_t start_ps = base_ps + originals[event].offset_ps;
      XEventProto additions;
      const auto add = [&](int64_t id, int64_t value) {
        XStatProto* stat = additions.add_stats();
        stat->set_metadata_id(id);
        stat->set_int64_value(value);
      };
      add(ids.start, start_ps);
      add(ids.duration, originals[event].duration_ps);
      add(ids.correction, FloorToNs(mapped[position[event]].start_ps - start_ps));
      additions.AppendToString(fields);
    };
  }

  absl::Status WriteTimes(const XLineHeader& line, int64_t new_base_ns, LineEdit* edit) {
    size_t next = 0;
    for (EventTimes& event : edit->times) {
      if (event.is_aggregated) continue;
      const MappedEvent& mapped = mapped_[next++];
      if (__builtin_sub_overflow(mapped.start_ps, new_base_ns * kPsPerNs, &event.offset_ps)) {
        return absl::InvalidArgumentError(
            absl::StrCat("line '", line.name, "' spans more time than a line can hold"));
      }
      event.duration_ps = mapped.end_ps - mapped.start_ps;
    }
    return absl::OkStatus();
  }

  // Events of the line at hand that need a remark.
  struct Remarks {
    int64_t snapshots = 0;
    int64_t offsets = 0;
    int64_t repaired = 0;
  };

  const XSpaceReader& reader_;
  const SessionClock& clock_;
  const RunClock run_;
  const NodeClock& node_;
  const AlignOptions& options_;
  // From the run's base.
  const int64_t new_start_ns_;
  AlignmentStats stats_;
  bool any_event_ = false;
  OriginalStatIds original_ids_;
  // Of the line at hand.
  std::vector<Timespan> before_;
  std::vector<MappedEvent> mapped_;
  Remarks extrapolated_;
};

}  // namespace

absl::StatusOr<bool> IsAligned(const XSpaceReader& reader) {
  for (absl::string_view plane : reader.layout().planes) {
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor, XPlaneVisitor::Create(reader.source(), plane));
    for (const XStatVisitor& stat : visitor.Stats()) {
      if (stat.Name() == kMethodStat) return true;
    }
  }
  return false;
}

absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink) {
  AligningEditor editor(reader, clock, node, options);
  const absl::Status status = RewriteXSpace(reader.source(), editor, sink);
  if (!status.ok()) return Annotate(status, reader.name());
  return editor.TakeStats();
}

}  // namespace meridian
