#include "critical_path/hta/hta_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "critical_path/hta/call_stack.h"
#include "critical_path/hta/kernel_name.h"
#include "critical_path/hta/unstable_order.h"
#include "re2/re2.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {

// A longer gap between kernels is taken for a dependency that the trace does not show.
constexpr int64_t kMaxKernelGapPs = int64_t{1500} * 1000000;

// What matters about a name, found once for each.
struct NameTraits {
  // The call takes CUDA's lock.
  bool takes_lock = false;
  // The call may wait for the device.
  bool is_blocking = false;
  // The event loads data: has nodes, and time booked on it is data_loading.
  bool has_data_load_nodes = false;
  bool is_data_loading = false;
  bool is_communication = false;
};

bool IsOneOf(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True when a pattern is found in the text. A pattern that is no regular expression matches
// nothing.
bool MatchesAny(const std::vector<std::unique_ptr<RE2>>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::unique_ptr<RE2>& pattern) {
    return pattern->ok() && RE2::PartialMatch(text, *pattern);
  });
}

std::vector<NameTraits> FindNameTraits(const StringPool& names,
                                       const std::vector<std::string>& data_load_events) {
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
    traits.has_data_load_nodes =
        std::any_of(data_load_events.begin(), data_load_events.end(),
                    [&](const std::string& part) { return absl::StrContains(name, part); });
    traits.is_data_loading = MatchesAny(patterns, short_name);
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
        start_nodes_(window.rows.size(), kNoNode),
        end_nodes_(window.rows.size(), kNoNode) {}

  absl::StatusOr<PathGraph> Build();

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
  NodeId EndNode(GraphEventId event) const {
    return event == kNoEvent ? kNoNode : end_nodes_[event];
  }
  int64_t Time(NodeId node) const { return graph_.nodes[node].time_ps; }

  void AddEvents();
  LaneId FindLane(const HtaRow& row, TrackKind kind);
  bool HasNodes(GraphEventId event) const;
  void AddNodes();
  void AddEdge(NodeId from, NodeId to, EdgeType type, GraphEventId event = kNoEvent,
               bool zero_weight = false);

  // Edges between calls that hold CUDA's lock one after the other, on all threads.
  void AddLockEdges();

  // Edges along the operators of a thread.
  void AddCallStackEdges();
  std::vector<std::vector<GraphEventId>> GroupByThread() const;
  NameId FindOnlyThread(absl::string_view part_of_name) const;
  void WalkThread(const std::vector<GraphEventId>& events);
  bool ShareLock(NodeId first, NodeId second) const;
  GraphEventId Attribution(NodeId from, NodeId to, GraphEventId parent_of_from) const;

  // Edges along streams, and between device and host.
  absl::Status AddDeviceEdges();
  std::vector<GraphEventId> DeviceRowsInOrder() const;
  void AddSync(GraphEventId event);
  absl::Status AddWork(GraphEventId event);
  void AddHostWait(NodeId gpu_node, int64_t call_index);

  void MergeRepeatedEdges();
  absl::Status CheckSyncs() const;
  void Classify();

  static constexpr NameId kNoText = std::numeric_limits<NameId>::max();

  const HtaFrame& frame_;
  const HtaWindow& window_;
  const HtaLaunches& launches_;
  const HtaGraphOptions& options_;
  const std::vector<NameTraits> traits_;
  PathGraph graph_;
  absl::flat_hash_map<std::tuple<NameId, NameId, TrackKind>, LaneId> lanes_;
  std::vector<GraphEventId> event_of_row_;
  std::vector<NodeId> start_nodes_;
  std::vector<NodeId> end_nodes_;

  // The end of the last work on each stream, by the order of first use.
  std::vector<NodeId> last_work_;
  absl::flat_hash_map<int64_t, size_t> place_of_stream_;
  // For a kernel's event id that of the kernel it waits for.
  absl::flat_hash_map<int64_t, int64_t> waits_for_;
};

absl::StatusOr<PathGraph> Builder::Build() {
  if (launches_.empty()) {
    return absl::FailedPreconditionError(
        "no kernel was launched by a call that HTA knows, so that it has no result; try without "
        "--hta_compatible");
  }
  graph_.base_ns = frame_.base_ns;
  graph_.window_start_ps = window_.start_ps;
  graph_.window_end_ps = window_.end_ps;
  AddEvents();
  AddNodes();
  AddLockEdges();
  AddCallStackEdges();
  RETURN_IF_ERROR(AddDeviceEdges());
  MergeRepeatedEdges();
  RETURN_IF_ERROR(CheckSyncs());
  Classify();
  return std::move(graph_);
}

