#include "pipeline/operations.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "pipeline/comparison.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// Names may have any length; a page does not.
constexpr size_t kMostShown = 1000;

// The step in `steps` by its number.
using StepPlaces = absl::flat_hash_map<int64_t, size_t>;

StepPlaces PlacesOf(const StepTimes& steps) {
  StepPlaces places;
  for (size_t at = 0; at < steps.steps.size(); ++at) places[steps.steps[at].step] = at;
  return places;
}

// All executions of one operation.
struct Executions {
  Operation row;
  // By rank, the time by place in StepTimes::steps, with kInNoStep for what is in none; a place may be
  // there several times.
  std::map<int64_t, std::vector<std::pair<uint32_t, float>>> ms_by_rank;
};

constexpr uint32_t kInNoStep = std::numeric_limits<uint32_t>::max();

class OperationTable {
 public:
  OperationTable(const PathGraph& graph, const GraphSource& source, const StepTimes& steps)
      : graph_(graph), source_(source), steps_(steps), places_(PlacesOf(steps)) {}

  void Read(const CollectiveEvents& collectives) {
    const std::vector<InstantId>& meetings = collectives.meetings;
    absl::flat_hash_map<InstantId, const GraphMeeting*> by_instant;
    for (const GraphMeeting& meeting : graph_.meetings) by_instant[meeting.instant] = &meeting;
    of_event_.assign(graph_.events.size(), nullptr);
    for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
      const GraphEvent& event = graph_.events[id];
      if (event.duration_ps <= 0 || graph_.LaneOf(id).kind != TrackKind::kDevice) continue;
      ranks_.insert(graph_.LaneOf(id).rank);
      const GraphMeeting* meeting = meetings[id] == kNoInstant ? nullptr : by_instant[meetings[id]];
      const int64_t end_ps = event.start_ps + event.duration_ps;
      const int64_t start_ps =
          meeting == nullptr ? event.start_ps
                             : std::clamp(graph_.Time(meeting->instant), event.start_ps, end_ps);
      Executions& executions =
          Find(event, collectives.communicates[id] || meeting != nullptr, meeting);
      Add(event, graph_.LaneOf(id).rank, static_cast<double>(end_ps - start_ps) * kMsPerPs,
          &executions);
      of_event_[id] = &executions;
    }
  }

  // Adds what of the path is booked on operations; waiting for others is not theirs.
  void AddPath(const CriticalPath& path) {
    VisitPieces(graph_, path, steps_, [&](const PathPiece& piece) {
      const GraphEventId event = graph_.edges[piece.edge].event;
      const bool is_own =
          piece.bound_by == BoundBy::kGpuCompute || piece.bound_by == BoundBy::kGpuCommunication;
      if (!is_own || event == kNoEvent || of_event_[event] == nullptr) return;
      Operation& row = of_event_[event]->row;
      row.set_path_ms(row.path_ms() + static_cast<double>(piece.time_ps) * kMsPerPs);
    });
  }

  void Report(RunReport* report) {
    std::vector<Executions*> rows;
    for (auto& [key, executions] : all_) rows.push_back(&executions);
    absl::c_stable_sort(rows, [](const Executions* a, const Executions* b) {
      return a->row.total_ms() > b->row.total_ms();
    });
    rows.resize(std::min(rows.size(), kMostOperations));
    for (Executions* executions : rows) {
      Summarise(executions);
      *report->add_operations() = std::move(executions->row);
    }
  }

 private:
  // Name, kind and bytes.
  using Key = std::tuple<NameId, int, int64_t>;

  Executions& Find(const GraphEvent& event, bool communicates, const GraphMeeting* meeting) {
    const GraphTransfer* transfer =
        meeting == nullptr || !meeting->transfer.has_value() ? nullptr : &*meeting->transfer;
    const Key key(event.name, transfer == nullptr ? -1 : static_cast<int>(transfer->kind),
                  transfer == nullptr ? 0 : transfer->bytes);
    const auto [it, is_new] = all_.try_emplace(key);
    if (!is_new) return it->second;
    Operation& row = it->second.row;
    row.set_name(ShownName(graph_.names.Get(event.name)));
    row.set_role(RoleOfEvent(graph_, event, communicates));
    if (transfer != nullptr) {
      row.set_kind(std::string(CollectiveKindName(transfer->kind)));
      if (transfer->bytes > 0) row.set_bytes(transfer->bytes);
    }
    const auto origin = source_.origins.find(std::string(graph_.names.Get(event.name)));
    if (origin != source_.origins.end()) {
      row.set_framework_op(origin->second.framework_op);
      row.set_source(origin->second.source);
    }
    return it->second;
  }

  void Add(const GraphEvent& event, int64_t rank, double ms, Executions* executions) {
    Operation& row = executions->row;
    row.set_count(row.count() + 1);
    row.set_total_ms(row.total_ms() + ms);
    const auto place = places_.find(event.step);
    const uint32_t step = place == places_.end() ? kInNoStep : static_cast<uint32_t>(place->second);
    auto& of_rank = executions->ms_by_rank[rank];
    if (of_rank.empty() || of_rank.back().first != step) of_rank.emplace_back(step, 0);
    of_rank.back().second += static_cast<float>(ms);
  }

  void Summarise(Executions* executions) {
    Operation& row = executions->row;
    const auto ranks = static_cast<double>(ranks_.size());
    row.set_mean_of_ranks_ms(row.total_ms() / ranks);
    std::vector<double> by_step(steps_.steps.size()), distances;
    for (const auto& [rank, all] : executions->ms_by_rank) {
      double whole_ms = 0;
      std::vector<double> own(by_step.size());
      for (const auto& [step, ms] : all) {
        whole_ms += ms;
        if (step != kInNoStep) own[step] += ms;
      }
      if (whole_ms > row.most_ms()) {
        row.set_most_rank(rank);
        row.set_most_ms(whole_ms);
      }
      if (by_step.empty()) continue;
      const double median_ms = Median(own);
      for (size_t at = 0; at < own.size(); ++at) {
        by_step[at] += own[at] / ranks;
        distances.push_back(std::abs(own[at] - median_ms));
      }
    }
    if (by_step.empty()) return;
    row.set_step_ms(Median(by_step));
    if (row.role() == PathKind::TRANSFER) {
      distances.clear();
      for (const double ms : by_step) distances.push_back(std::abs(ms - row.step_ms()));
    }
    row.set_spread_of(static_cast<int64_t>(distances.size()));
    row.set_step_spread_ms(Median(std::move(distances)));
  }

  const PathGraph& graph_;
  const GraphSource& source_;
  const StepTimes& steps_;
  const StepPlaces places_;
  // In a node map: pointers into it stay.
  std::map<Key, Executions> all_;
  // Null for events that are no operation's.
  std::vector<Executions*> of_event_;
  std::set<int64_t> ranks_;
};

}  // namespace

