#include "xla_profiler/dependencies/inferred_waits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace meridian {
namespace {

// How many launches, or ends of work, are looked at to find one of the right stream.
constexpr int kMaxCandidates = 64;

class Inference {
 public:
  Inference(const EventTable& table, const DeviceDependencies& known) : table_(table) {
    for (EventRow row = 0; row < table.size(); ++row) {
      if (IsDeviceWork(table.category(row))) work_.push_back(row);
    }
    absl::c_sort(work_, [&](EventRow a, EventRow b) {
      return std::make_tuple(table.end_ps(a), a) < std::make_tuple(table.end_ps(b), b);
    });
    for (const DeviceDependency& edge : known.edges) {
      if (edge.kind == DeviceDependencyKind::kLaunch) {
        launches_.push_back({table.track_id(edge.from), table.start_ps(edge.from), edge.to});
      } else if (edge.kind == DeviceDependencyKind::kStreamOrder) {
        int64_t& free_ps = stream_free_ps_.try_emplace(edge.to, kNever).first->second;
        free_ps = std::max(free_ps, table.end_ps(edge.from));
      }
    }
    // Of a CUDA graph the work that starts first counts.
    absl::c_sort(launches_, [&](const Launch& a, const Launch& b) {
      return std::make_tuple(a.thread, a.call_ps, table.start_ps(a.work)) <
             std::make_tuple(b.thread, b.call_ps, table.start_ps(b.work));
    });
  }

  // Returns what the first work launched after the call waited for.
  std::optional<DeviceDependency> StreamWait(const SyncCall& sync) const {
    const Launch* launch = NextLaunch(sync);
    if (launch == nullptr) return std::nullopt;
    int64_t ready_ps = launch->call_ps;
    const auto free_ps = stream_free_ps_.find(launch->work);
    if (free_ps != stream_free_ps_.end()) ready_ps = std::max(ready_ps, free_ps->second);
    const std::optional<EventRow> awaited =
        LastToEnd(ready_ps, table_.start_ps(launch->work), launch->work);
    if (!awaited.has_value()) return std::nullopt;
    return DeviceDependency{*awaited, launch->work, DeviceDependencyKind::kEventWait};
  }

