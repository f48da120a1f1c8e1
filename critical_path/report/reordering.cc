#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "critical_path/report/path_report.h"
#include "critical_path/report/path_report.pb.h"
#include "critical_path/what_if/what_if_graph.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int kMaxQueuedWork = 10;

// Takes turns that are not needed out of the graph, and returns those of the path. Each event gets
// an instant more: when all up to it on its stream is done. Whatever synchronises with it waits for
// that, and so does work of unknown needs.
std::vector<GraphEdge> TakeTurnsOut(const CriticalPath& path, WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const auto first_done = static_cast<InstantId>(graph.instants.size());
  std::vector<GraphEdge> kept, turns;
  for (GraphEventId event = 0; event < graph.events.size(); ++event) {
    const InstantId end = edited->end_instants[event];
    graph.instants.push_back({end == kNoInstant ? 0 : graph.Time(end)});
    if (end != kNoInstant) kept.push_back({end, first_done + event});
  }
  for (const auto& [work, needed] : graph.needs) {
    kept.push_back({edited->end_instants[needed], edited->start_instants[work]});
  }
  const absl::flat_hash_set<std::pair<GraphEventId, GraphEventId>> needs(graph.needs.begin(),
                                                                         graph.needs.end());
  for (EdgeId id = 0; id < graph.edges.size(); ++id) {
    GraphEdge edge = graph.edges[id];
    const GraphEventId from = graph.instants[edge.from].event, to = graph.instants[edge.to].event;
    if (edge.type == EdgeType::kKernelKernelDelay) {
      const bool is_known = graph.events[to].needs_are_known;
      kept.push_back({first_done + from, is_known ? first_done + to : edge.to});
      if (is_known && !needs.contains({to, from}) && !edited->IsFrozen(edge)) {
        // The what-if graph has the path's edges first.
        if (id < path.edges.size()) turns.push_back(edge);
        continue;
      }
    } else if (from != kNoEvent && edge.from == edited->end_instants[from]) {
      edge.from = first_done + from;
    }
    kept.push_back(edge);
  }
  graph.edges = std::move(kept);
  return turns;
}

}  // namespace

absl::Status AddReordering(const PathGraph& measured, const CriticalPath& path,
                           PathReport* report) {
  double work_ps = 0, known_ps = 0;
  for (const GraphEvent& event : measured.events) {
    if (measured.lanes[event.lane].kind != TrackKind::kDevice) continue;
    work_ps += static_cast<double>(event.duration_ps);
    if (event.needs_are_known) known_ps += static_cast<double>(event.duration_ps);
  }
  if (known_ps == 0) {
    return InvalidArgument(
        "the tensors of no device work are known; execution traces go with Kineto's traces of the "
        "same run, without --hta_compatible");
  }
  if (!TimesFit(measured)) return absl::OutOfRangeError("the graph's times span over 13 days");
  WhatIfGraph edited = MakeWhatIfGraph(measured, path);
  std::vector<GraphEdge> turns = TakeTurnsOut(path, &edited);
  const PathGraph& graph = edited.graph;
  ASSIGN_OR_RETURN(const std::vector<int64_t> times_ps, EarliestTimes(graph));
  // By instant, as measured: when all that it needs had happened.
  std::vector<int64_t> ready_ps(graph.instants.size(), graph.window_start_ps);
  for (const GraphEdge& edge : graph.edges) {
    ready_ps[edge.to] = std::max(ready_ps[edge.to], graph.Time(edge.from) + edge.weight_ps);
  }
  // A turn's weight becomes the time for which it was waited needlessly.
  for (GraphEdge& turn : turns) turn.weight_ps = graph.Time(turn.to) - ready_ps[turn.to];
  absl::c_stable_sort(
      turns, [](const GraphEdge& a, const GraphEdge& b) { return a.weight_ps > b.weight_ps; });
  ReorderReport* out = report->mutable_reorder();
  const double end_us = static_cast<double>(times_ps[*graph.end_instant]) / 1e6;
  out->set_length_us(report->window_end_us() - report->begin_us());
  out->set_at_least_us(report->window_start_us() + end_us - report->begin_us());
  out->set_unknown_percent(100 * (1 - known_ps / work_ps));
  for (const GraphEdge& turn : turns) {
    if (turn.weight_ps <= 0 || out->queued_size() == kMaxQueuedWork) break;
    const GraphEventId work = graph.instants[turn.to].event;
    QueuedWorkReport* row = out->add_queued();
    row->set_name(std::string(graph.EventName(work)));
    row->set_rank(edited.RankOf(work));
    row->set_us(static_cast<double>(turn.weight_ps) / 1e6);
    row->set_behind(std::string(graph.EventName(graph.instants[turn.from].event)));
  }
  return absl::OkStatus();
}

}  // namespace meridian
