#include "xla_profiler/dependencies/device_dependencies.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"

namespace meridian {
namespace {

// Waits for a device look at all its streams. What all of them together may look at, besides so
// many streams for each event.
constexpr size_t kMaxStreamLookups = 1'000'000;
constexpr size_t kMaxStreamLookupsPerEvent = 32;

// The work of one stream, in the order in which it was enqueued.
class Stream {
 public:
  struct Work {
    EventRow row = 0;
    int64_t enqueued_ps = 0;
  };

  Stream(const EventTable& table, std::optional<int64_t> device_id, absl::string_view number,
         std::vector<Work> work)
      : device_id_(device_id), work_(std::move(work)) {
    int64_t parsed = 0;
    if (absl::SimpleAtoi(number, &parsed)) number_ = parsed;
    std::stable_sort(work_.begin(), work_.end(),
                     [](const Work& a, const Work& b) { return a.enqueued_ps < b.enqueued_ps; });
    last_ended_.reserve(work_.size());
    for (const Work& item : work_) {
      const bool is_last =
          last_ended_.empty() || table.end_ps(item.row) >= table.end_ps(last_ended_.back());
      last_ended_.push_back(is_last ? item.row : last_ended_.back());
    }
  }

  std::optional<int64_t> device_id() const { return device_id_; }
  std::optional<int64_t> number() const { return number_; }

  // Returns the last to end of the work enqueued by then.
  std::optional<EventRow> LastWork(int64_t time_ps) const {
    const size_t count = CountEnqueuedBy(time_ps);
    return count == 0 ? std::nullopt : std::optional<EventRow>(last_ended_[count - 1]);
  }

  // Returns the first work enqueued after that.
  std::optional<EventRow> NextWork(int64_t time_ps) const {
    const size_t count = CountEnqueuedBy(time_ps);
    return count == work_.size() ? std::nullopt : std::optional<EventRow>(work_[count].row);
  }

 private:
  size_t CountEnqueuedBy(int64_t time_ps) const {
    const auto after = std::upper_bound(
        work_.begin(), work_.end(), time_ps,
        [](int64_t time_ps, const Work& work) { return time_ps < work.enqueued_ps; });
    return after - work_.begin();
  }

  std::optional<int64_t> device_id_;
  std::optional<int64_t> number_;
  std::vector<Work> work_;
  // last_ended_[i] is the last to end of work_[0] to work_[i].
  std::vector<EventRow> last_ended_;
};

class Finder {
 public:
  explicit Finder(const EventTable& table)
      : table_(table),
        calls_(table),
        lookups_left_(kMaxStreamLookups + kMaxStreamLookupsPerEvent * table.size()) {}

  DeviceDependencies Find(absl::Span<const SyncCall> sync_calls) {
    AddStreams();
    FindOnlyDevice();
    for (const SyncCall& sync : sync_calls) AddSync(sync);
    SortDependencies(&result_.edges);
    return std::move(result_);
  }

 private:
  void AddStreams() {
    const TrackIndex index(table_);
    std::vector<EventRow> work;
    for (TrackId id = 0; id < table_.tracks().size(); ++id) {
      const Track& track = table_.track(id);
      if (track.kind != TrackKind::kDevice) continue;
      work.clear();
      absl::c_copy_if(index.Rows(id), std::back_inserter(work),
                      [&](EventRow row) { return IsDeviceWork(table_.category(row)); });
      if (work.empty()) continue;
      result_.num_work += work.size();
      AddStreamOrder(work);
      streams_.emplace_back(table_, track.device_id, track.thread, AddLaunches(work));
      const Stream& stream = streams_.back();
      streams_of_device_[stream.device_id()].push_back(streams_.size() - 1);
      if (stream.number().has_value()) {
        stream_by_number_.try_emplace({stream.device_id(), *stream.number()}, streams_.size() - 1);
      }
    }
  }

  bool HasEnded(EventRow work, EventRow next) const {
    return table_.end_ps(work) <= table_.start_ps(next) ||
           StartsEarly({table_.start_ps(work), table_.end_ps(work)},
                       {table_.start_ps(next), table_.end_ps(next)});
  }

  // Takes a stream's work in order of the starts.
  void AddStreamOrder(const std::vector<EventRow>& work) {
    // Started and not known to have ended, the first to end on top.
    using Ending = std::pair<int64_t, EventRow>;
    std::priority_queue<Ending, std::vector<Ending>, std::greater<Ending>> running;
    std::optional<EventRow> last_ended;
    for (EventRow row : work) {
      if (running.empty() || !HasEnded(running.top().second, row)) {
        if (last_ended.has_value())
          AddEdge(*last_ended, row, DeviceDependencyKind::kStreamOrder, true);
      }
      while (!running.empty() && HasEnded(running.top().second, row)) {
        last_ended = running.top().second;
        running.pop();
        AddEdge(*last_ended, row, DeviceDependencyKind::kStreamOrder, true);
      }
      running.emplace(table_.end_ps(row), row);
    }
  }

  std::vector<Stream::Work> AddLaunches(const std::vector<EventRow>& work) {
    std::vector<Stream::Work> enqueued;
    enqueued.reserve(work.size());
    int64_t enqueued_ps = std::numeric_limits<int64_t>::min();
    for (EventRow row : work) {
      const std::optional<EventRow> call = calls_.Find(table_.correlation(row));
      if (call.has_value()) {
        if (enqueued_ps == std::numeric_limits<int64_t>::min()) MarkEarlier(enqueued);
        AddLaunch(*call, row);
        enqueued_ps = table_.start_ps(*call);
      }
      enqueued.push_back({row, enqueued_ps});
    }
    return enqueued;
  }

