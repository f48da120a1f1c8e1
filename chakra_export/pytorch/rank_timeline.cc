#include "chakra_export/pytorch/rank_timeline.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/thread_turns.h"
#include "xla_profiler/kineto/device_dependencies_json.h"

namespace meridian {
namespace {

struct Draft {
  TimelineNode node;
  int64_t end_ps = 0;
  // The call around it.
  TimelineIndex parent = kNoTimelineNode;
  bool has_children = false;
};

// Time in which a thread waited for another one.
struct Idle {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  // When the other thread had done its turn.
  ThreadTurns::Moment turn;
  // The node whose duration it is part of.
  TimelineIndex owner = kNoTimelineNode;
  // The node that comes after it, which waits for the other thread.
  TimelineIndex next = kNoTimelineNode;
};

// A call that has begun and not returned.
struct Frame {
  int64_t end_ps = 0;
  // The host node that its time belongs to: its own, or for a call into the runtime that around it.
  TimelineIndex owner = kNoTimelineNode;
  bool is_runtime = false;
  // Until when it waited for the device.
  int64_t waited_until_ps = std::numeric_limits<int64_t>::min();
  EventRow row = 0;
};

class Builder {
 public:
  Builder(const EventTable& table, absl::string_view text, const HostDeviceLink& link)
      : table_(table),
        link_(link),
        dependencies_(FindTraceJsonDependencies(text, table)),
        index_(table),
        is_worker_(FindWorkers(table, dependencies_)),
        turns_(table, index_, is_worker_) {}

  RankTimeline Build() {
    ListWaits();
    chains_.resize(table_.tracks().size());
    first_track_ = FirstTrack();
    for (TrackId track = 0; track < table_.tracks().size(); ++track) {
      // Nobody waits for a thread that only watches.
      if (is_worker_[track] && table_.track(track).kind == TrackKind::kHost) SweepThread(track);
    }
    AddDeviceWork();
    AddDeviceEdges();
    for (const Idle& idle : idles_) ResolveIdle(idle);
    return Finish();
  }

 private:
  bool IsOp(EventRow row) const {
    return table_.category(row) == EventCategory::kCpuOp ||
           table_.category(row) == EventCategory::kAnnotation;
  }
  bool IsChainEvent(EventRow row) const {
    return IsOp(row) || table_.category(row) == EventCategory::kRuntimeApi;
  }

  // Waiting for work that was launched before the profile began stays the host's own time: nothing
  // in the graph would make that work take as long as it did.
  void ListWaits() {
    std::vector<bool> is_launched(table_.size());
    for (const DeviceDependency& edge : dependencies_.edges) {
      if (edge.kind == DeviceDependencyKind::kLaunch) is_launched[edge.to] = true;
    }
    for (const DeviceDependency& edge : dependencies_.edges) {
      if (IsHostWait(edge.kind) && is_launched[edge.from]) {
        works_waited_for_[edge.to].push_back(edge.from);
      }
    }
  }

  // The thread on which the profile begins.
  TrackId FirstTrack() const {
    std::tuple<int64_t, TrackId> first(std::numeric_limits<int64_t>::max(), 0);
    for (TrackId track = 0; track < table_.tracks().size(); ++track) {
      if (!is_worker_[track] || table_.track(track).kind != TrackKind::kHost) continue;
      for (const EventRow row : index_.Rows(track)) {
        if (!IsChainEvent(row)) continue;
        first = std::min(first, std::make_tuple(table_.start_ps(row), track));
        break;
      }
    }
    return std::get<1>(first);
  }

  // ---- One thread.

  void SweepThread(TrackId track) {
    track_ = track;
    frames_.clear();
    gap_ = kNoTimelineNode;
    pending_works_.clear();
    first_pending_idle_ = idles_.size();
    bool is_first = true;
    for (const EventRow row : index_.Rows(track)) {
      if (!IsChainEvent(row)) continue;
      const int64_t start_ps = table_.start_ps(row);
      if (is_first) {
        BeginThread(start_ps);
        is_first = false;
      }
      AdvanceTo(start_ps);
      const int64_t end_ps = frames_.empty() ? table_.end_ps(row)
                                             : std::min(table_.end_ps(row), frames_.back().end_ps);
      if (IsOp(row)) {
        gap_ = kNoTimelineNode;
        PushOp(row, start_ps, end_ps);
      } else {
        PushRuntimeCall(row, start_ps, end_ps);
      }
    }
    if (!is_first) AdvanceTo(std::numeric_limits<int64_t>::max());
  }