  // Returns what the call itself waited for.
  std::optional<DeviceDependency> HostWait(const SyncCall& sync) const {
    const std::optional<EventRow> awaited =
        LastToEnd(table_.start_ps(*sync.call), table_.end_ps(*sync.call), std::nullopt);
    if (!awaited.has_value()) return std::nullopt;
    return DeviceDependency{*awaited, *sync.call, sync.kind};
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

  struct Launch {
    TrackId thread;
    int64_t call_ps;
    EventRow work;
  };

  // Returns the thread's next launch, to the stream that waits if that is known.
  const Launch* NextLaunch(const SyncCall& sync) const {
    const auto key = std::make_tuple(table_.track_id(*sync.call), table_.start_ps(*sync.call));
    auto it = absl::c_lower_bound(launches_, key, [](const Launch& launch, const auto& key) {
      return std::make_tuple(launch.thread, launch.call_ps) < key;
    });
    for (int i = 0; i < kMaxCandidates && it != launches_.end(); ++i, ++it) {
      if (it->thread != std::get<0>(key)) return nullptr;
      if (IsOnStream(it->work, sync.stream)) return &*it;
    }
    return nullptr;
  }

  bool IsOnStream(EventRow work, std::optional<int64_t> stream) const {
    int64_t number = 0;
    return !stream.has_value() ||
           (absl::SimpleAtoi(table_.track(table_.track_id(work)).thread, &number) &&
            number == *stream);
  }

  // Returns the last work that ended after `after_ps` and not after `by_ps`; with `waiting`, of the
  // other streams of that work's device.
  std::optional<EventRow> LastToEnd(int64_t after_ps, int64_t by_ps,
                                    std::optional<EventRow> waiting) const {
    auto it = absl::c_upper_bound(
        work_, by_ps, [&](int64_t time_ps, EventRow row) { return time_ps < table_.end_ps(row); });
    for (int i = 0; i < kMaxCandidates && it != work_.begin(); ++i) {
      --it;
      if (table_.end_ps(*it) <= after_ps) return std::nullopt;
      if (!waiting.has_value() || IsBeside(*it, *waiting)) return *it;
    }
    return std::nullopt;
  }

  bool IsBeside(EventRow work, EventRow other) const {
    const TrackId track = table_.track_id(work), other_track = table_.track_id(other);
    return track != other_track &&
           table_.track(track).device_id == table_.track(other_track).device_id;
  }

  const EventTable& table_;
  // Device work in order of the ends.
  std::vector<EventRow> work_;
  // In order of the calls' threads, then of their starts.
  std::vector<Launch> launches_;
  // By device work: when the work before it on its stream had ended. Absent for a stream's first.
  absl::flat_hash_map<EventRow, int64_t> stream_free_ps_;
};

// Returns the rows of calls and device work that are known to have waited.
absl::flat_hash_set<EventRow> FindExplained(const DeviceDependencies& known) {
  absl::flat_hash_set<EventRow> rows;
  for (const DeviceDependency& edge : known.edges) {
    if (edge.kind != DeviceDependencyKind::kLaunch &&
        edge.kind != DeviceDependencyKind::kStreamOrder) {
      rows.insert(edge.to);
    }
  }
  return rows;
}

// True when the trace says what a call waits for, and for queries, which do not wait.
bool IsTold(const EventTable& table, const SyncCall& sync) {
  switch (sync.kind) {
    case DeviceDependencyKind::kStreamSync:
      return sync.stream.has_value();
    case DeviceDependencyKind::kDeviceSync:
      return sync.device_id.has_value();
    case DeviceDependencyKind::kEventSync:
      return sync.record.has_value() || absl::StrContains(table.name(*sync.call), "Query");
    default:
      return sync.record.has_value();
  }
}

// Adds the waits of work that starts long after everything known or inferred so far.
void InferWorkWaits(const EventTable& table, const DeviceDependencies& known,
                    std::vector<DeviceDependency>* inferred) {
  // The table's rows and spans of work by device. Work whose launch is not in the trace is not
  // asked what it waited for, unless it was launched before the trace began.
  std::map<int64_t, std::pair<std::vector<EventRow>, std::vector<DeviceSpan>>> devices;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> ready_ps(table.size(), kNever);
  std::vector<bool> is_launched(table.size());
  const auto add_ready = [&](const DeviceDependency& edge) {
    is_launched[edge.to] = is_launched[edge.to] || edge.kind == DeviceDependencyKind::kLaunch;
    ready_ps[edge.to] = std::max(ready_ps[edge.to], table.end_ps(edge.from));
  };
  for (const DeviceDependency& edge : known.edges) add_ready(edge);
  for (const DeviceDependency& edge : *inferred) add_ready(edge);
  for (EventRow row = 0; row < table.size(); ++row) {
    if (!IsDeviceWork(table.category(row))) continue;
    const TrackId track = table.track_id(row);
    auto& [rows, spans] = devices[table.track(track).device_id.value_or(0)];
    rows.push_back(row);
    spans.push_back({static_cast<int64_t>(track), table.start_ps(row), table.end_ps(row),
                     is_launched[row] || (known.IsEarlier(row) && ready_ps[row] != kNever)
                         ? ready_ps[row]
                         : table.start_ps(row)});
  }
  for (const auto& [device, work] : devices) {
    const std::vector<size_t> awaited = InferDeviceWaits(work.second);
    for (size_t i = 0; i < awaited.size(); ++i) {
      if (awaited[i] == kNoSpan) continue;
      inferred->push_back(
          {work.first[awaited[i]], work.first[i], DeviceDependencyKind::kInferredWait});
    }
  }
}

}  // namespace

std::vector<size_t> InferDeviceWaits(absl::Span<const DeviceSpan> spans) {
  std::vector<size_t> awaited(spans.size(), kNoSpan);
  std::vector<size_t> by_end(spans.size());
  absl::c_iota(by_end, 0);
  absl::c_sort(by_end, [&](size_t a, size_t b) {
    return std::tie(spans[a].end_ps, a) < std::tie(spans[b].end_ps, b);
  });
  for (size_t i = 0; i < spans.size(); ++i) {
    const DeviceSpan& waiting = spans[i];
    int64_t earliest_ps = 0;
    if (__builtin_sub_overflow(waiting.start_ps, kMaxStartDelayPs, &earliest_ps) ||
        waiting.ready_ps >= earliest_ps) {
      continue;
    }
    auto it = absl::c_upper_bound(by_end, waiting.start_ps, [&](int64_t time_ps, size_t other) {
      return time_ps < spans[other].end_ps;
    });
    for (int tries = 0; tries < kMaxCandidates && it != by_end.begin(); ++tries) {
      const DeviceSpan& ended = spans[*--it];
      if (ended.end_ps < earliest_ps) break;
      if (ended.stream == waiting.stream || ended.start_ps >= waiting.start_ps) continue;
      awaited[i] = *it;
      break;
    }
  }
  return awaited;
}

void AddInferredWaits(const EventTable& table, absl::Span<const SyncCall> sync_calls,
                      DeviceDependencies* dependencies) {
  const Inference inference(table, *dependencies);
  const absl::flat_hash_set<EventRow> explained = FindExplained(*dependencies);
  std::vector<DeviceDependency> inferred;
  for (const SyncCall& sync : sync_calls) {
    if (!sync.call.has_value() || IsTold(table, sync)) continue;
    const std::optional<DeviceDependency> edge = sync.kind == DeviceDependencyKind::kEventWait
                                                     ? inference.StreamWait(sync)
                                                     : inference.HostWait(sync);
    if (edge.has_value() && !explained.contains(edge->to)) inferred.push_back(*edge);
  }
  InferWorkWaits(table, *dependencies, &inferred);
  if (inferred.empty()) return;
  std::vector<DeviceDependency>& edges = dependencies->edges;
  const size_t known = edges.size();
  edges.insert(edges.end(), inferred.begin(), inferred.end());
  SortDependencies(&edges);
  dependencies->inferred = edges.size() - known;
}

}  // namespace meridian