void Builder::AddEvents() {
  for (NameId id = 0; id < frame_.names.size(); ++id) graph_.names.Intern(frame_.names.Get(id));
  graph_.events.reserve(window_.rows.size());
  for (GraphEventId id = 0; id < window_.rows.size(); ++id) {
    const HtaRow& row = Row(id);
    event_of_row_[window_.rows[id]] = id;
    GraphEvent event;
    event.name = row.name;
    event.start_ps = row.start_ps;
    event.duration_ps = row.duration_ps;
    event.category = KinetoCategory(CategoryText(id), Name(id));
    event.lane = FindLane(
        row, IsKinetoDeviceCategory(event.category) ? TrackKind::kDevice : TrackKind::kHost);
    event.position = row.index;
    graph_.events.push_back(event);
  }
}

LaneId Builder::FindLane(const HtaRow& row, TrackKind kind) {
  const auto [it, is_new] =
      lanes_.try_emplace(std::make_tuple(row.process, row.thread, kind), graph_.lanes.size());
  if (is_new) {
    graph_.lanes.push_back({frame_.rank, kind, std::string(frame_.texts.Get(row.process)),
                            std::string(frame_.texts.Get(row.thread))});
  }
  return it->second;
}

bool Builder::HasNodes(GraphEventId event) const {
  const HtaRow& row = Row(event);
  return IsOneOf(CategoryText(event), {"cpu_op", "cuda_runtime", "cuda_driver"}) ||
         Traits(event).has_data_load_nodes || (row.stream != -1 && row.partner >= 0);
}

void Builder::AddNodes() {
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    if (!HasNodes(id)) continue;
    graph_.nodes.push_back({Row(id).start_ps, id, /*is_start=*/true});
    graph_.nodes.push_back({Row(id).end_ps(), id, /*is_start=*/false});
  }
  std::sort(graph_.nodes.begin(), graph_.nodes.end(), [](const GraphNode& a, const GraphNode& b) {
    return std::make_tuple(a.time_ps, a.event, !a.is_start) <
           std::make_tuple(b.time_ps, b.event, !b.is_start);
  });
  for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
    const GraphNode& node = graph_.nodes[id];
    (node.is_start ? start_nodes_ : end_nodes_)[node.event] = id;
  }
}

void Builder::AddEdge(NodeId from, NodeId to, EdgeType type, GraphEventId event, bool zero_weight) {
  GraphEdge edge;
  edge.from = from;
  edge.to = to;
  edge.type = type;
  edge.event = event;
  const bool has_weight =
      type != EdgeType::kDependency && type != EdgeType::kSyncDependency && !zero_weight;
  if (has_weight) edge.weight_ps = std::max<int64_t>(0, Time(to) - Time(from));
  graph_.edges.push_back(edge);
}

void Builder::AddLockEdges() {
  // Calls that have started and not seen an end since.
  std::vector<NodeId> started;
  NodeId last = kNoNode;
  for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
    const GraphEventId event = graph_.nodes[node].event;
    if (!Traits(event).takes_lock) continue;
    if (graph_.nodes[node].is_start) {
      started.push_back(node);
    } else {
      for (; !started.empty(); started.pop_back()) {
        const bool is_own = graph_.nodes[started.back()].event == event;
        AddEdge(started.back(), node, is_own ? EdgeType::kOperator : EdgeType::kDependency,
                is_own ? event : kNoEvent);
      }
      if (last != kNoNode && !graph_.nodes[last].is_start) {
        AddEdge(last, node, EdgeType::kDependency);
      }
    }
    last = node;
  }
}

NameId Builder::FindOnlyThread(absl::string_view part_of_name) const {
  NameId thread = kNoText;
  std::vector<bool> matches(frame_.names.size());
  for (NameId id = 0; id < matches.size(); ++id) {
    matches[id] = absl::StrContains(frame_.names.Get(id), part_of_name);
  }
  for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
    if (!matches[Row(event).name]) continue;
    if (!IsOneOf(CategoryText(event), {"cpu_op", "user_annotation"})) continue;
    if (thread != kNoText && thread != Row(event).thread) return kNoText;
    thread = Row(event).thread;
  }
  return thread;
}

std::vector<std::vector<GraphEventId>> Builder::GroupByThread() const {
  // The backward pass has a thread of its own, which runs while the forward thread waits: together
  // they are one.
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
    if (std::all_of(events.begin(), events.end(),
                    [&](GraphEventId event) { return Row(event).stream < 0; })) {
      keys.push_back(key);
    }
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    return TextLess(frame_.texts.Get(a.first), frame_.texts.Get(b.first)) ||
           (a.first == b.first && TextLess(frame_.texts.Get(a.second), frame_.texts.Get(b.second)));
  });
  std::vector<std::vector<GraphEventId>> threads;
  for (const Key& key : keys) threads.push_back(std::move(groups[key]));
  return threads;
}

