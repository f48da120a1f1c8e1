#include "cluster/replay/rank_replayer.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// How long a rank computes between two looks at the transfers under way.
constexpr int64_t kSliceNs = 5'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t ReadNs(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

// All processes of a machine read the same clock, so that no end comes before a start there.
int64_t NowNs() { return ReadNs(CLOCK_REALTIME); }
// For how long something takes, should that clock be set meanwhile.
int64_t SteadyNs() { return ReadNs(CLOCK_MONOTONIC); }

void SpinTurns(int64_t turns) {
  volatile uint64_t state = 1;
  for (int64_t i = 0; i < turns; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
}

// Takes the thread's own time, which does not count while others have the core.
double MeasureTurnsPerUs() {
  constexpr int64_t kTurns = 200'000;
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const int64_t begin_ns = ReadNs(CLOCK_THREAD_CPUTIME_ID);
    SpinTurns(kTurns);
    const int64_t took_ns = std::max<int64_t>(1, ReadNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
    best = std::max(best, kTurns * 1e3 / static_cast<double>(took_ns));
  }
  return best;
}

}  // namespace

void Transport::Rest() { sched_yield(); }

RankReplayer::RankReplayer(const ExecutionGraph& graph, const ReplayerOptions& options,
                           Transport* transport)
    : graph_(graph),
      options_(options),
      transport_(*transport),
      issue_order_(graph, transport->rank(),
                   [transport](NodeIndex node) { return transport->IsQueued(node); }) {
  if (options.compute == ComputeMode::kBusy) turns_per_us_ = MeasureTurnsPerUs();
  last_progress_ns_ = SteadyNs();
}

absl::Status RankReplayer::Meet() {
  transport_.EnterBarrier();
  while (true) {
    ASSIGN_OR_RETURN(const bool passed, transport_.Passed());
    if (passed) return absl::OkStatus();
    sched_yield();
    RETURN_IF_ERROR(Watch());
  }
}

absl::StatusOr<ReplayedStep> RankReplayer::RunStep() {
  RETURN_IF_ERROR(Meet());
  // Gaps take no time without computation.
  issue_order_.Restart(/*waits_for_gaps=*/is_connected_ && options_.compute != ComputeMode::kNone);
  ReplayedStep step;
  step.nodes.resize(issue_order_.node_count());
  step.span.start_ns = NowNs();
  last_progress_ns_ = SteadyNs();
  std::vector<Transport::Finished> finished;
  while (!issue_order_.done()) {
    const NodeIndex gap = issue_order_.awaited_gap();
    if (gap != kNoNodeIndex && transport_.IsAboutToEnd(gap)) issue_order_.Pass(gap);
    for (const NodeIndex node : issue_order_.TakeIssuable()) RETURN_IF_ERROR(Issue(node, &step));
    finished.clear();
    if (transfers_ > 0) RETURN_IF_ERROR(transport_.Poll(&finished));
    transfers_ -= static_cast<int64_t>(finished.size());
    for (const Transport::Finished& node : finished) Finish(node, &step);
    if (!computations_.empty()) {
      Compute(&step);
    } else if (finished.empty() && issue_order_.awaited_gap() == kNoNodeIndex) {
      transport_.Rest();
    } else if (finished.empty()) {
      // Ranks that share a core come to their turn.
      sched_yield();
    }
    RETURN_IF_ERROR(Watch());
  }
  is_connected_ = true;
  step.span.end_ns = step.span.start_ns;
  for (const ReplayedTimes& node : step.nodes) {
    step.span.end_ns = std::max(step.span.end_ns, node.end_ns);
  }
  return step;
}

absl::Status RankReplayer::Issue(NodeIndex node, ReplayedStep* step) {
  last_progress_ns_ = SteadyNs();
  step->nodes[node - issue_order_.first_node()].start_ns = NowNs();
  const bool communicates = graph_.communication(node) != nullptr;
  const int64_t duration_ns =
      communicates || options_.compute == ComputeMode::kNone ? 0 : graph_.duration_ns(node);
  if (communicates || transport_.IsQueued(node)) {
    ++transfers_;
    return transport_.Start(node, duration_ns);
  }
  if (duration_ns == 0) {
    Finish({node, std::nullopt}, step);
  } else {
    computations_.push_back({node, duration_ns, last_progress_ns_ + duration_ns});
  }
  return absl::OkStatus();
}

void RankReplayer::Finish(const Transport::Finished& finished, ReplayedStep* step) {
  last_progress_ns_ = SteadyNs();
  ReplayedTimes& times = step->nodes[finished.node - issue_order_.first_node()];
  times = finished.times.value_or(ReplayedTimes{times.start_ns, NowNs()});
  issue_order_.Finish(finished.node);
}

void RankReplayer::Compute(ReplayedStep* step) {
  // Those of several streams take turns.
  std::rotate(computations_.begin(), computations_.begin() + 1, computations_.end());
  Computation& computation = computations_.back();
  if (options_.compute == ComputeMode::kBusy) {
    const int64_t slice_ns = std::min(computation.rest_ns, kSliceNs);
    SpinTurns(static_cast<int64_t>(static_cast<double>(slice_ns) * turns_per_us_ / 1e3));
    computation.rest_ns -= slice_ns;
  } else {
    computation.rest_ns = computation.deadline_ns - SteadyNs();
    if (computation.rest_ns > kSliceNs && transfers_ == 0 && computations_.size() == 1) {
      const int64_t sleep_ns = std::min(computation.rest_ns, kNsPerSecond / 10);
      const timespec time = {0, static_cast<long>(sleep_ns)};  // NOLINT: the type of tv_nsec
      nanosleep(&time, nullptr);
    } else {
      sched_yield();
    }
    computation.rest_ns = computation.deadline_ns - SteadyNs();
  }
  if (computation.rest_ns > 0) return;
  const NodeIndex node = computation.node;
  computations_.pop_back();
  Finish({node, std::nullopt}, step);
}

absl::Status RankReplayer::Watch() const {
  const int64_t waited_ns = SteadyNs() - last_progress_ns_;
  if (!computations_.empty() || waited_ns < options_.timeout_ns) return absl::OkStatus();
  const std::set<NodeIndex>& nodes = issue_order_.under_way();
  return absl::AbortedError(absl::StrCat(
      "deadlock: nothing has moved for ", waited_ns / kNsPerSecond, " s: ",
      nodes.empty()
          ? absl::StrCat("rank ", transport_.rank(), " waits at the barrier between two repeats")
          : absl::StrCat(graph_.Describe(*nodes.begin()), " waits")));
}

}  // namespace meridian
