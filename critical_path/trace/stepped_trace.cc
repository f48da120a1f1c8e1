#include "critical_path/trace/stepped_trace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/dependencies/thread_turns.h"
#include "xla_profiler/kineto/kineto_steps.h"

namespace meridian {
namespace {

constexpr uint32_t kNotKept = std::numeric_limits<uint32_t>::max();

// Steps are looked at together with no more than so many others whose hosts or devices they overlap
// with: otherwise it could be all.
constexpr size_t kMostOverlapping = 16;

}  // namespace

absl::StatusOr<SteppedTrace> SteppedTrace::Create(const RankEvents& events,
                                                  const TraceWindow& window,
                                                  const TraceGraphOptions& options,
                                                  FileSystem& file_system,
                                                  const std::string& folder) {
  const EventTable& table = *events.table;
  const DeviceDependencies& dependencies = *events.dependencies;
  ASSIGN_OR_RETURN(const WindowRows chosen,
                   ChooseWindowRows(table, dependencies, window, FindDataLoaders(table, options)));
  SteppedTrace trace;
  trace.base_ns_ = table.base_ns();
  trace.tracks_ = table.tracks();
  trace.names_ = StringPool(table.names());
  trace.window_ = window;
  trace.home_ = FindHomeThread(table, FindWorkers(table, dependencies));
  const KinetoSteps steps(table);
  for (const KinetoSteps::Step& step : steps.steps()) {
    trace.steps_.push_back(step.number);
    trace.starts_ps_.push_back(step.start_ps);
  }
  std::vector<uint32_t> stretch_of_row(table.size(), kNotKept);
  for (EventRow row : chosen.rows) {
    stretch_of_row[row] = dependencies.IsEarlier(row) ? 0 : trace.StretchAt(table.start_ps(row));
  }
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kStep) continue;
    stretch_of_row[row] = trace.StretchAt(table.start_ps(row));
  }
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind != DeviceDependencyKind::kLaunch || stretch_of_row[edge.to] == kNotKept) continue;
    stretch_of_row[edge.to] = trace.StretchAt(table.start_ps(edge.from));
  }
  trace.KeepRows(events, stretch_of_row);
  trace.KeepDependencies(dependencies.edges, stretch_of_row);
  trace.rows_.Store(file_system, folder);
  trace.dependencies_.Store(file_system, folder);
  return trace;
}

uint32_t SteppedTrace::StretchAt(int64_t time_ps) const {
  const auto after = absl::c_upper_bound(starts_ps_, time_ps);
  return after == starts_ps_.begin() ? 0 : static_cast<uint32_t>(after - starts_ps_.begin() - 1);
}

void SteppedTrace::KeepRows(const RankEvents& events, absl::Span<const uint32_t> stretch_of_row) {
  const EventTable& table = *events.table;
  const size_t stretches = std::max<size_t>(1, steps_.size());
  const Buckets<EventRow> by_stretch(stretches, [&](const auto& visit) {
    for (EventRow row = 0; row < table.size(); ++row) {
      if (stretch_of_row[row] != kNotKept) visit(stretch_of_row[row], row);
    }
  });
  std::vector<KeptRow>& rows = rows_.elements();
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    row_begins_.push_back(rows.size());
    ends_ps_.push_back(std::numeric_limits<int64_t>::min());
    for (EventRow row : by_stretch.Of(stretch)) {
      rows.push_back({table.start_ps(row), table.duration_ps(row), row, events.positions[row],
                      table.track_id(row), table.name_id(row), table.category(row),
                      events.dependencies->IsEarlier(row)});
      if (!IsDeviceWork(table.category(row))) continue;
      ends_ps_.back() = std::max(ends_ps_.back(), table.end_ps(row));
    }
  }
  row_begins_.push_back(rows.size());
  carried_ = Buckets<uint32_t>(stretches, [&](const auto& visit) {
    for (size_t stretch = 0; stretch < stretches; ++stretch) {
      const size_t end = std::min(stretches, stretch + 1 + kMostOverlapping);
      for (size_t place = row_begins_[stretch]; place < row_begins_[stretch + 1]; ++place) {
        const int64_t end_ps = rows[place].start_ps + rows[place].duration_ps;
        for (size_t later = stretch + 1; later < end && starts_ps_[later] < end_ps; ++later) {
          visit(later, static_cast<uint32_t>(place));
        }
      }
    }
  });
}