void Builder::AddCallStackEdges() {
  for (const std::vector<GraphEventId>& events : GroupByThread()) WalkThread(events);
}

void Builder::WalkThread(const std::vector<GraphEventId>& events) {
  NodeId last = kNoNode;
  GraphEventId last_parent = kNoEvent;
  int depth = 0;
  const auto visit = [&](GraphEventId event, GraphEventId parent, bool enters) {
    const NodeId node = enters ? start_nodes_[event] : end_nodes_[event];
    if (node == kNoNode) return;
    if (last != kNoNode && !ShareLock(last, node)) {
      // Between operators at the top nothing is known.
      if (enters && depth == 0) {
        AddEdge(last, node, EdgeType::kDependency);
      } else {
        AddEdge(last, node, EdgeType::kOperator, Attribution(last, node, last_parent),
                /*zero_weight=*/!enters && Traits(event).is_blocking);
      }
    }
    last = node;
    last_parent = parent;
    depth += enters ? 1 : -1;
  };
  WalkCallStack(graph_.events, events, visit);
}

bool Builder::ShareLock(NodeId first, NodeId second) const {
  return Traits(graph_.nodes[first].event).takes_lock &&
         Traits(graph_.nodes[second].event).takes_lock &&
         (graph_.nodes[first].is_start || !graph_.nodes[second].is_start);
}

GraphEventId Builder::Attribution(NodeId from, NodeId to, GraphEventId parent_of_from) const {
  if (graph_.nodes[from].is_start) return graph_.nodes[from].event;
  if (!graph_.nodes[to].is_start) return graph_.nodes[to].event;
  return parent_of_from;
}

std::vector<GraphEventId> Builder::DeviceRowsInOrder() const {
  std::vector<GraphEventId> events;
  std::vector<int64_t> keys_ps;
  for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
    const HtaRow& row = Row(event);
    if (row.partner < 0) continue;
    if (row.stream == -1 && !IsOneOf(Name(event), {"Event Sync", "Context Sync"})) continue;
    events.push_back(event);
    // A wait may begin before the work that it waits for.
    keys_ps.push_back(CategoryText(event) == "cuda_sync" ? row.end_ps() : row.start_ps);
  }
  std::vector<GraphEventId> sorted;
  sorted.reserve(events.size());
  for (uint32_t i : UnstableOrder(keys_ps)) sorted.push_back(events[i]);
  return sorted;
}

absl::Status Builder::AddDeviceEdges() {
  for (GraphEventId event : DeviceRowsInOrder()) {
    if (CategoryText(event) == "cuda_sync") {
      AddSync(event);
    } else {
      RETURN_IF_ERROR(AddWork(event));
    }
  }
  return absl::OkStatus();
}

void Builder::AddHostWait(NodeId gpu_node, int64_t call_index) {
  const NodeId call_end = EndNode(EventOf(call_index));
  if (gpu_node == kNoNode || call_end == kNoNode) return;
  AddEdge(gpu_node, call_end, EdgeType::kSyncDependency);
}

void Builder::AddSync(GraphEventId event) {
  const HtaRow& row = Row(event);
  const absl::string_view name = Name(event);
  if (name == "Context Sync") {
    for (NodeId work : last_work_) AddHostWait(work, row.partner);
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
    AddHostWait(EndNode(EventOf(recorded->partner)), row.partner);
  } else if (name == "Stream Wait Event") {
    const HtaRow* next = launches_.LaunchAfterWait(static_cast<uint32_t>(row.partner));
    if (next != nullptr) waits_for_[next->partner] = recorded->partner;
  }
}

