#include "xla_profiler/dependencies/thread_turns.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/sorted.h"

namespace meridian {
namespace {

// How many stretches of other threads are looked at to find who continued a thread. Each thread has
// at most one stretch in the way, that which began before the gap.
constexpr int kMaxStretches = 64;

}  // namespace

std::vector<bool> FindWorkers(const EventTable& table, const DeviceDependencies& dependencies) {
  std::vector<bool> is_worker(table.tracks().size());
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) == EventCategory::kCpuOp) is_worker[table.track_id(row)] = true;
  }
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind == DeviceDependencyKind::kLaunch) is_worker[table.track_id(edge.from)] = true;
  }
  return is_worker;
}

std::optional<TrackId> FindHomeThread(const EventTable& table, const std::vector<bool>& is_worker) {
  // Nested operators count more than once, but for all threads alike.
  std::vector<double> busy_ps(table.tracks().size());
  for (EventRow row = 0; row < table.size(); ++row) {
    if (!IsHostWork(table.category(row))) continue;
    busy_ps[table.track_id(row)] += static_cast<double>(table.duration_ps(row));
  }
  std::optional<TrackId> home;
  for (TrackId track = 0; track < busy_ps.size(); ++track) {
    if (!is_worker[track] || table.track(track).kind != TrackKind::kHost) continue;
    if (!home.has_value() || busy_ps[track] > busy_ps[*home]) home = track;
  }
  return home;
}

ThreadTurns::ThreadTurns(const EventTable& table, const TrackIndex& index,
                         const std::vector<bool>& is_worker, std::optional<TrackId> home)
    : table_(table), is_worker_(is_worker) {
  std::map<absl::string_view, uint32_t> numbers;
  for (const Track& track : table.tracks()) {
    const auto next = static_cast<uint32_t>(numbers.size());
    processes_.push_back(numbers.emplace(track.process, next).first->second);
  }
  home_ = home.has_value() && is_worker[*home] ? home : FindHomeThread(table, is_worker);
  for (TrackId track = 0; track < table.tracks().size(); ++track) {
    if (!is_worker[track] || table.track(track).kind != TrackKind::kHost) continue;
    AddStretches(track, index.Rows(track));
  }
  if (home_.has_value()) AddHomeMoments(index.Rows(*home_));
  StableSortUnlessSorted(&stretches_, [](const Stretch& a, const Stretch& b) {
    return std::tie(a.process, a.end_ps) < std::tie(b.process, b.end_ps);
  });
}

void ThreadTurns::AddStretches(TrackId track, absl::Span<const EventRow> rows) {
  std::optional<Stretch> stretch;
  for (const EventRow row : rows) {
    if (!IsHostWork(table_.category(row))) continue;
    const int64_t start_ps = table_.start_ps(row), end_ps = table_.end_ps(row);
    if (!stretch.has_value() || start_ps >= stretch->end_ps) {
      if (stretch.has_value()) stretches_.push_back(*stretch);
      stretch = Stretch{track, processes_[track], row, start_ps, end_ps};
    } else if (end_ps >= stretch->end_ps) {
      stretch->last = row;
      stretch->end_ps = end_ps;
    }
  }
  if (stretch.has_value()) stretches_.push_back(*stretch);
}

void ThreadTurns::AddHomeMoments(absl::Span<const EventRow> rows) {
  // Ends to come, those of the innermost events last.
  std::vector<EventRow> open;
  for (const EventRow row : rows) {
    if (!IsHostWork(table_.category(row))) continue;
    for (; !open.empty() && table_.end_ps(open.back()) <= table_.start_ps(row); open.pop_back()) {
      home_moments_.push_back({open.back(), /*is_start=*/false});
    }
    home_moments_.push_back({row, /*is_start=*/true});
    open.push_back(row);
  }
  for (; !open.empty(); open.pop_back()) {
    home_moments_.push_back({open.back(), /*is_start=*/false});
  }
  const auto is_earlier = [&](const Moment& a, const Moment& b) { return TimeOf(a) < TimeOf(b); };
  // Events may overlap without nesting.
  if (!std::is_sorted(home_moments_.begin(), home_moments_.end(), is_earlier)) {
    std::stable_sort(home_moments_.begin(), home_moments_.end(), is_earlier);
  }
}

std::optional<ThreadTurns::Moment> ThreadTurns::Find(TrackId track, int64_t begin_ps,
                                                     int64_t end_ps) const {
  const uint32_t process = processes_[track];
  std::optional<Moment> last;
  if (home_.has_value() && *home_ != track && processes_[*home_] == process) {
    const auto after = std::lower_bound(
        home_moments_.begin(), home_moments_.end(), end_ps,
        [&](const Moment& moment, int64_t time_ps) { return TimeOf(moment) < time_ps; });
    if (after != home_moments_.begin() && TimeOf(*std::prev(after)) > begin_ps) {
      last = *std::prev(after);
    }
  }
  // A worker serves the home thread; who only watches, whoever worked last.
  if (last.has_value() && is_worker_[track]) return last;
  auto it = std::lower_bound(
      stretches_.begin(), stretches_.end(), end_ps, [&](const Stretch& stretch, int64_t time_ps) {
        return std::tie(stretch.process, stretch.end_ps) < std::tie(process, time_ps);
      });
  for (int i = 0; i < kMaxStretches && it != stretches_.begin(); ++i) {
    --it;
    if (it->process != process || it->end_ps <= begin_ps) break;
    if (last.has_value() && it->end_ps <= TimeOf(*last)) break;
    if (it->track != track && it->start_ps >= begin_ps) {
      return Moment{it->last, /*is_start=*/false};
    }
  }
  return last;
}

}  // namespace meridian