void SteppedTrace::KeepDependencies(const std::vector<DeviceDependency>& edges,
                                    absl::Span<const uint32_t> stretch_of_row) {
  const size_t stretches = this->stretches();
  const Buckets<DeviceDependency> by_stretch(stretches, [&](const auto& visit) {
    for (const DeviceDependency& edge : edges) {
      const uint32_t stretch = stretch_of_row[edge.to];
      if (stretch != kNotKept && stretch_of_row[edge.from] != kNotKept) visit(stretch, edge);
    }
  });
  std::vector<DeviceDependency>& kept = dependencies_.elements();
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    dependency_begins_.push_back(kept.size());
    const absl::Span<const DeviceDependency> of_stretch = by_stretch.Of(stretch);
    kept.insert(kept.end(), of_stretch.begin(), of_stretch.end());
  }
  dependency_begins_.push_back(kept.size());
}

size_t SteppedTrace::LastBegunDuring(size_t stretch) const {
  const size_t last = StretchAt(ends_ps_[stretch]);
  return std::clamp(last, stretch, stretch + kMostOverlapping);
}

absl::StatusOr<PathGraph> SteppedTrace::BuildGraph(size_t first, size_t last,
                                                   const TraceGraphOptions& options) const {
  const absl::Span<const KeptRow> all = rows_.view();
  std::vector<KeptRow> rows(all.begin() + row_begins_[first], all.begin() + row_begins_[last + 1]);
  for (uint32_t place : carried_.Of(first)) {
    rows.push_back(all[place]);
    rows.back().is_earlier |= IsDeviceWork(rows.back().category);
  }
  rows_.Forget();
  absl::c_sort(rows, [](const KeptRow& a, const KeptRow& b) { return a.row < b.row; });
  EventTable table;
  table.set_base_ns(base_ns_);
  for (const Track& track : tracks_) table.AddTrack(track);
  std::vector<uint32_t> positions;
  DeviceDependencies dependencies;
  for (const KeptRow& row : rows) {
    EventRecord record;
    record.track = row.track;
    record.name = table.InternName(names_.Get(row.name));
    record.start_ps = row.start_ps;
    record.duration_ps = row.duration_ps;
    record.category = row.category;
    table.Add(record);
    positions.push_back(row.position);
    dependencies.is_earlier.push_back(row.is_earlier);
  }
  // Returns where a row of the whole table is now, or the end.
  const auto find = [&](EventRow whole) {
    const auto row = absl::c_lower_bound(
        rows, whole, [](const KeptRow& row, EventRow whole) { return row.row < whole; });
    const bool is_there = row != rows.end() && row->row == whole;
    return static_cast<EventRow>((is_there ? row : rows.end()) - rows.begin());
  };
  const absl::Span<const DeviceDependency> edges = dependencies_.view();
  for (size_t i = dependency_begins_[first]; i < dependency_begins_[last + 1]; ++i) {
    const DeviceDependency edge = {find(edges[i].from), find(edges[i].to), edges[i].kind};
    if (edge.from < rows.size() && edge.to < rows.size()) dependencies.edges.push_back(edge);
  }
  dependencies_.Forget();
  SortDependencies(&dependencies.edges);
  TraceWindow window = window_;
  window.thread = home_;
  if (first > 0) window.start_ps = starts_ps_[first];
  if (last + 1 < stretches()) {
    window.end_ps = starts_ps_[last + 1];
    if (home_.has_value()) window.end_track = *home_;
  }
  RankEvents events;
  events.table = &table;
  events.positions = positions;
  events.dependencies = &dependencies;
  return BuildTraceGraph(events, window, options);
}

}  // namespace meridian