absl::Status Builder::AddWork(GraphEventId event) {
  const HtaRow& row = Row(event);
  const NodeId start = start_nodes_[event], end = end_nodes_[event];
  // A wait of another category than waits have.
  if (start == kNoNode) return absl::OkStatus();
  AddEdge(start, end, EdgeType::kOperator, event);

  NodeId awaited = kNoNode;
  const auto wait = waits_for_.find(row.index);
  if (wait != waits_for_.end()) awaited = EndNode(EventOf(wait->second));
  if (awaited != kNoNode) AddEdge(awaited, start, EdgeType::kSyncDependency);

  const auto [place, is_first] = place_of_stream_.try_emplace(row.stream, last_work_.size());
  if (is_first) last_work_.push_back(kNoNode);
  NodeId& last = last_work_[place->second];
  const HtaRow* call = frame_.Find(row.partner);
  const GraphEventId call_event = EventOf(row.partner);
  const NodeId call_start = call_event == kNoEvent ? kNoNode : start_nodes_[call_event];
  // Nothing was queued, the stream was idle and what to wait for was over when the host called.
  const bool waited_for_launch = call != nullptr &&
                                 launches_.QueueLength(call - frame_.rows.data()) == 1 &&
                                 launches_.QueueLength(window_.rows[event]) == 0 &&
                                 (last == kNoNode || Time(last) < call->start_ps) &&
                                 (awaited == kNoNode || Time(awaited) < call->start_ps);
  if (waited_for_launch) {
    if (call_start == kNoNode) {
      return absl::FailedPreconditionError(
          absl::StrCat("HTA has no result for this trace: kernel '", Name(event), "' (event ",
                       row.index, ") was launched by event ", row.partner,
                       ", which is no operator and no call of CUDA; "
                       "try without --hta_compatible"));
    }
    AddEdge(call_start, start, EdgeType::kKernelLaunchDelay);
  } else if (last != kNoNode && row.start_ps - Time(last) < kMaxKernelGapPs &&
             (awaited == kNoNode || Time(awaited) < Time(last))) {
    AddEdge(last, start, EdgeType::kKernelKernelDelay, graph_.nodes[last].event);
  }
  if (!waited_for_launch && options_.zero_weight_launch_edges && call_start != kNoNode) {
    AddEdge(call_start, start, EdgeType::kKernelLaunchDelay, kNoEvent, /*zero_weight=*/true);
  }
  last = end;
  return absl::OkStatus();
}

void Builder::MergeRepeatedEdges() {
  // By their tails, in order, so that one walk sees all that might be the same.
  std::vector<EdgeId> order(graph_.edges.size());
  std::vector<EdgeId> begins(graph_.nodes.size() + 1);
  for (const GraphEdge& edge : graph_.edges) ++begins[edge.from + 1];
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  for (EdgeId id = 0; id < graph_.edges.size(); ++id) order[begins[graph_.edges[id].from]++] = id;

  // For each head the last tail that was seen, and by which edge.
  std::vector<NodeId> seen_from(graph_.nodes.size(), kNoNode);
  std::vector<EdgeId> seen_by(graph_.nodes.size());
  std::vector<bool> repeats(graph_.edges.size());
  for (EdgeId id : order) {
    const GraphEdge& edge = graph_.edges[id];
    if (seen_from[edge.to] != edge.from) {
      seen_from[edge.to] = edge.from;
      seen_by[edge.to] = id;
      continue;
    }
    // The later one counts, in the place of the first; what time is booked on is not forgotten.
    repeats[id] = true;
    GraphEdge& first = graph_.edges[seen_by[edge.to]];
    first.type = edge.type;
    first.weight_ps = edge.weight_ps;
    if (edge.event != kNoEvent) first.event = edge.event;
  }
  size_t kept = 0;
  for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
    if (!repeats[id]) graph_.edges[kept++] = graph_.edges[id];
  }
  graph_.edges.resize(kept);
}

absl::Status Builder::CheckSyncs() const {
  for (const GraphEdge& edge : graph_.edges) {
    if (edge.type != EdgeType::kSyncDependency) continue;
    const HtaRow& from = Row(graph_.nodes[edge.from].event);
    const HtaRow& to = Row(graph_.nodes[edge.to].event);
    if (from.stream == -1 || from.stream != to.stream) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "HTA has no result for this trace: event ", to.index, " waits for event ", from.index,
        " on its own stream ", to.stream, "; try without --hta_compatible"));
  }
  return absl::OkStatus();
}

void Builder::Classify() {
  for (GraphEdge& edge : graph_.edges) {
    switch (edge.type) {
      case EdgeType::kDependency:
      case EdgeType::kSyncDependency:
        edge.bound_by = BoundBy::kNothing;
        break;
      case EdgeType::kKernelLaunchDelay:
        edge.bound_by = BoundBy::kKernelLaunchOverhead;
        break;
      case EdgeType::kKernelKernelDelay:
        edge.bound_by = BoundBy::kKernelKernelOverhead;
        break;
      case EdgeType::kOperator:
        edge.bound_by = BoundBy::kCpu;
        if (edge.event == kNoEvent) break;
        const NameTraits& traits = Traits(edge.event);
        if (Row(edge.event).stream >= 0) {
          edge.bound_by =
              traits.is_communication ? BoundBy::kGpuCommunication : BoundBy::kGpuCompute;
        } else if (traits.is_data_loading) {
          edge.bound_by = BoundBy::kDataLoading;
        }
        break;
    }
  }
}

}  // namespace

absl::StatusOr<PathGraph> BuildHtaGraph(const HtaFrame& frame, const HtaWindow& window,
                                        const HtaLaunches& launches,
                                        const HtaGraphOptions& options) {
  return Builder(frame, window, launches, options).Build();
}

}  // namespace meridian