  void BeginThread(int64_t start_ps) {
    cursor_ps_ = start_ps;
    if (track_ == first_track_) return;
    // Somebody had the thread begin.
    const TimelineIndex gap = AddHostNode(kNoRow, start_ps, start_ps, kNoTimelineNode);
    const int64_t begin_ps = std::numeric_limits<int64_t>::min();
    const auto turn = turns_.Find(track_, begin_ps, start_ps);
    if (turn.has_value()) idles_.push_back({begin_ps, start_ps, *turn, gap, gap});
    first_pending_idle_ = idles_.size();
  }

  // Closes the calls that return by then and gives the time until then to whom it belongs.
  void AdvanceTo(int64_t time_ps) {
    while (!frames_.empty() && frames_.back().end_ps <= time_ps) {
      Spend(frames_.back().end_ps);
      const Frame frame = frames_.back();
      frames_.pop_back();
      if (!frame.is_runtime) continue;
      const auto it = works_waited_for_.find(frame.row);
      if (it == works_waited_for_.end()) continue;
      pending_works_.insert(pending_works_.end(), it->second.begin(), it->second.end());
      if (frames_.empty()) gap_ = kNoTimelineNode;
    }
    if (time_ps != std::numeric_limits<int64_t>::max()) Spend(time_ps);
  }

  void Spend(int64_t until_ps) {
    if (until_ps <= cursor_ps_) return;
    const int64_t begin_ps = std::exchange(cursor_ps_, until_ps);
    const int64_t length_ps = until_ps - begin_ps;
    if (frames_.empty()) {
      if (const auto turn = turns_.Find(track_, begin_ps, until_ps)) {
        const TimelineIndex gap = AddHostNode(kNoRow, begin_ps, until_ps, kNoTimelineNode);
        drafts_[gap].node.duration_ps = length_ps;
        idles_.push_back({begin_ps, until_ps, *turn, gap, gap});
        first_pending_idle_ = idles_.size();
        gap_ = kNoTimelineNode;
        return;
      }
      drafts_[OpenGap(begin_ps)].node.duration_ps += length_ps;
      drafts_[gap_].end_ps = until_ps;
      return;
    }
    const Frame& frame = frames_.back();
    Draft& owner = drafts_[frame.owner];
    if (owner.node.row == kNoRow) owner.end_ps = std::max(owner.end_ps, until_ps);
    if (frame.is_runtime) {
      owner.node.duration_ps +=
          until_ps - std::min(until_ps, std::max(begin_ps, frame.waited_until_ps));
      return;
    }
    owner.node.duration_ps += length_ps;
    if (table_.category(frame.row) != EventCategory::kAnnotation) return;
    if (const auto turn = turns_.Find(track_, begin_ps, until_ps)) {
      idles_.push_back({begin_ps, until_ps, *turn, frame.owner, kNoTimelineNode});
    }
  }

  TimelineIndex OpenGap(int64_t start_ps) {
    if (gap_ == kNoTimelineNode) gap_ = AddHostNode(kNoRow, start_ps, start_ps, kNoTimelineNode);
    return gap_;
  }

  void PushOp(EventRow row, int64_t start_ps, int64_t end_ps) {
    TimelineIndex parent = kNoTimelineNode;
    if (!frames_.empty() && drafts_[frames_.back().owner].node.row != kNoRow) {
      parent = frames_.back().owner;
      drafts_[parent].has_children = true;
    }
    Frame frame;
    frame.end_ps = end_ps;
    frame.owner = AddHostNode(row, start_ps, end_ps, parent);
    frame.row = row;
    frames_.push_back(frame);
  }

  void PushRuntimeCall(EventRow row, int64_t start_ps, int64_t end_ps) {
    Frame frame;
    frame.end_ps = end_ps;
    frame.owner = frames_.empty() ? OpenGap(start_ps) : frames_.back().owner;
    frame.is_runtime = true;
    frame.row = row;
    const auto waits = works_waited_for_.find(row);
    if (waits != works_waited_for_.end()) {
      for (const EventRow work : waits->second) {
        frame.waited_until_ps = std::max(frame.waited_until_ps, table_.end_ps(work));
      }
    }
    if (table_.correlation(row).has_value()) {
      owner_of_call_[row] = frame.owner;
      if (!pending_works_.empty()) works_before_call_[row] = pending_works_;
    }
    frames_.push_back(frame);
  }

