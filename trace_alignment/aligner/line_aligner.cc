#include "trace_alignment/aligner/line_aligner.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>

#include "absl/numeric/int128.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Times that no clock can show stay at the ends of the range.
int64_t Difference(int64_t a_ps, int64_t b_ps) {
  return SaturateToInt64(absl::int128(a_ps) - b_ps);
}

// Returns the events' positions in the order in which a parent precedes its children.
std::vector<size_t> ParentFirstOrder(absl::Span<const Timespan> events) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t a, size_t b) { return events[a] < events[b]; };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

}  // namespace

int64_t KeepOrderAndNesting(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped,
                            std::vector<PlacedEvent>* open) {
  MERIDIAN_CHECK(before.size() == mapped.size());
  int64_t clamped = 0;
  for (size_t event : ParentFirstOrder(before)) {
    MappedEvent kept = mapped[event];
    if (!open->empty()) {
      const PlacedEvent& previous = open->back();
      if (previous.before.begin_ps() == before[event].begin_ps()) {
        kept.start_ps = previous.mapped.start_ps;
      } else {
        kept.start_ps = std::max(kept.start_ps, previous.mapped.start_ps);
      }
    }
    while (!open->empty() && !open->back().before.Includes(before[event])) open->pop_back();
    if (!open->empty()) {
      const MappedEvent& parent = open->back().mapped;
      kept.start_ps = std::min(kept.start_ps, parent.end_ps);
      kept.end_ps = std::min(kept.end_ps, parent.end_ps);
    }
    kept.end_ps = std::max(kept.end_ps, kept.start_ps);
    if (!(kept == mapped[event])) ++clamped;
    mapped[event] = kept;
    open->push_back({before[event], kept});
  }
  return clamped;
}

int64_t MakeStrictlyIncreasing(absl::Span<const Timespan> before, absl::Span<MappedEvent> mapped,
                               std::vector<PlacedEvent>* open) {
  MERIDIAN_CHECK(before.size() == mapped.size());
  int64_t moved = 0;
  for (size_t event : ParentFirstOrder(before)) {
    MappedEvent& here = mapped[event];
    if (!open->empty() && here.start_ps <= open->back().mapped.start_ps) {
      const int64_t duration_ps = here.end_ps - here.start_ps;
      here.start_ps = open->back().mapped.start_ps + kPsPerNs;
      here.end_ps = here.start_ps + duration_ps;
      ++moved;
    }
    open->assign(1, {before[event], here});
  }
  return moved;
}

OriginalTimesStats DefineOriginalTimesStats(PlaneAdditions* plane) {
  OriginalTimesStats stats;
  stats.start = plane->DefineStat("original_start_ps");
  stats.duration = plane->DefineStat("original_duration_ps");
  stats.correction = plane->DefineStat("timestamp_correction_ns");
  return stats;
}

LineAligner::LineAligner(const SessionClock& clock, const NodeClock& node, int64_t new_start_ns,
                         const LineAlignerOptions& options, AlignedEvents* room)
    : clock_(clock),
      node_(node),
      new_start_ns_(new_start_ns),
      options_(options),
      stats_(std::make_unique<AlignmentStats>()),
      events_(*room) {}

LineAligner::~LineAligner() = default;

absl::StatusOr<int64_t> MapHostTime(const NodeClock& node, int64_t unix_ns) {
  ASSIGN_OR_RETURN(const int64_t run_ps, node.run.ToRunPs(unix_ns, 0));
  return node.run.ToUnixNs(LineClock(node, ClockDomain::kHost).Map(run_ps));
}

absl::StatusOr<int64_t> MapLineBase(const SessionClock& clock, const NodeClock& node,
                                    absl::string_view plane_name, const XLineHeader& line) {
  ASSIGN_OR_RETURN(const int64_t base_ns, clock.LineBaseNs(line));
  ASSIGN_OR_RETURN(const int64_t base_ps, node.run.ToRunPs(base_ns, 0));
  return node.run.ToUnixNs(LineClock(node, ClockDomainOf(plane_name, line.name)).Map(base_ps));
}

