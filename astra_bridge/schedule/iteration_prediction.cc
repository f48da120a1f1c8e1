#include "astra_bridge/schedule/iteration_prediction.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/job_layout.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// About 146 years.
constexpr double kMaxEdgeNs = 4.6e18;
// Snapshots are collected anew when a larger share of the edges runs beside others than before.
constexpr double kMaxChangedShare = 0.05;

absl::StatusOr<std::vector<int64_t>> ToNs(const std::vector<CommEdge>& edges,
                                          absl::Span<const double> seconds) {
  std::vector<int64_t> edge_ns;
  edge_ns.reserve(seconds.size());
  for (size_t edge = 0; edge < seconds.size(); ++edge) {
    const double ns = seconds[edge] * kNsPerSecond;
    if (!(ns >= 0 && ns < kMaxEdgeNs)) {
      return absl::OutOfRangeError(absl::StrCat("edge ", Printable(edges[edge].id), " would take ",
                                                seconds[edge],
                                                " s; check bandwidth and latency of the network"));
    }
    edge_ns.push_back(std::llround(ns));
  }
  return edge_ns;
}

// Carries out the passes.
class Predictor {
 public:
  Predictor(const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
            const IterationOptions& options)
      : setup_(setup), graph_(graph), match_(match), options_(options) {}

  absl::StatusOr<std::unique_ptr<IterationPrediction>> Run() {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(FindEdges());
    RETURN_IF_ERROR(ScheduleIsolated());
    if (options_.mode == TimingMode::kSnapshot) RETURN_IF_ERROR(ScheduleSnapshots());
    IterationCost& cost = result_->cost;
    cost.collecting =
        absl::Now() - begin - cost.timing_edges - cost.timing_snapshots - cost.replaying;
    return std::move(result_);
  }

 private:
  absl::Status FindEdges() {
    ASSIGN_OR_RETURN(result_->edges, FindWorkloadEdges(graph_, match_));
    RETURN_IF_ERROR(PlaceEdges(setup_.layout, &result_->edges.edges));
    result_->timer = std::make_unique<TrafficSnapshotTimer>(*setup_.timing, result_->edges.edges,
                                                            options_.threads);
    return absl::OkStatus();
  }

  absl::Status ScheduleIsolated() {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(result_->timer->TimeEdges(Progress("timing edges")));
    result_->cost.timing_edges = absl::Now() - begin;
    for (CommEdgeIndex edge = 0; edge < result_->edges.edges.size(); ++edge) {
      result_->seconds.push_back(result_->timer->isolated(edge).seconds);
    }
    RETURN_IF_ERROR(Schedule());
    result_->isolated_makespan_ns = result_->schedule.replay.makespan_ns;
    return absl::OkStatus();
  }

  absl::Status ScheduleSnapshots() {
    takes_part_ = EdgesInTrafficSnapshots(result_->edges.edges, options_.coalesce_below_bytes);
    ASSIGN_OR_RETURN(const EdgeDomains domains, FindDomains());
    RETURN_IF_ERROR(FoldOnce(domains));
    result_->changed_share = ChangedShare(
        ConcurrencyFingerprints(result_->snapshot_intervals, takes_part_),
        ConcurrencyFingerprints(result_->schedule.intervals, takes_part_), takes_part_);
    if (result_->changed_share <= kMaxChangedShare) return absl::OkStatus();
    return FoldOnce(domains);
  }

  absl::StatusOr<EdgeDomains> FindDomains() const {
    const std::vector<CommEdge>& edges = result_->edges.edges;
    if (options_.partition == TrafficSnapshotPartition::kNone)
      return EdgeDomains::OneForAll(edges.size());
    return EdgeDomains::Find(edges, options_.partition, *setup_.fabrics);
  }

  // Takes the snapshots of the schedule so far, folds the times in them, and schedules anew.
  absl::Status FoldOnce(const EdgeDomains& domains) {
    result_->snapshot_intervals = std::move(result_->schedule.intervals);
    ASSIGN_OR_RETURN(result_->snapshots,
                     CollectTrafficSnapshots(result_->snapshot_intervals, takes_part_, domains));
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(result_->batches, result_->timer->TimeSnapshots(result_->snapshots,
                                                                     Progress("timing snapshots")));
    result_->cost.timing_snapshots += absl::Now() - begin;
    result_->seconds = FoldEdgeTimes(*result_->timer, result_->snapshots, result_->batches);
    RETURN_IF_ERROR(Schedule());
    ++result_->extractions;
    return absl::OkStatus();
  }

  // Schedules with the seconds so far.
  absl::Status Schedule() {
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ns,
                     ToNs(result_->edges.edges, result_->seconds));
    ASSIGN_OR_RETURN(result_->schedule,
                     ScheduleEdges(graph_, match_, result_->edges, edge_ns, options_.resources));
    result_->cost.replaying += absl::Now() - begin;
    return absl::OkStatus();
  }

  std::function<void(uint64_t, uint64_t)> Progress(absl::string_view stage) const {
    return [this, stage](uint64_t done, uint64_t total) {
      if (options_.progress != nullptr) options_.progress(stage, done, total);
    };
  }

  const TimingSetup& setup_;
  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const IterationOptions& options_;
  std::vector<bool> takes_part_;
  std::unique_ptr<IterationPrediction> result_ = std::make_unique<IterationPrediction>();
};

}  // namespace

absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictIteration(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    const IterationOptions& options) {
  return Predictor(setup, graph, match, options).Run();
}

}  // namespace meridian
