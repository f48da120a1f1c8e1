#include "critical_path/what_if/reorder_suggestions.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "critical_path/what_if/structure_edits.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Instants and edges that all replays together may visit, but so many are made in any case.
constexpr int64_t kMaxWork = 100'000'000;
constexpr int64_t kMinReplays = 4;
constexpr size_t kMaxSuggestions = 10;

// A block of a stream's work that goes before another.
struct Candidate {
  LaneId lane = 0;
  // Places in the stream's work: the moved work, from `moved` up to moved_end, goes before the work
  // at `jumped`.
  size_t jumped = 0;
  size_t moved = 0;
  size_t moved_end = 0;
  // The most that can be gained.
  int64_t bound_ps = 0;
};

class Suggester {
 public:
  Suggester(const WhatIfGraph& edited, const CriticalPath& path)
      : edited_(edited), graph_(edited.graph), path_(path) {}

  absl::StatusOr<ReorderSuggestions> Suggest(int64_t max_replays) {
    FindWork();
    FindCandidates();
    const int64_t cost = static_cast<int64_t>(graph_.instants.size() + graph_.edges.size());
    const int64_t affordable = std::max(kMinReplays, kMaxWork / std::max<int64_t>(cost, 1));
    const int64_t limit = std::min(affordable, max_replays);
    result_.candidates = static_cast<int64_t>(candidates_.size());
    for (const Candidate& candidate : candidates_) {
      if (result_.tried == limit) break;
      ++result_.tried;
      RETURN_IF_ERROR(Try(candidate));
    }
    std::stable_sort(result_.suggestions.begin(), result_.suggestions.end(),
                     [](const ReorderSuggestion& a, const ReorderSuggestion& b) {
                       return std::make_tuple(-a.gain_ps, a.moved.size()) <
                              std::make_tuple(-b.gain_ps, b.moved.size());
                     });
    KeepBest();
    return std::move(result_);
  }