absl::Status LineAligner::EditLine(absl::string_view plane_name, const XLineHeader& line,
                                   RewritePass pass, const std::optional<OriginalTimesStats>& stats,
                                   LineEdit* edit) {
  LineClock clock(node_, ClockDomainOf(plane_name, line.name));
  const absl::StatusOr<int64_t> mapped_base_ns = MapLineBase(clock_, node_, plane_name, line);
  if (!mapped_base_ns.ok()) {
    // The line begins at no time of the run, and none of its events does.
    if (pass == RewritePass::kWrite) CountWithoutTime(edit->times.size());
    return absl::OkStatus();
  }
  const int64_t new_base_ns = *mapped_base_ns;
  ASSIGN_OR_RETURN(const int64_t base_ns, clock_.LineBaseNs(line));
  ASSIGN_OR_RETURN(const int64_t base_ps, node_.run.ToRunPs(base_ns, 0));
  if (edit->first_event == 0) open_.clear();
  MapEvents(base_ps, clock, edit->times);
  edit->timestamp_ns = new_base_ns - new_start_ns_;
  if (pass == RewritePass::kWrite) {
    Count(clock, *edit);
    RETURN_IF_ERROR(CheckExtrapolation(plane_name, line, clock));
  }
  if (stats.has_value()) KeepOriginals(line, *stats, edit);
  return WriteTimes(line, new_base_ns, edit);
}

// Fills events_ with the line's events that have a time, and has_time_.
void LineAligner::MapEvents(int64_t base_ps, LineClock& clock,
                            const std::vector<EventTimes>& times) {
  has_time_.assign(times.size(), false);
  events_.before.clear();
  events_.mapped.clear();
  events_.before.reserve(times.size());
  events_.mapped.reserve(times.size());
  remarks_ = {};
  for (size_t i = 0; i < times.size(); ++i) {
    const EventTimes& event = times[i];
    if (event.is_aggregated) continue;
    int64_t start_ps = 0, end_ps = 0;
    has_time_[i] = event.duration_ps >= 0 &&
                   !__builtin_add_overflow(base_ps, event.offset_ps, &start_ps) &&
                   !__builtin_add_overflow(start_ps, event.duration_ps, &end_ps);
    remarks_.without_time += !has_time_[i];
    if (!has_time_[i]) continue;
    const int64_t snapshots = clock.snapshot_extrapolations();
    const int64_t offsets = clock.offset_extrapolations();
    const int64_t repaired = clock.repaired_times();
    events_.before.push_back(Timespan(start_ps, event.duration_ps));
    events_.mapped.push_back({clock.Map(start_ps), clock.Map(end_ps)});
    remarks_.snapshots += clock.snapshot_extrapolations() > snapshots;
    remarks_.offsets += clock.offset_extrapolations() > offsets;
    remarks_.clamped += clock.repaired_times() > repaired;
  }
  const auto keep = options_.strict_monotonic ? MakeStrictlyIncreasing : KeepOrderAndNesting;
  remarks_.clamped += keep(events_.before, absl::MakeSpan(events_.mapped), &open_);
}

void LineAligner::CountWithoutTime(int64_t events) {
  stats_->set_events_without_time(stats_->events_without_time() + events);
}

