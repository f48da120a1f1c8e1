#include "trace_alignment/collectives/testing/simulated_run.h"

#include <algorithm>
#include <numeric>

#include "absl/types/span.h"

namespace meridian {
namespace {

// One execution after the other; all times are true.
class Simulation {
 public:
  Simulation(const SimulatedRunOptions& options, std::mt19937_64* random)
      : options_(options), random_(random), ranks_(options.nodes * options.devices_per_node) {
    ready_ps_.resize(ranks_);
    start_ps_.resize(ranks_);
    end_ps_.resize(ranks_);
  }

  RunBuilder Run(const std::vector<TrueClock>& clocks) {
    RunBuilder run(options_.nodes, options_.devices_per_node);
    DeclareOps(&run);
    for (int64_t execution = 0; execution < options_.executions; ++execution) {
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        start_ps_[rank] = ready_ps_[rank] + Draw(0, options_.max_compute_ps, random_);
      }
      const uint32_t op = options_.all_reduce_only ? 0 : static_cast<uint32_t>(execution % 5);
      Communicate(op);
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        const TrueClock& clock = clocks[rank / options_.devices_per_node];
        run.Add(
            {op, execution, rank, clock.ShowsPs(start_ps_[rank]), clock.ShowsPs(end_ps_[rank])});
      }
      ready_ps_ = end_ps_;
    }
    return run;
  }

 private:
  void DeclareOps(RunBuilder* run) const {
    std::vector<int64_t> all(ranks_);
    std::iota(all.begin(), all.end(), 0);
    IdGroups neighbours;
    for (size_t rank = 0; rank < ranks_; rank += 2) {
      neighbours.Add(absl::MakeConstSpan(all).subspan(rank, 2));
    }
    std::vector<SourceTargetPair> ring;
    for (int64_t rank = 0; rank < ranks_; ++rank) ring.push_back({rank, (rank + 1) % ranks_});
    std::vector<int64_t> last_first(all.rbegin(), all.rend());
    run->AddOp(CollectiveKind::kAllReduce, {all});
    run->AddOp(CollectiveKind::kAllGather, neighbours);
    run->AddPairsOp(CollectiveKind::kCollectivePermute, ring);
    run->AddOp(CollectiveKind::kCollectiveBroadcast, {last_first});
    run->AddOp(CollectiveKind::kCollectiveReduce, {last_first});
  }

  // Sets the ends: nobody waits for others than it must.
  void Communicate(uint32_t op) {
    const uint32_t root = ranks_ - 1;
    const int64_t last_start_ps = *std::max_element(start_ps_.begin(), start_ps_.end());
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      int64_t awaited_ps = start_ps_[rank];
      if (op == 0 || (op == 4 && rank == root)) awaited_ps = last_start_ps;
      if (op == 1) awaited_ps = start_ps_[std::min(rank ^ 1, root)];
      if (op == 2) awaited_ps = start_ps_[(rank + root) % ranks_];
      if (op == 3) awaited_ps = start_ps_[root];
      end_ps_[rank] =
          std::max(awaited_ps, start_ps_[rank]) + Draw(0, options_.max_transfer_ps, random_);
    }
  }

  const SimulatedRunOptions& options_;
  std::mt19937_64* const random_;
  const uint32_t ranks_;
  // When each rank is free for the next collective, in true time.
  std::vector<int64_t> ready_ps_;
  std::vector<int64_t> start_ps_;
  std::vector<int64_t> end_ps_;
};

}  // namespace

RunBuilder SimulateRun(const SimulatedRunOptions& options, const std::vector<TrueClock>& clocks,
                       std::mt19937_64* random) {
  return Simulation(options, random).Run(clocks);
}

}  // namespace meridian
