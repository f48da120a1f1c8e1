#include "pipeline/operations.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "pipeline/comparison.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// Names may have any length; a page does not.
constexpr size_t kMostShown = 1000;

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

OwnPart::OwnPart(const JobWindow& window)
    : window_(window.steps), is_first_(window.number == 0), all_(FindStepTimes(window.graph)) {
  own_ = OwnOf(all_);
  if (!window_.has_value() || own_.steps.empty()) return;
  if (!is_first_) start_ps_ = own_.steps.front().start_ps;
  if (window.number + 1 < window.count) end_ps_ = own_.steps.back().end_ps;
}

StepTimes OwnPart::StepsOf(const PathGraph& graph) const { return OwnOf(FindStepTimes(graph)); }

StepTimes OwnPart::OwnOf(StepTimes steps) const {
  if (!window_.has_value()) return steps;
  steps.steps.erase(std::remove_if(steps.steps.begin(), steps.steps.end(),
                                   [&](const StepTime& step) { return !HasStep(step.step); }),
                    steps.steps.end());
  if (!is_first_) steps.before_end_ps.reset();
  return steps;
}

void OwnPart::VisitPath(const PathGraph& graph, const CriticalPath& path,
                        absl::FunctionRef<void(const PathPiece&)> visit) const {
  VisitPieces(graph, path, all_, [&](const PathPiece& piece) {
    const bool is_own = piece.step.has_value() ? HasStep(all_.steps[*piece.step].step)
                                               : HasTime(graph.Time(graph.edges[piece.edge].from));
    if (is_own) visit(piece);
  });
}

OperationTable::Executions& OperationTable::Find(const Operation& row) {
  const auto [place, is_new] =
      places_.try_emplace({row.name(), row.kind(), row.has_bytes() ? row.bytes() : 0}, all_.size());
  if (is_new) {
    all_.push_back(std::make_unique<Executions>());
    all_.back()->row = row;
  }
  return *all_[place->second];
}

OperationTable::OfRank& OperationTable::Find(int64_t rank, Executions* executions) {
  if (executions->last == nullptr || executions->last->first != rank) {
    executions->last = &*executions->by_rank.try_emplace(rank).first;
  }
  return executions->last->second;
}

bool OperationTable::Keeps(int64_t step) const {
  // Numbers of steps may all be odd, or tens.
  const uint64_t mixed = static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15 >> 32;
  return (mixed & (keeps_one_of_ - 1)) == 0;
}

void OperationTable::KeepFewer(size_t keeps_one_of) {
  if (keeps_one_of == keeps_one_of_) return;
  keeps_one_of_ = keeps_one_of;
  for (const std::unique_ptr<Executions>& executions : all_) {
    for (auto& [rank, of_rank] : executions->by_rank) {
      auto& kept = of_rank.ms_in_steps;
      const auto is_left_out = [&](const auto& in_step) { return !Keeps(in_step.first); };
      kept.erase(std::remove_if(kept.begin(), kept.end(), is_left_out), kept.end());
    }
  }
}

void OperationTable::AddStep(int64_t step, float ms, OfRank* rank) const {
  if (!Keeps(step)) return;
  auto& kept = rank->ms_in_steps;
  if (kept.empty() || kept.back().first != step) kept.emplace_back(step, 0);
  kept.back().second += ms;
}

