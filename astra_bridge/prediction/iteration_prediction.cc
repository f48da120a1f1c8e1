#include "astra_bridge/prediction/iteration_prediction.h"

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
// Traffic intervals are collected anew when a larger share of the edges runs beside others than before.
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
    RETURN_IF_ERROR(ReplayIsolated());
    if (options_.mode == TimingMode::kSnapshot) RETURN_IF_ERROR(ReplayTogether());
    IterationCost& cost = result_->cost;
    cost.collecting =
        absl::Now() - begin - cost.timing_edges - cost.timing_traffic - cost.replaying;
    return std::move(result_);
  }

 private:
  absl::Status FindEdges() {
    ASSIGN_OR_RETURN(result_->edges, FindWorkloadEdges(graph_, match_));
    RETURN_IF_ERROR(PlaceEdges(setup_.layout, &result_->edges.edges));
    result_->timer = std::make_unique<TrafficIntervalTimer>(*setup_.timing, result_->edges.edges,
                                                            options_.threads);
    return absl::OkStatus();
  }

  absl::Status ReplayIsolated() {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(result_->timer->TimeEdges(Progress()));
    result_->cost.timing_edges = absl::Now() - begin;
    for (CommEdgeIndex edge = 0; edge < result_->edges.edges.size(); ++edge) {
      result_->seconds.push_back(result_->timer->isolated(edge).seconds);
    }
    RETURN_IF_ERROR(Replay());
    result_->isolated_makespan_ns = result_->times.replay.makespan_ns;
    return absl::OkStatus();
  }

  absl::Status ReplayTogether() {
    takes_part_ = EdgesInTrafficIntervals(result_->edges.edges, options_.coalesce_below_bytes);
    ASSIGN_OR_RETURN(const EdgeDomains domains, FindDomains());
    RETURN_IF_ERROR(FoldOnce(domains));
    result_->changed_share =
        ChangedShare(ConcurrencyFingerprints(result_->edge_intervals, takes_part_),
                     ConcurrencyFingerprints(result_->times.intervals, takes_part_), takes_part_);
    if (result_->changed_share <= kMaxChangedShare) return absl::OkStatus();
    return FoldOnce(domains);
  }

  absl::StatusOr<EdgeDomains> FindDomains() const {
    const std::vector<CommEdge>& edges = result_->edges.edges;
    if (options_.partition == TrafficPartition::kNone) return EdgeDomains::OneForAll(edges.size());
    return EdgeDomains::Find(edges, options_.partition, *setup_.fabrics);
  }

  // Takes the traffic intervals of the replay so far, folds the times in them, and replays anew.
  absl::Status FoldOnce(const EdgeDomains& domains) {
    result_->edge_intervals = std::move(result_->times.intervals);
    ASSIGN_OR_RETURN(result_->traffic,
                     CollectTrafficIntervals(result_->edge_intervals, takes_part_, domains));
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(result_->batches, result_->timer->TimeIntervals(result_->traffic, Progress()));
    result_->cost.timing_traffic += absl::Now() - begin;
    result_->seconds = FoldEdgeTimes(*result_->timer, result_->traffic, result_->batches);
    RETURN_IF_ERROR(Replay());
    ++result_->extractions;
    return absl::OkStatus();
  }

  // Replays the workload with the seconds so far.
  absl::Status Replay() {
    const absl::Time begin = absl::Now();
    ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ns,
                     ToNs(result_->edges.edges, result_->seconds));
    ASSIGN_OR_RETURN(result_->times,
                     ReplayEdges(graph_, match_, result_->edges, edge_ns, options_.resources));
    result_->cost.replaying += absl::Now() - begin;
    return absl::OkStatus();
  }

  std::function<void(uint64_t)> Progress() {
    return [this, before = timed_](uint64_t done) {
      timed_ = before + done;
      if (options_.progress) options_.progress(timed_);
    };
  }

  const TimingSetup& setup_;
  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const IterationOptions& options_;
  std::vector<bool> takes_part_;
  // How many edges and batches have been timed.
  uint64_t timed_ = 0;
  std::unique_ptr<IterationPrediction> result_ = std::make_unique<IterationPrediction>();
};

}  // namespace

absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictIteration(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    const IterationOptions& options) {
  return Predictor(setup, graph, match, options).Run();
}

}  // namespace meridian
