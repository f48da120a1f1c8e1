#include "critical_path/hta/hta_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "critical_path/hta/unstable_order.h"
#include "re2/re2.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {

// A longer gap between kernels is taken for a dependency that the trace does not show.
constexpr int64_t kMaxKernelGapPs = int64_t{1500} * 1000000;

// A wait for the device has an edge from each of its streams. What all of them may have, besides so
// many for each event.
constexpr size_t kMaxDeviceWaits = 1'000'000;
constexpr size_t kMaxDeviceWaitsPerEvent = 32;

// What the graph has to know of a name; it is found once for each.
struct NameTraits {
  // The call takes CUDA's lock.
  bool takes_lock = false;
  // The call may wait for the device.
  bool is_blocking = false;
  // The event has instants because its name contains one of the data loaders' names.
  bool has_data_load_instants = false;
  // Time that is booked on the event is data_loading: its name matches one of them as a pattern.
  bool is_data_loading = false;
  bool is_communication = false;
};

bool StartsWithOneOf(absl::string_view name, std::initializer_list<absl::string_view> prefixes) {
  return absl::c_any_of(prefixes,
                        [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

// Cuts off everything from the last `bracket` on; all of it when there is none.
void CutFromBracket(char bracket, std::string* text) {
  const size_t at = text->rfind(bracket);
  text->resize(at == std::string::npos ? 0 : at);
}

bool IsOneOf(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return absl::c_linear_search(names, name);
}

std::vector<NameTraits> FindNameTraits(const StringPool& names,
                                       const std::vector<std::string>& data_load_events) {
  // A pattern that is no regular expression matches nothing.
  std::vector<std::unique_ptr<RE2>> patterns;
  for (const std::string& text : data_load_events) {
    patterns.push_back(std::make_unique<RE2>(text, RE2::Quiet));
  }
  std::vector<NameTraits> all(names.size());
  for (NameId id = 0; id < names.size(); ++id) {
    const absl::string_view name = names.Get(id);
    const std::string short_name = ShortenKernelName(name);
    NameTraits& traits = all[id];
    traits.takes_lock = IsOneOf(name, {"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"});
    traits.is_blocking =
        IsOneOf(name, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery",
                       "cudaEventSynchronize", "cudaMemcpy", "cudaMemcpyAsync"});
    traits.has_data_load_instants = absl::c_any_of(
        data_load_events, [&](const std::string& part) { return absl::StrContains(name, part); });
    traits.is_data_loading = absl::c_any_of(patterns, [&](const std::unique_ptr<RE2>& pattern) {
      return pattern->ok() && RE2::PartialMatch(short_name, *pattern);
    });
    traits.is_communication = IsHtaCommunicationName(short_name);
  }
  return all;
}

// Orders pids and tids as Pandas does: numbers first.
bool TextLess(absl::string_view a, absl::string_view b) {
  int64_t a_number = 0, b_number = 0;
  const bool a_is_number = absl::SimpleAtoi(a, &a_number);
  const bool b_is_number = absl::SimpleAtoi(b, &b_number);
  if (a_is_number != b_is_number) return a_is_number;
  return a_number != b_number ? a_number < b_number : a < b;
}

class Builder {
 public:
  Builder(const HtaFrame& frame, const HtaWindow& window, const HtaLaunches& launches,
          const HtaGraphOptions& options)
      : frame_(frame),
        window_(window),
        launches_(launches),
        options_(options),
        traits_(FindNameTraits(frame.names, options.data_load_events)),
        event_of_row_(frame.rows.size(), kNoEvent),
        start_instants_(window.rows.size(), kNoInstant),
        end_instants_(window.rows.size(), kNoInstant) {}

  absl::StatusOr<PathGraph> Build() {
    if (launches_.empty()) {
      return FailedPrecondition(
          "no kernel was launched by a call that HTA knows, so that it has no result; try without "
          "--hta_compatible");
    }
    graph_.base_ns = frame_.base_ns;
    graph_.window_start_ps = window_.start_ps;
    graph_.window_end_ps = window_.end_ps;
    AddEvents();
    AddInstants();
    AddLockEdges();
    for (std::vector<GraphEventId>& events : GroupByThread()) AddThread(std::move(events));
    RETURN_IF_ERROR(AddDeviceEdges());
    MergeRepeatedEdges();
    RETURN_IF_ERROR(CheckSyncs());
    for (GraphEdge& edge : graph_.edges) edge.bound_by = Classify(edge);
    return std::move(graph_);
  }

 private:
  const HtaRow& Row(GraphEventId event) const { return frame_.rows[window_.rows[event]]; }
  const NameTraits& Traits(GraphEventId event) const { return traits_[Row(event).name]; }
  absl::string_view Name(GraphEventId event) const { return frame_.names.Get(Row(event).name); }
  absl::string_view CategoryText(GraphEventId event) const {
    return frame_.texts.Get(Row(event).category);
  }
  // Returns the event of that id, if it is in the window.
  GraphEventId EventOf(int64_t index) const {
    const HtaRow* row = frame_.Find(index);
    return row == nullptr ? kNoEvent : event_of_row_[row - frame_.rows.data()];
  }
  InstantId EndInstant(GraphEventId event) const {
    return event == kNoEvent ? kNoInstant : end_instants_[event];
  }

  void AddEvents() {
    for (NameId id = 0; id < frame_.names.size(); ++id) graph_.names.Intern(frame_.names.Get(id));
    graph_.events.reserve(window_.rows.size());
    for (GraphEventId id = 0; id < window_.rows.size(); ++id) {
      const HtaRow& row = Row(id);
      event_of_row_[window_.rows[id]] = id;
      const EventCategory category = KinetoCategory(CategoryText(id), Name(id));
      const TrackKind kind =
          IsKinetoDeviceCategory(category) ? TrackKind::kDevice : TrackKind::kHost;
      const auto [lane, is_new] =
          lanes_.try_emplace(std::make_tuple(row.process, row.thread, kind), graph_.lanes.size());
      if (is_new) {
        graph_.lanes.push_back({frame_.rank, kind, std::string(frame_.texts.Get(row.process)),
                                std::string(frame_.texts.Get(row.thread))});
      }
      graph_.events.push_back(
          {row.name, lane->second, row.start_ps, row.duration_ps, category, row.index});
    }
  }

  bool HasInstants(GraphEventId event) const {
    const HtaRow& row = Row(event);
    return IsOneOf(CategoryText(event), {"cpu_op", "cuda_runtime", "cuda_driver"}) ||
           Traits(event).has_data_load_instants || (row.stream != -1 && row.partner >= 0);
  }

  void AddInstants() {
    for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
      if (!HasInstants(id)) continue;
      graph_.instants.push_back({Row(id).start_ps, id, /*is_start=*/true});
      graph_.instants.push_back({Row(id).end_ps(), id, /*is_start=*/false});
    }
    absl::c_sort(graph_.instants, [](const Instant& a, const Instant& b) {
      return std::make_tuple(a.time_ps, a.event, !a.is_start) <
             std::make_tuple(b.time_ps, b.event, !b.is_start);
    });
    for (InstantId id = 0; id < graph_.instants.size(); ++id) {
      const Instant& instant = graph_.instants[id];
      (instant.is_start ? start_instants_ : end_instants_)[instant.event] = id;
    }
  }

  void AddEdge(InstantId from, InstantId to, EdgeType type, GraphEventId event = kNoEvent,
               bool zero_weight = false) {
    const bool has_weight =
        type != EdgeType::kDependency && type != EdgeType::kSyncDependency && !zero_weight;
    const int64_t weight_ps =
        has_weight ? std::max<int64_t>(0, graph_.Time(to) - graph_.Time(from)) : 0;
    graph_.edges.push_back({from, to, weight_ps, event, type, BoundBy::kNothing});
  }

  // Adds edges between calls that hold CUDA's lock one after the other, on all threads.
  void AddLockEdges() {
    // Calls that have started and not seen an end since.
    std::vector<InstantId> started;
    InstantId last = kNoInstant;
    for (InstantId instant = 0; instant < graph_.instants.size(); ++instant) {
      const GraphEventId event = graph_.instants[instant].event;
      if (!Traits(event).takes_lock) continue;
      if (graph_.instants[instant].is_start) {
        started.push_back(instant);
      } else {
        for (; !started.empty(); started.pop_back()) {
          const bool is_own = graph_.instants[started.back()].event == event;
          AddEdge(started.back(), instant, is_own ? EdgeType::kOperator : EdgeType::kDependency,
                  is_own ? event : kNoEvent);
        }
        if (last != kNoInstant && !graph_.instants[last].is_start) {
          AddEdge(last, instant, EdgeType::kDependency);
        }
      }
      last = instant;
    }
  }

  std::vector<std::vector<GraphEventId>> GroupByThread() const {
    // The backward pass has a thread of its own, which runs while the forward thread waits:
    // together they are one.
    const NameId forward = FindOnlyThread("forward"), backward = FindOnlyThread("autograd");
    using Key = std::pair<NameId, NameId>;
    absl::flat_hash_map<Key, std::vector<GraphEventId>> groups;
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      NameId thread = Row(event).thread;
      if (thread == backward && forward != kNoText) thread = forward;
      groups[{Row(event).process, thread}].push_back(event);
    }
    std::vector<Key> keys;
    for (const auto& [key, events] : groups) {
      if (absl::c_all_of(events, [&](GraphEventId event) { return Row(event).stream < 0; })) {
        keys.push_back(key);
      }
    }
    absl::c_sort(keys, [&](const Key& a, const Key& b) {
      return TextLess(frame_.texts.Get(a.first), frame_.texts.Get(b.first)) ||
             (a.first == b.first &&
              TextLess(frame_.texts.Get(a.second), frame_.texts.Get(b.second)));
    });
    std::vector<std::vector<GraphEventId>> threads;
    for (const Key& key : keys) threads.push_back(std::move(groups[key]));
    return threads;
  }

  NameId FindOnlyThread(absl::string_view part_of_name) const {
    NameId thread = kNoText;
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      if (!IsOneOf(CategoryText(event), {"cpu_op", "user_annotation"})) continue;
      if (!absl::StrContains(Name(event), part_of_name)) continue;
      if (thread != kNoText && thread != Row(event).thread) return kNoText;
      thread = Row(event).thread;
    }
    return thread;
  }

  // Adds edges along the operators of a thread. At equal times ends come before starts; of starts
  // the longer event's, then the earlier one's in the file. An end closes the innermost event that
  // is open, which is another one where events overlap without nesting.
  void AddThread(std::vector<GraphEventId> events) {
    absl::c_sort(events, [&](GraphEventId a, GraphEventId b) {
      const GraphEvent &x = graph_.events[a], &y = graph_.events[b];
      return std::make_tuple(x.start_ps, -x.duration_ps, a) <
             std::make_tuple(y.start_ps, -y.duration_ps, b);
    });
    std::vector<GraphEventId> open;
    InstantId last = kNoInstant;
    GraphEventId last_parent = kNoEvent;
    int depth = 0;
    WalkThread(graph_.events, events, [&](const ThreadStep& step) {
      const GraphEventId event = step.is_start ? step.event : open.back();
      if (!step.is_start) open.pop_back();
      const GraphEventId parent = open.empty() ? kNoEvent : open.back();
      if (step.is_start) open.push_back(event);
      const InstantId instant = (step.is_start ? start_instants_ : end_instants_)[event];
      if (instant == kNoInstant) return;
      if (last != kNoInstant && !ShareLock(last, instant)) {
        // Between operators at the top nothing is known.
        if (step.is_start && depth == 0) {
          AddEdge(last, instant, EdgeType::kDependency);
        } else {
          AddEdge(last, instant, EdgeType::kOperator, Attribution(last, instant, last_parent),
                  /*zero_weight=*/!step.is_start && Traits(event).is_blocking);
        }
      }
      last = instant;
      last_parent = parent;
      depth += step.is_start ? 1 : -1;
    });
  }

  bool ShareLock(InstantId first, InstantId second) const {
    return Traits(graph_.instants[first].event).takes_lock &&
           Traits(graph_.instants[second].event).takes_lock &&
           (graph_.instants[first].is_start || !graph_.instants[second].is_start);
  }

  GraphEventId Attribution(InstantId from, InstantId to, GraphEventId parent_of_from) const {
    if (graph_.instants[from].is_start) return graph_.instants[from].event;
    if (!graph_.instants[to].is_start) return graph_.instants[to].event;
    return parent_of_from;
  }

  // Adds edges along streams, and between device and host.
  absl::Status AddDeviceEdges() {
    size_t waits_left = kMaxDeviceWaits + kMaxDeviceWaitsPerEvent * graph_.events.size();
    for (GraphEventId event : DeviceRowsInOrder()) {
      if (CategoryText(event) != "cuda_sync") {
        RETURN_IF_ERROR(AddWork(event));
        continue;
      }
      if (Name(event) == "Context Sync") {
        if (last_work_.size() > waits_left) return TooManyWaits();
        waits_left -= last_work_.size();
      }
      AddSync(event);
    }
    return absl::OkStatus();
  }

  static absl::Status TooManyWaits() {
    return InvalidArgument(
        "waits for the device (Context Sync) have more edges from its many streams than ",
        kMaxDeviceWaits, " and ", kMaxDeviceWaitsPerEvent,
        " for each event; try without --hta_compatible");
  }

  std::vector<GraphEventId> DeviceRowsInOrder() const {
    std::vector<GraphEventId> events;
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      const HtaRow& row = Row(event);
      if (row.partner < 0) continue;
      if (row.stream == -1 && !IsOneOf(Name(event), {"Event Sync", "Context Sync"})) continue;
      events.push_back(event);
    }
    return UnstablySorted(events, [&](GraphEventId event) {
      // A wait may begin before the work that it waits for.
      return CategoryText(event) == "cuda_sync" ? Row(event).end_ps() : Row(event).start_ps;
    });
  }

  void AddSync(GraphEventId event) {
    const HtaRow& row = Row(event);
    const absl::string_view name = Name(event);
    if (name == "Context Sync") {
      for (InstantId work : last_work_) AddHostWait(work, row.partner);
      return;
    }
    if (name == "Stream Sync") {
      const auto place = place_of_stream_.find(row.stream);
      if (place != place_of_stream_.end()) AddHostWait(last_work_[place->second], row.partner);
      return;
    }
    const auto wait = frame_.waits.find(row.index);
    if (wait == frame_.waits.end()) return;
    const HtaRow* recorded = launches_.LaunchBeforeRecord(wait->second.record_correlation);
    if (recorded == nullptr) return;
    if (name == "Event Sync") {
      AddHostWait(EndInstant(EventOf(recorded->partner)), row.partner);
    } else if (name == "Stream Wait Event") {
      const HtaRow* next = launches_.LaunchAfterWait(static_cast<uint32_t>(row.partner));
      if (next != nullptr) waits_for_[next->partner] = recorded->partner;
    }
  }

  absl::Status AddWork(GraphEventId event) {
    const HtaRow& row = Row(event);
    const InstantId start = start_instants_[event], end = end_instants_[event];
    // Without instants it is a wait whose category is not that of waits.
    if (start == kNoInstant) return absl::OkStatus();
    AddEdge(start, end, EdgeType::kOperator, event);

    InstantId awaited = kNoInstant;
    const auto wait = waits_for_.find(row.index);
    if (wait != waits_for_.end()) awaited = EndInstant(EventOf(wait->second));
    if (awaited != kNoInstant) AddEdge(awaited, start, EdgeType::kSyncDependency);

    const auto [place, is_first] = place_of_stream_.try_emplace(row.stream, last_work_.size());
    if (is_first) last_work_.push_back(kNoInstant);
    InstantId& last = last_work_[place->second];
    const HtaRow* call = frame_.Find(row.partner);
    const GraphEventId call_event = EventOf(row.partner);
    const InstantId call_start = call_event == kNoEvent ? kNoInstant : start_instants_[call_event];
    // Nothing was queued, the stream was idle and what to wait for was over when the host called.
    const bool waited_for_launch = call != nullptr &&
                                   launches_.QueueLength(call - frame_.rows.data()) == 1 &&
                                   launches_.QueueLength(window_.rows[event]) == 0 &&
                                   (last == kNoInstant || graph_.Time(last) < call->start_ps) &&
                                   (awaited == kNoInstant || graph_.Time(awaited) < call->start_ps);
    if (waited_for_launch) {
      if (call_start == kNoInstant) {
        return FailedPrecondition(
            "HTA has no result for this trace: kernel '", Name(event), "' (event ", row.index,
            ") was launched by event ", row.partner,
            ", which is no operator and no call of CUDA; try without --hta_compatible");
      }
      AddEdge(call_start, start, EdgeType::kKernelLaunchDelay);
    } else if (last != kNoInstant && row.start_ps - graph_.Time(last) < kMaxKernelGapPs &&
               (awaited == kNoInstant || graph_.Time(awaited) < graph_.Time(last))) {
      AddEdge(last, start, EdgeType::kKernelKernelDelay, graph_.instants[last].event);
    }
    if (!waited_for_launch && options_.zero_weight_launch_edges && call_start != kNoInstant) {
      AddEdge(call_start, start, EdgeType::kKernelLaunchDelay, kNoEvent, /*zero_weight=*/true);
    }
    last = end;
    return absl::OkStatus();
  }

  void AddHostWait(InstantId gpu_instant, int64_t call_index) {
    const InstantId call_end = EndInstant(EventOf(call_index));
    if (gpu_instant == kNoInstant || call_end == kNoInstant) return;
    AddEdge(gpu_instant, call_end, EdgeType::kSyncDependency);
  }

  void MergeRepeatedEdges() {
    // By their tails, so that one walk sees all that might be the same.
    const EdgesByInstant outgoing(graph_, &GraphEdge::from);
    // By head: the last edge that was seen to lead there.
    std::vector<EdgeId> seen_by(graph_.instants.size(), kNoEdge);
    std::vector<bool> repeats(graph_.edges.size());
    for (InstantId from = 0; from < graph_.instants.size(); ++from) {
      for (const EdgeId id : outgoing.Of(from)) {
        const GraphEdge& edge = graph_.edges[id];
        EdgeId& seen = seen_by[edge.to];
        repeats[id] = seen != kNoEdge && graph_.edges[seen].from == from;
        if (!repeats[id]) {
          seen = id;
          continue;
        }
        // The later one counts, in the place of the first; what time is booked on is not forgotten.
        graph_.edges[seen].type = edge.type;
        graph_.edges[seen].weight_ps = edge.weight_ps;
        if (edge.event != kNoEvent) graph_.edges[seen].event = edge.event;
      }
    }
    size_t kept = 0;
    for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
      if (!repeats[id]) graph_.edges[kept++] = graph_.edges[id];
    }
    graph_.edges.resize(kept);
  }

  absl::Status CheckSyncs() const {
    for (const GraphEdge& edge : graph_.edges) {
      if (edge.type != EdgeType::kSyncDependency) continue;
      const HtaRow& from = Row(graph_.instants[edge.from].event);
      const HtaRow& to = Row(graph_.instants[edge.to].event);
      if (from.stream == -1 || from.stream != to.stream) continue;
      return FailedPrecondition("HTA has no result for this trace: event ", to.index,
                                " waits for event ", from.index, " on its own stream ", to.stream,
                                "; try without --hta_compatible");
    }
    return absl::OkStatus();
  }

  BoundBy Classify(const GraphEdge& edge) const {
    switch (edge.type) {
      case EdgeType::kDependency:
      case EdgeType::kSyncDependency:
        return BoundBy::kNothing;
      case EdgeType::kKernelLaunchDelay:
        return BoundBy::kKernelLaunchOverhead;
      case EdgeType::kKernelKernelDelay:
        return BoundBy::kKernelKernelOverhead;
      case EdgeType::kOperator:
        break;
    }
    if (edge.event == kNoEvent) return BoundBy::kCpu;
    const NameTraits& traits = Traits(edge.event);
    if (Row(edge.event).stream < 0) {
      return traits.is_data_loading ? BoundBy::kDataLoading : BoundBy::kCpu;
    }
    return traits.is_communication ? BoundBy::kGpuCommunication : BoundBy::kGpuCompute;
  }

  static constexpr NameId kNoText = std::numeric_limits<NameId>::max();

  const HtaFrame& frame_;
  const HtaWindow& window_;
  const HtaLaunches& launches_;
  const HtaGraphOptions& options_;
  const std::vector<NameTraits> traits_;
  PathGraph graph_;
  absl::flat_hash_map<std::tuple<NameId, NameId, TrackKind>, LaneId> lanes_;
  std::vector<GraphEventId> event_of_row_;
  std::vector<InstantId> start_instants_;
  std::vector<InstantId> end_instants_;

  // The end of the last work of each stream, in the order in which the streams are first used.
  std::vector<InstantId> last_work_;
  absl::flat_hash_map<int64_t, size_t> place_of_stream_;
  // By the event id of a kernel: that of the kernel it waits for.
  absl::flat_hash_map<int64_t, int64_t> waits_for_;
};

}  // namespace

std::string ShortenKernelName(absl::string_view name) {
  const bool has_brackets = name.find('<') != name.npos || name.find('(') != name.npos;
  const bool is_of_memory =
      StartsWithOneOf(name, {"Memcpy", "hipMemcpy", "Memset", "hipMemset", "dma"});
  if (is_of_memory || !has_brackets) return std::string(name);
  std::string rest;
  for (char c : absl::StrReplaceAll(name, {{"->", ""}})) {
    if (c == '>') {
      CutFromBracket('<', &rest);
    } else if (c == ')') {
      CutFromBracket('(', &rest);
    } else {
      rest.push_back(c);
    }
  }
  return rest.substr(rest.rfind(' ') + 1);
}

bool IsHtaCommunicationName(absl::string_view short_name) {
  return StartsWithOneOf(short_name, {"nccl", "hip", "hccl"}) ||
         absl::StrContains(short_name, "ncclKernel");
}

absl::StatusOr<PathGraph> BuildHtaGraph(const HtaFrame& frame, const HtaWindow& window,
                                        const HtaLaunches& launches,
                                        const HtaGraphOptions& options) {
  return Builder(frame, window, launches, options).Build();
}

}  // namespace meridian