std::string ShownName(absl::string_view name) { return FirstCharacters(name, kMostShown); }

PathKind::Role RoleOfEvent(const PathGraph& graph, const GraphEvent& event, bool communicates) {
  if (communicates) return PathKind::TRANSFER;
  if (graph.lanes[event.lane].kind == TrackKind::kHost) return PathKind::HOST;
  return event.category == EventCategory::kMemcpy || event.category == EventCategory::kMemset
             ? PathKind::COPY
             : PathKind::COMPUTATION;
}

CollectiveEvents::CollectiveEvents(const PathGraph& graph)
    : meetings(MeetingsByEvent(graph)), communicates(graph.events.size()) {
  for (const GraphEdge& edge : graph.edges) {
    const bool is_one = edge.bound_by == BoundBy::kGpuCommunication && edge.event != kNoEvent;
    if (is_one) communicates[edge.event] = true;
  }
}

void DescribeOperations(const PathGraph& graph, const GraphSource& source,
                        const CollectiveEvents& collectives, const CriticalPath& path,
                        const StepTimes& steps, RunReport* report) {
  OperationTable table(graph, source, steps);
  table.Read(collectives);
  table.AddPath(path);
  table.Report(report);
}

std::vector<CombinedStep> WaitsInSteps(const PathGraph& graph, const CollectiveEvents& collectives,
                                       const StepTimes& steps) {
  const std::vector<InstantId>& meetings = collectives.meetings;
  const auto ms = [&](int64_t ps) {
    return static_cast<double>(ps - graph.window_start_ps) * kMsPerPs;
  };
  std::map<std::pair<std::optional<int64_t>, int64_t>, CombinedStep> rows;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    if (meetings[id] == kNoInstant) continue;
    const GraphEvent& event = graph.events[id];
    const int64_t end_ps = event.start_ps + event.duration_ps;
    const int64_t met_ps = std::clamp(graph.Time(meetings[id]), event.start_ps, end_ps);
    std::optional<int64_t> step;
    if (const std::optional<size_t> place = steps.Find(met_ps)) step = steps.steps[*place].step;
    const int64_t rank = graph.LaneOf(id).rank;
    const auto [it, is_new] = rows.try_emplace({step, rank});
    CombinedStep& row = it->second;
    if (step.has_value()) row.set_step(*step);
    row.set_rank(rank);
    const double waited_ms = static_cast<double>(met_ps - event.start_ps) * kMsPerPs;
    row.set_start_ms(is_new ? ms(event.start_ps) : std::min(row.start_ms(), ms(event.start_ps)));
    row.set_end_ms(std::max(row.end_ms(), ms(end_ps)));
    row.set_waited_ms(row.waited_ms() + waited_ms);
    row.set_transfer_ms(row.transfer_ms() + static_cast<double>(end_ps - met_ps) * kMsPerPs);
    if (waited_ms <= row.worst_ms()) continue;
    row.set_worst_ms(waited_ms);
    row.set_worst_op(std::string(graph.EventName(id)));
  }
  std::vector<CombinedStep> waits;
  for (auto& [key, row] : rows) waits.push_back(std::move(row));
  return waits;
}

}  // namespace meridian