void LineAligner::Count(const LineClock& clock, const LineEdit& edit) {
  stats_->set_lines(stats_->lines() + (edit.first_event == 0 ? 1 : 0));
  stats_->set_events(stats_->events() + static_cast<int64_t>(edit.times.size()));
  stats_->set_snapshot_extrapolations(stats_->snapshot_extrapolations() + remarks_.snapshots);
  stats_->set_offset_extrapolations(stats_->offset_extrapolations() + remarks_.offsets);
  stats_->set_events_clamped_monotonic(stats_->events_clamped_monotonic() + remarks_.clamped);
  CountWithoutTime(remarks_.without_time);
  if (clock.farthest_extrapolation_ps() > 0) {
    stats_->set_farthest_extrapolation_ns(std::max(stats_->farthest_extrapolation_ns(),
                                                   clock.farthest_extrapolation_ps() / kPsPerNs));
  }
  if (events_.before.empty()) return;
  int64_t corrected = 0;
  int64_t least_ps = std::numeric_limits<int64_t>::max();
  int64_t most_ps = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < events_.before.size(); ++i) {
    const int64_t correction_ps =
        Difference(events_.mapped[i].start_ps, events_.before[i].begin_ps());
    corrected +=
        correction_ps != 0 || events_.mapped[i].end_ps != events_.before[i].end_ps() ? 1 : 0;
    least_ps = std::min(least_ps, correction_ps);
    most_ps = std::max(most_ps, correction_ps);
  }
  stats_->set_events_corrected(stats_->events_corrected() + corrected);
  const int64_t least_ns = FloorToNs(least_ps), most_ns = FloorToNs(most_ps);
  stats_->set_min_correction_ns(any_event_ ? std::min(stats_->min_correction_ns(), least_ns)
                                           : least_ns);
  stats_->set_max_correction_ns(any_event_ ? std::max(stats_->max_correction_ns(), most_ns)
                                           : most_ns);
  any_event_ = true;
}

absl::Status LineAligner::CheckExtrapolation(absl::string_view plane_name, const XLineHeader& line,
                                             const LineClock& clock) const {
  const int64_t farthest_ns = clock.farthest_extrapolation_ps() / kPsPerNs;
  if (farthest_ns <= options_.max_extrapolation_ns) return absl::OkStatus();
  return InvalidArgument("node ", options_.node_id, ": plane '", plane_name, "', line '", line.name,
                         "' has events ", farthest_ns / 1000000,
                         " ms outside the snapshot pairs or offsets; give samples that cover the "
                         "trace, or a larger --max_extrapolation_ms (now ",
                         options_.max_extrapolation_ns / 1000000, ")");
}

// Original starts are in ps from the session's start.
void LineAligner::KeepOriginals(const XLineHeader& line, const OriginalTimesStats& ids,
                                LineEdit* edit) const {
  const int64_t base_ps = line.timestamp_ns * kPsPerNs;
  // The times as they are now, before WriteTimes.
  std::vector<EventTimes> originals = edit->times;
  // How far each event's start was moved; 0 for events without a time.
  std::vector<int64_t> corrections_ns(originals.size(), 0);
  size_t next = 0;
  for (size_t i = 0; i < originals.size(); ++i) {
    if (!has_time_[i]) continue;
    corrections_ns[i] =
        FloorToNs(Difference(events_.mapped[next].start_ps, events_.before[next].begin_ps()));
    ++next;
  }
  edit->event_additions = [=, has_time = has_time_](size_t event, std::string* fields) {
    if (!has_time[event]) return;
    XEventProto additions;
    const auto add = [&](int64_t id, int64_t value) {
      XStatProto* stat = additions.add_stats();
      stat->set_metadata_id(id);
      stat->set_int64_value(value);
    };
    add(ids.start, base_ps + originals[event].offset_ps);
    add(ids.duration, originals[event].duration_ps);
    add(ids.correction, corrections_ns[event]);
    additions.AppendToString(fields);
  };
}

absl::Status LineAligner::WriteTimes(const XLineHeader& line, int64_t new_base_ns,
                                     LineEdit* edit) const {
  ASSIGN_OR_RETURN(const int64_t new_base_ps, node_.run.ToRunPs(new_base_ns, 0));
  size_t next = 0;
  for (size_t i = 0; i < edit->times.size(); ++i) {
    EventTimes& event = edit->times[i];
    if (!has_time_[i]) continue;
    const MappedEvent& mapped = events_.mapped[next++];
    if (__builtin_sub_overflow(mapped.start_ps, new_base_ps, &event.offset_ps)) {
      return InvalidArgument("line '", line.name, "' spans more time than a line can hold");
    }
    event.duration_ps = Difference(mapped.end_ps, mapped.start_ps);
  }
  return absl::OkStatus();
}

}  // namespace meridian
