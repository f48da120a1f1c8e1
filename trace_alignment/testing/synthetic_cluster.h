// SPDX-License-Identifier: Apache-2.0
// A made-up run of many nodes: what really happened, and what the nodes' clocks are worth.
//
//   true time       the host clock of node 0, the reference
//   host clock S    of node n: true time + skew + drift + wander
//   tracer clock R  of node n: counts from the node's boot, at a rate of its own
//
// A profiler reads both clocks once, when the session begins, as W and G; from then on it stamps
// device events A = W + (R - G). That is off S by what R has gained on it since.
//
// In each step every rank runs one program: for each collective of it, compute, then communicate.
// Nobody waits for others than the collective's kind asks for.
#ifndef TRACE_ALIGNMENT_TESTING_SYNTHETIC_CLUSTER_H_
#define TRACE_ALIGNMENT_TESTING_SYNTHETIC_CLUSTER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// An instruction of the program.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Ranks in a group; divides their number. 0: all of them. A permute goes around each group, and
  // the first of a group is the root of a broadcast or reduce.
  int64_t group_size = 0;
  // Groups of neighbours, as {0,1},{2,3}; or, when strided, of ranks far apart, as {0,2},{1,3}.
  bool strided = false;
};

// Returns one spec of each kind that HLO has groups or pairs for, some in groups of `group_size`.
std::vector<CollectiveSpec> OneOfEach(int64_t group_size);

// A rank that comes late: in every `every`-th step it computes longer by `delay_ns`.
struct Straggler {
  int64_t rank = 0;
  int64_t delay_ns = 0;
  int64_t every = 1;
};

struct ClusterOptions {
  uint64_t seed = 1;
  int64_t nodes = 2;
  int64_t devices_per_node = 1;

  // The program, and how often it runs.
  std::vector<CollectiveSpec> collectives = {{}};
  int64_t steps = 8;
  // Before each collective a rank computes for so long, and up to the jitter longer; then the step
  // rests.
  int64_t compute_ns = 100'000;
  int64_t compute_jitter_ns = 50'000;
  // Computing is so many kernels of one length; at least 1.
  int64_t compute_kernels = 1;
  int64_t rest_ns = 200'000;
  std::vector<Straggler> stragglers;
  // A member ends so long after all that it waits for have started, and up to the jitter later.
  int64_t transfer_ns = 40'000;
  int64_t end_jitter_ns = 2'000;
  // Each rank, by its place in the ring, always ends up to so much later.
  int64_t max_end_bias_ns = 0;

  // Unix time of the reference when true time is 0 and its session begins. The last node's begins
  // so much later, the others' in between; what starts before is not in a node's profile.
  int64_t start_ns = 1'794'701'451'406'144'825;
  int64_t session_spread_ns = 1'500'000;
  // From true time 0 to the first step.
  int64_t warm_up_ns = 2'000'000;

  // The host clock of each node, of which node 0's is right. Empty: drawn within the limits below.
  std::vector<TrueClock> host_clocks;
  int64_t max_skew_ns = 0;
  int64_t max_drift_ppb = 0;
  int64_t max_wander_ppb = 0;
  // How fast tracers may drift against their host.
  int64_t max_tracer_drift_ppb = 0;
};

// A rank's part in a collective of a step, in true time.
struct ClusterWork {
  int64_t compute_start_ps = 0;
  // Computing ends when communication starts.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

// The clocks of a node; true times and what the host clock shows count from start_ns.
struct ClusterNode {
  TrueClock host;
  // What the tracer shows since its boot, less what it showed at true time 0.
  TrueClock tracer;
  int64_t boot_ps = 0;
  // When the session and the tracer start, in true time.
  int64_t session_start_ps = 0;
  int64_t tracer_start_ps = 0;
  // W and G, as the profiler read them when the tracer started.
  int64_t start_walltime_ns = 0;
  int64_t start_gpu_ns = 0;
};

class SyntheticCluster {
 public:
  explicit SyntheticCluster(ClusterOptions options);

  const ClusterOptions& options() const { return options_; }
  int64_t ranks() const { return options_.nodes * options_.devices_per_node; }
  const ClusterNode& node(int64_t node) const { return nodes_[node]; }

  // The groups of a collective, or a permute's pairs, as ranks.
  const IdGroups& groups(size_t collective) const { return groups_[collective]; }
  std::vector<SourceTargetPair> Pairs(size_t collective) const;

  const ClusterWork& Work(int64_t step, size_t collective, int64_t rank) const {
    return work_[(step * options_.collectives.size() + collective) * ranks() + rank];
  }
  // When a step begins on a rank.
  int64_t StepStartPs(int64_t step, int64_t rank) const {
    return Work(step, 0, rank).compute_start_ps;
  }
  // When the last work ends.
  int64_t end_ps() const { return end_ps_; }

  // What a node's clocks show: S and A from start_ns, R from its boot.
  int64_t HostPs(int64_t node, int64_t true_ps) const { return nodes_[node].host.ShowsPs(true_ps); }
  int64_t TracerPs(int64_t node, int64_t true_ps) const;
  int64_t FilePs(int64_t node, int64_t true_ps) const;

  // S of the node minus S of the reference.
  int64_t OffsetPs(int64_t node, int64_t true_ps) const { return HostPs(node, true_ps) - true_ps; }

 private:
  void MakeClocks(std::mt19937_64* random);
  void ReadClocksAtStart();
  void DoWork(std::mt19937_64* random);
  // Sets the ends of the members of a collective in a step.
  void Communicate(int64_t step, size_t collective, std::mt19937_64* random);

  ClusterWork& MutableWork(int64_t step, size_t collective, int64_t rank) {
    return work_[(step * options_.collectives.size() + collective) * ranks() + rank];
  }

  const ClusterOptions options_;
  std::vector<ClusterNode> nodes_;
  // The groups of each collective.
  std::vector<IdGroups> groups_;
  // How much later than others each rank always ends.
  std::vector<int64_t> end_bias_ns_;
  // What Work() looks up: by step, then collective, then rank.
  std::vector<ClusterWork> work_;
  int64_t end_ps_ = 0;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_SYNTHETIC_CLUSTER_H_