  // Appends to the thread's chain.
  TimelineIndex AddHostNode(EventRow row, int64_t start_ps, int64_t end_ps, TimelineIndex parent) {
    const TimelineIndex index = static_cast<TimelineIndex>(drafts_.size());
    Draft draft;
    draft.node.row = row;
    draft.node.track = track_;
    draft.node.start_ps = start_ps;
    draft.node.launched_ps = start_ps;
    draft.node.on_host = true;
    draft.end_ps = end_ps;
    draft.parent = parent;
    drafts_.push_back(draft);
    std::vector<TimelineIndex>& chain = chains_[track_];
    if (!chain.empty()) edges_.push_back({index, chain.back(), EdgeKind::kProgram});
    chain.push_back(index);
    for (const EventRow work : pending_works_) waits_.push_back({index, work});
    pending_works_.clear();
    for (; first_pending_idle_ < idles_.size(); ++first_pending_idle_) {
      idles_[first_pending_idle_].next = index;
    }
    return index;
  }

  // ---- The device.

  void AddDeviceWork() {
    node_of_work_.reserve(dependencies_.num_work);
    for (EventRow row = 0; row < table_.size(); ++row) {
      const TrackId track = table_.track_id(row);
      if (!IsDeviceWork(table_.category(row)) || table_.track(track).kind != TrackKind::kDevice)
        continue;
      Draft draft;
      draft.node.row = row;
      draft.node.track = track;
      draft.node.start_ps = table_.start_ps(row);
      draft.node.duration_ps = table_.duration_ps(row);
      draft.node.launched_ps = draft.node.start_ps;
      draft.end_ps = table_.end_ps(row);
      node_of_work_[row] = static_cast<TimelineIndex>(drafts_.size());
      drafts_.push_back(draft);
    }
  }

  void AddDeviceEdges() {
    for (const auto& [node, work] : waits_) AddEdgeFromWork(node, work, EdgeKind::kSync);
    for (const DeviceDependency& edge : dependencies_.edges) {
      const auto to = node_of_work_.find(edge.to);
      if (to == node_of_work_.end()) continue;
      switch (edge.kind) {
        case DeviceDependencyKind::kLaunch:
          AddLaunch(edge.from, to->second);
          break;
        case DeviceDependencyKind::kStreamOrder:
          AddEdgeFromWork(to->second, edge.from, EdgeKind::kStream);
          break;
        case DeviceDependencyKind::kEventWait:
          AddEdgeFromWork(to->second, edge.from, EdgeKind::kSync);
          break;
        case DeviceDependencyKind::kInferredWait:
          AddEdgeFromWork(to->second, edge.from, EdgeKind::kInferred);
          break;
        default:
          break;
      }
    }
  }

  void AddEdgeFromWork(TimelineIndex node, EventRow work, EdgeKind kind) {
    const auto it = node_of_work_.find(work);
    if (it != node_of_work_.end()) edges_.push_back({node, it->second, kind});
  }

  void AddLaunch(EventRow call, TimelineIndex work) {
    const auto it = owner_of_call_.find(call);
    if (it == owner_of_call_.end()) return;
    edges_.push_back({work, it->second, EdgeKind::kLaunch});
    TimelineNode& node = drafts_[work].node;
    node.launched_ps = table_.start_ps(call);
    for (TimelineIndex at = it->second; at != kNoTimelineNode; at = drafts_[at].parent) {
      const EventRow row = drafts_[at].node.row;
      if (row == kNoRow) break;
      node.launching_op = link_.op_of_row[row];
      if (node.launching_op != kNoHostOp) break;
    }
    const auto works = works_before_call_.find(call);
    if (works == works_before_call_.end()) return;
    for (const EventRow waited : works->second) {
      AddEdgeFromWork(work, waited, EdgeKind::kSync);
    }
  }

  // ---- Threads that wait for threads.