 private:
  void FindWork() {
    work_.resize(graph_.lanes.size());
    places_.resize(graph_.events.size());
    for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (graph_.lanes[lane].kind != TrackKind::kDevice) continue;
      for (InstantId instant : edited_.lane_order[lane]) {
        if (!graph_.instants[instant].is_start) continue;
        places_[graph_.instants[instant].event] = work_[lane].size();
        work_[lane].push_back(graph_.instants[instant].event);
      }
    }
  }

  // Returns the stream of work that starts or ends in the instant; nullopt when there is none.
  std::optional<LaneId> StreamOf(InstantId instant) const {
    const GraphEventId event = graph_.instants[instant].event;
    const bool is_work = edited_.IsOfEvent(instant) && edited_.IsOnDevice(event);
    return is_work ? std::make_optional(edited_.LaneOf(event)) : std::nullopt;
  }

  void FindCandidates() {
    // The place of the work with which the path came to the stream that it is on.
    size_t entered = 0;
    for (EdgeId id : path_.edges) {
      const GraphEdge& edge = graph_.edges[id];
      const std::optional<LaneId> from = StreamOf(edge.from), to = StreamOf(edge.to);
      if (from == to) continue;
      if (from.has_value()) AddWhereThePathLeaves(*from, edge.from, entered);
      if (to.has_value()) {
        entered = places_[graph_.instants[edge.to].event];
        AddWhereThePathComes(*to, edge.to, entered);
      }
    }
    std::stable_sort(
        candidates_.begin(), candidates_.end(),
        [](const Candidate& a, const Candidate& b) { return a.bound_ps > b.bound_ps; });
  }

  int64_t Busy(LaneId lane, size_t begin, size_t end) const {
    int64_t time_ps = 0;
    for (size_t i = begin; i < end; ++i) {
      time_ps = SaturatingSum(time_ps, graph_.events[work_[lane][i]].duration_ps);
    }
    return time_ps;
  }

  // Blocks of 1, 2, 4, 8 and 16 pieces of work are tried.
  static constexpr size_t kMaxBlock = 16;

  void AddWhereThePathLeaves(LaneId lane, InstantId instant, size_t entered) {
    const size_t end = places_[graph_.instants[instant].event] + 1;
    for (size_t moved = 1; moved <= kMaxBlock && entered + moved < end; moved *= 2) {
      for (size_t jumped = 1; jumped <= kMaxBlock && entered + moved + jumped <= end; jumped *= 2) {
        const size_t begin = end - moved;
        candidates_.push_back(
            {lane, begin - jumped, begin, end, Busy(lane, begin - jumped, begin)});
      }
    }
  }

  void AddWhereThePathComes(LaneId lane, InstantId instant, size_t place) {
    int64_t free_ps = graph_.window_start_ps;
    if (place > 0) {
      const GraphEvent& before = graph_.events[work_[lane][place - 1]];
      free_ps = before.start_ps + before.duration_ps;
    }
    const int64_t idle_ps = graph_.instants[instant].time_ps - free_ps;
    if (idle_ps <= 0) return;
    const size_t count = work_[lane].size();
    for (size_t moved = 1; moved <= kMaxBlock && place + moved < count; moved *= 2) {
      const size_t begin = place + 1;
      candidates_.push_back(
          {lane, place, begin, begin + moved, std::min(idle_ps, Busy(lane, begin, begin + moved))});
    }
  }

  absl::Status Try(const Candidate& candidate) {
    WhatIfGraph edited;
    edited.graph = CopyGraph(graph_);
    edited.start_instants = edited_.start_instants;
    edited.end_instants = edited_.end_instants;
    edited.lane_order = edited_.lane_order;
    ReorderSuggestion suggestion;
    const std::vector<GraphEventId>& work = work_[candidate.lane];
    suggestion.moved.assign(work.begin() + candidate.moved, work.begin() + candidate.moved_end);
    suggestion.target = work[candidate.jumped];
    // Work that overlaps cannot be moved, and work that depends on what it would jump over waits in
    // a circle.
    if (!MoveOnLane(suggestion.moved, suggestion.target, /*before=*/true, &edited).ok()) {
      return absl::OkStatus();
    }
    const absl::StatusOr<std::vector<int64_t>> times_ps = EarliestTimes(edited.graph);
    if (absl::IsInvalidArgument(times_ps.status())) return absl::OkStatus();
    RETURN_IF_ERROR(times_ps.status());
    suggestion.gain_ps = path_.length_ps - (*times_ps)[*graph_.end_instant];
    if (suggestion.gain_ps <= 0) return absl::OkStatus();
    result_.suggestions.push_back(std::move(suggestion));
    return absl::OkStatus();
  }

  // Keeps the best of the suggestions that end a block with the same event, or go before the same.
  void KeepBest() {
    std::set<GraphEventId> moved, targets;
    std::vector<ReorderSuggestion> best;
    for (ReorderSuggestion& suggestion : result_.suggestions) {
      if (best.size() == kMaxSuggestions) break;
      const bool is_new = moved.insert(suggestion.moved.back()).second;
      if (!targets.insert(suggestion.target).second || !is_new) continue;
      suggestion.edits =
          absl::StrJoin(suggestion.moved, "; ", [&](std::string* out, GraphEventId id) {
            absl::StrAppend(out, "move ", NameEvent(id), " before ", NameEvent(suggestion.target));
          });
      best.push_back(std::move(suggestion));
    }
    result_.suggestions = std::move(best);
  }

  std::string NameEvent(GraphEventId id) const {
    const bool one_rank =
        std::all_of(graph_.lanes.begin(), graph_.lanes.end(),
                    [&](const Lane& lane) { return lane.rank == graph_.lanes.front().rank; });
    std::string text = absl::StrCat("event=", graph_.events[id].position);
    if (!one_rank) absl::StrAppend(&text, " rank=", edited_.RankOf(id));
    return text;
  }

  const WhatIfGraph& edited_;
  const PathGraph& graph_;
  const CriticalPath& path_;
  // By lane: the work of a stream in order.
  std::vector<std::vector<GraphEventId>> work_;
  // By event: the place of device work in its stream's work.
  std::vector<size_t> places_;
  std::vector<Candidate> candidates_;
  ReorderSuggestions result_;
};

}  // namespace

absl::StatusOr<ReorderSuggestions> SuggestReorderings(const WhatIfGraph& edited,
                                                      const CriticalPath& path,
                                                      int64_t max_replays) {
  if (!edited.keeps_order() || !edited.graph.end_instant.has_value()) {
    return absl::InvalidArgumentError(
        "HTA's graph does not keep the order of streams; leave --hta_compatible out");
  }
  return Suggester(edited, path).Suggest(max_replays);
}

}  // namespace meridian