void OperationTable::Read(const JobWindow& window, const OwnPart& own,
                          const CollectiveEvents& collectives, const CriticalPath& path) {
  const PathGraph& graph = window.graph;
  absl::flat_hash_map<InstantId, const GraphMeeting*> by_instant;
  for (const GraphMeeting& meeting : graph.meetings) by_instant[meeting.instant] = &meeting;
  absl::flat_hash_set<int64_t> steps;
  for (const StepTime& step : own.steps().steps) steps.insert(step.step);
  // By the name's number, kind and bytes. Null for events that are no operation's.
  absl::flat_hash_map<std::tuple<NameId, int, int64_t>, Executions*> known;
  std::vector<Executions*> of_event(graph.events.size());
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const GraphEvent& event = graph.events[id];
    if (event.duration_ps <= 0 || graph.LaneOf(id).kind != TrackKind::kDevice) continue;
    const bool meets = collectives.meetings[id] != kNoInstant;
    const GraphMeeting* meeting = meets ? by_instant[collectives.meetings[id]] : nullptr;
    const GraphTransfer* transfer =
        meets && meeting->transfer.has_value() ? &*meeting->transfer : nullptr;
    const auto [it, is_new] =
        known.try_emplace({event.name, transfer == nullptr ? -1 : static_cast<int>(transfer->kind),
                           transfer == nullptr ? 0 : transfer->bytes},
                          nullptr);
    if (is_new) {
      Operation row;
      row.set_name(ShownName(graph.names.Get(event.name)));
      row.set_role(RoleOfEvent(graph, event, collectives.communicates[id] || meets));
      if (transfer != nullptr) {
        row.set_kind(std::string(CollectiveKindName(transfer->kind)));
        if (transfer->bytes > 0) row.set_bytes(transfer->bytes);
      }
      const auto origin = window.source.origins.find(std::string(graph.names.Get(event.name)));
      if (origin != window.source.origins.end()) {
        row.set_framework_op(origin->second.framework_op);
        row.set_source(origin->second.source);
      }
      it->second = &Find(row);
    }
    Executions& executions = *it->second;
    // Of work beside the window only the path counts: the end of a step may lie within it.
    of_event[id] = &executions;
    if (!own.HasEvent(event)) continue;
    const int64_t rank = graph.LaneOf(id).rank;
    ranks_.insert(rank);
    const int64_t end_ps = event.start_ps + event.duration_ps;
    const int64_t start_ps =
        meets ? std::clamp(graph.Time(meeting->instant), event.start_ps, end_ps) : event.start_ps;
    const double ms = static_cast<double>(end_ps - start_ps) * kMsPerPs;
    executions.row.set_count(executions.row.count() + 1);
    executions.row.set_total_ms(executions.row.total_ms() + ms);
    OfRank& of_rank = Find(rank, &executions);
    of_rank.whole_ms += ms;
    if (steps.contains(event.step)) AddStep(event.step, static_cast<float>(ms), &of_rank);
  }
  // Waiting for others on the path is not theirs.
  own.VisitPath(graph, path, [&](const PathPiece& piece) {
    const GraphEventId event = graph.edges[piece.edge].event;
    const bool is_own =
        piece.bound_by == BoundBy::kGpuCompute || piece.bound_by == BoundBy::kGpuCommunication;
    if (!is_own || event == kNoEvent || of_event[event] == nullptr) return;
    Operation& row = of_event[event]->row;
    row.set_path_ms(row.path_ms() + static_cast<double>(piece.time_ps) * kMsPerPs);
  });
}

void OperationTable::Merge(OperationTable other, size_t steps) {
  size_t keeps_one_of = std::max(keeps_one_of_, other.keeps_one_of_);
  while (steps > kMostSteps * keeps_one_of) keeps_one_of *= 2;
  KeepFewer(keeps_one_of);
  for (const std::unique_ptr<Executions>& added : other.all_) {
    Operation sum = added->row;
    sum.clear_count();
    sum.clear_total_ms();
    sum.clear_path_ms();
    Executions& executions = Find(sum);
    Operation& row = executions.row;
    row.set_count(row.count() + added->row.count());
    row.set_total_ms(row.total_ms() + added->row.total_ms());
    row.set_path_ms(row.path_ms() + added->row.path_ms());
    for (const auto& [rank, from] : added->by_rank) {
      OfRank& of_rank = Find(rank, &executions);
      of_rank.whole_ms += from.whole_ms;
      for (const auto& [step, ms] : from.ms_in_steps) AddStep(step, ms, &of_rank);
    }
  }
  ranks_.merge(other.ranks_);
}

void OperationTable::Report(const std::vector<StepTime>& steps, RunReport* report) {
  absl::flat_hash_map<int64_t, size_t> places;
  for (const StepTime& step : steps) {
    if (Keeps(step.step)) places.try_emplace(step.step, places.size());
  }
  std::vector<Executions*> rows;
  for (const std::unique_ptr<Executions>& executions : all_) {
    if (executions->row.count() > 0) rows.push_back(executions.get());
  }
  absl::c_stable_sort(rows, [](const Executions* a, const Executions* b) {
    return a->row.total_ms() > b->row.total_ms();
  });
  rows.resize(std::min(rows.size(), kMostOperations));
  for (Executions* executions : rows) {
    Summarise(places, executions);
    *report->add_operations() = std::move(executions->row);
  }
}

void OperationTable::Summarise(const absl::flat_hash_map<int64_t, size_t>& places,
                               Executions* executions) const {
  Operation& row = executions->row;
  const auto ranks = static_cast<double>(ranks_.size());
  row.set_mean_of_ranks_ms(row.total_ms() / ranks);
  std::vector<double> by_step(places.size()), distances;
  for (const auto& [rank, all] : executions->by_rank) {
    if (all.whole_ms > row.most_ms()) {
      row.set_most_rank(rank);
      row.set_most_ms(all.whole_ms);
    }
    if (by_step.empty()) continue;
    std::vector<double> own(by_step.size());
    for (const auto& [step, ms] : all.ms_in_steps) own[places.at(step)] += ms;
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

std::vector<CombinedStep> WaitsInSteps(const PathGraph& graph, const CollectiveEvents& collectives,
                                       const OwnPart& own) {
  const StepTimes& steps = own.all_steps();
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
    if (step.has_value() ? !own.HasStep(*step) : !own.HasTime(met_ps)) continue;
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