  void ResolveIdle(const Idle& idle) {
    const EventRow row = idle.turn.row;
    const int64_t turn_ps = idle.turn.is_start ? table_.start_ps(row) : table_.end_ps(row);
    const TimelineIndex waker = LastBefore(chains_[table_.track_id(row)], turn_ps);
    if (idle.next == kNoTimelineNode || waker == kNoTimelineNode) return;
    edges_.push_back({idle.next, waker, EdgeKind::kSync});
    TimelineNode& owner = drafts_[idle.owner].node;
    if (owner.row == kNoRow) {
      owner.start_ps = turn_ps;
      owner.duration_ps = idle.end_ps - turn_ps;
    } else {
      owner.duration_ps -= turn_ps - idle.begin_ps;
    }
  }

  // Returns the last call of the chain to begin before that time, other than one that is still at
  // it; kNoTimelineNode when there is none.
  TimelineIndex LastBefore(const std::vector<TimelineIndex>& chain, int64_t time_ps) const {
    const auto after =
        std::lower_bound(chain.begin(), chain.end(), time_ps,
                         [this](TimelineIndex node, int64_t time) { return BeginOf(node) < time; });
    for (auto it = after; it != chain.begin();) {
      const Draft& draft = drafts_[*--it];
      if (draft.end_ps <= time_ps || draft.has_children) return *it;
    }
    return kNoTimelineNode;
  }

  // A gap's start may have been moved; its place in the chain has not.
  int64_t BeginOf(TimelineIndex node) const { return drafts_[node].node.launched_ps; }

  // ---- The result.

  RankTimeline Finish() {
    std::vector<TimelineIndex> order(drafts_.size());
    for (TimelineIndex i = 0; i < order.size(); ++i) order[i] = i;
    // Host nodes come first among drafts, each thread's in its order.
    std::stable_sort(order.begin(), order.end(), [this](TimelineIndex a, TimelineIndex b) {
      return drafts_[a].node.start_ps < drafts_[b].node.start_ps;
    });
    std::vector<TimelineIndex> place(drafts_.size());
    RankTimeline timeline;
    timeline.nodes.reserve(drafts_.size());
    timeline.node_of_row.assign(table_.size(), kNoTimelineNode);
    for (const TimelineIndex i : order) {
      place[i] = static_cast<TimelineIndex>(timeline.nodes.size());
      timeline.nodes.push_back(drafts_[i].node);
      if (drafts_[i].node.row != kNoRow) timeline.node_of_row[drafts_[i].node.row] = place[i];
    }
    timeline.edges.reserve(edges_.size());
    for (const DependencyEdge& edge : edges_) {
      timeline.AddEdge(place[edge.node], place[edge.source], edge.kinds);
    }
    return timeline;
  }

  const EventTable& table_;
  const HostDeviceLink& link_;
  const DeviceDependencies dependencies_;
  const TrackIndex index_;
  const std::vector<bool> is_worker_;
  const ThreadTurns turns_;
  absl::flat_hash_map<EventRow, std::vector<EventRow>> works_waited_for_;
  TrackId first_track_ = 0;

  std::vector<Draft> drafts_;
  // Edges between positions in drafts_.
  std::vector<DependencyEdge> edges_;
  std::vector<Idle> idles_;
  // The host nodes of each track in the order of its calls.
  std::vector<std::vector<TimelineIndex>> chains_;
  // Host nodes and the work they wait for.
  std::vector<std::pair<TimelineIndex, EventRow>> waits_;
  absl::flat_hash_map<EventRow, TimelineIndex> owner_of_call_;
  absl::flat_hash_map<EventRow, std::vector<EventRow>> works_before_call_;
  absl::flat_hash_map<EventRow, TimelineIndex> node_of_work_;

  // State of the sweep over one thread: its track, open calls, how far its time has been given to
  // nodes, and the gap that is open.
  TrackId track_ = 0;
  std::vector<Frame> frames_;
  int64_t cursor_ps_ = 0;
  TimelineIndex gap_ = kNoTimelineNode;
  // Work that the thread has waited for since its last node.
  std::vector<EventRow> pending_works_;
  size_t first_pending_idle_ = 0;
};

}  // namespace

void RankTimeline::AddEdge(TimelineIndex node, TimelineIndex source, EdgeKinds kinds) {
  if (source >= node) {
    ++edges_against_time;
    return;
  }
  edges.push_back({node, source, kinds});
}

RankTimeline BuildRankTimeline(const EventTable& table, absl::string_view text,
                               const HostDeviceLink& link) {
  return Builder(table, text, link).Build();
}

}  // namespace meridian