  // Takes the work of a stream before the first that has a call.
  void MarkEarlier(const std::vector<Stream::Work>& work) {
    if (work.empty()) return;
    result_.is_earlier.resize(table_.size());
    for (const Stream::Work& item : work) result_.is_earlier[item.row] = true;
  }

  void AddLaunch(EventRow call, EventRow work) {
    const bool runs_forward = table_.start_ps(call) <= table_.start_ps(work);
    AddEdge(call, work, DeviceDependencyKind::kLaunch, runs_forward);
    if (table_.category(work) == EventCategory::kMemcpy &&
        IsBlockingCopy(table_.name(call), table_.name(work))) {
      AddHostWait(work, call, DeviceDependencyKind::kBlockingCopy);
    }
  }

  void FindOnlyDevice() {
    if (streams_of_device_.size() == 1) only_device_id_ = streams_of_device_.begin()->first;
  }

  void AddSync(const SyncCall& sync) {
    if (!sync.call.has_value()) return;
    if (sync.kind == DeviceDependencyKind::kDeviceSync) {
      AddDeviceSync(sync);
    } else if (const std::optional<EventRow> from = AwaitedWork(sync); !from.has_value()) {
      return;
    } else if (sync.kind != DeviceDependencyKind::kEventWait) {
      AddHostWait(*from, *sync.call, sync.kind);
    } else if (const std::optional<EventRow> to =
                   FindWork(sync, sync.stream, table_.start_ps(*sync.call), &Stream::NextWork)) {
      AddEdge(*from, *to, sync.kind, table_.end_ps(*from) <= table_.start_ps(*to));
    }
  }

  void AddDeviceSync(const SyncCall& sync) {
    const std::optional<int64_t> device_id = DeviceOf(sync);
    if (!device_id.has_value()) return;
    const int64_t time_ps = table_.start_ps(*sync.call);
    const std::vector<size_t>& streams = streams_of_device_[device_id];
    if (streams.size() > lookups_left_) return;
    lookups_left_ -= streams.size();
    for (const size_t stream : streams) {
      const std::optional<EventRow> work = streams_[stream].LastWork(time_ps);
      if (!work.has_value()) continue;
      // What the thread has waited for once, it need not again.
      const auto [awaited, is_new] = awaited_.try_emplace(
          std::make_pair(table_.track_id(*sync.call), table_.track_id(*work)), *work);
      if (!is_new && awaited->second == *work) continue;
      awaited->second = *work;
      AddHostWait(*work, *sync.call, sync.kind);
    }
  }

  // Returns the last work of the stream before the call or, of events, before their record.
  std::optional<EventRow> AwaitedWork(const SyncCall& sync) const {
    if (sync.kind == DeviceDependencyKind::kStreamSync) {
      return FindWork(sync, sync.stream, table_.start_ps(*sync.call), &Stream::LastWork);
    }
    if (!sync.record.has_value()) return std::nullopt;
    return FindWork(sync, sync.record_stream, table_.start_ps(*sync.record), &Stream::LastWork);
  }

  // Returns the stream's work at that time.
  std::optional<EventRow> FindWork(const SyncCall& sync, std::optional<int64_t> number,
                                   int64_t time_ps,
                                   std::optional<EventRow> (Stream::*find)(int64_t) const) const {
    const std::optional<int64_t> device_id = DeviceOf(sync);
    if (!device_id.has_value() || !number.has_value()) return std::nullopt;
    const auto stream = stream_by_number_.find({device_id, *number});
    return stream == stream_by_number_.end() ? std::nullopt
                                             : (streams_[stream->second].*find)(time_ps);
  }

  std::optional<int64_t> DeviceOf(const SyncCall& sync) const {
    return sync.device_id.has_value() ? sync.device_id : only_device_id_;
  }

  // Adds the edge from the end of `from` to the end of a host's call.
  void AddHostWait(EventRow from, EventRow call, DeviceDependencyKind kind) {
    AddEdge(from, call, kind, table_.end_ps(from) <= table_.end_ps(call));
  }

  void AddEdge(EventRow from, EventRow to, DeviceDependencyKind kind, bool runs_forward) {
    if (runs_forward) result_.edges.push_back({from, to, kind});
  }

  const EventTable& table_;
  const CallIndex calls_;
  std::vector<Stream> streams_;
  // Positions in streams_, by device; and of the first of a number, by device and number.
  std::map<std::optional<int64_t>, std::vector<size_t>> streams_of_device_;
  absl::flat_hash_map<std::pair<std::optional<int64_t>, int64_t>, size_t> stream_by_number_;
  size_t lookups_left_;
  // The device of all streams, when there is but one.
  std::optional<int64_t> only_device_id_;
  DeviceDependencies result_;
  // By thread and stream: the work that the thread last synchronised with, of those with the
  // device.
  absl::flat_hash_map<std::pair<TrackId, TrackId>, EventRow> awaited_;
};

}  // namespace

void SortDependencies(std::vector<DeviceDependency>* edges) {
  absl::c_sort(*edges, [](const DeviceDependency& a, const DeviceDependency& b) {
    return std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind);
  });
  edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
}

DeviceDependencies FindDeviceDependencies(const EventTable& table,
                                          absl::Span<const SyncCall> sync_calls) {
  return Finder(table).Find(sync_calls);
}

}  // namespace meridian
