#include "trace_alignment/testing/synthetic_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr int64_t kPsPerSecond = 1'000'000'000'000;

// Tracers count from a boot some days ago; below 10^15 ns, as most do in practice.
constexpr int64_t kUptimePs = 259'200 * kPsPerSecond;
// From the session's start until the tracer is read.
constexpr int64_t kTracerDelayPs = 250'000 * kPsPerNs;

IdGroups MakeGroups(const CollectiveSpec& spec, int64_t ranks) {
  const int64_t size = spec.group_size == 0 ? ranks : spec.group_size;
  MERIDIAN_CHECK(size > 0 && ranks % size == 0);
  IdGroups groups;
  std::vector<int64_t> members(size);
  for (int64_t group = 0; group < ranks / size; ++group) {
    for (int64_t m = 0; m < size; ++m) {
      members[m] = spec.strided ? m * (ranks / size) + group : group * size + m;
    }
    groups.Add(absl::MakeConstSpan(members));
  }
  return groups;
}

}  // namespace

std::vector<CollectiveSpec> OneOfEach(int64_t group_size) {
  return {{CollectiveKind::kAllReduce, 0, false},
          {CollectiveKind::kAllGather, group_size, false},
          {CollectiveKind::kReduceScatter, group_size, true},
          {CollectiveKind::kAllToAll, group_size, true},
          {CollectiveKind::kCollectivePermute, 0, false},
          {CollectiveKind::kCollectiveBroadcast, 0, false},
          {CollectiveKind::kCollectiveReduce, 0, false}};
}

SyntheticCluster::SyntheticCluster(ClusterOptions options) : options_(std::move(options)) {
  MERIDIAN_CHECK(options_.nodes > 0 && options_.devices_per_node > 0 && options_.steps >= 0 &&
                 !options_.collectives.empty());
  std::mt19937_64 random(options_.seed);
  for (const CollectiveSpec& spec : options_.collectives) {
    groups_.push_back(MakeGroups(spec, ranks()));
  }
  DoWork(&random);
  MakeClocks(&random);
  ReadClocksAtStart();
}

std::vector<SourceTargetPair> SyntheticCluster::Pairs(size_t collective) const {
  std::vector<SourceTargetPair> pairs;
  if (!HasPairs(options_.collectives[collective].kind)) return pairs;
  for (size_t g = 0; g < groups_[collective].size(); ++g) {
    const absl::Span<const int64_t> group = groups_[collective][g];
    for (size_t m = 0; m < group.size(); ++m) {
      pairs.push_back({group[m], group[(m + 1) % group.size()]});
    }
  }
  return pairs;
}

int64_t SyntheticCluster::TracerPs(int64_t node, int64_t true_ps) const {
  return nodes_[node].boot_ps + nodes_[node].tracer.ShowsPs(true_ps);
}

int64_t SyntheticCluster::FilePs(int64_t node, int64_t true_ps) const {
  const ClusterNode& clocks = nodes_[node];
  return (clocks.start_walltime_ns - options_.start_ns) * kPsPerNs +
         (TracerPs(node, true_ps) - clocks.start_gpu_ns * kPsPerNs);
}

void SyntheticCluster::MakeClocks(std::mt19937_64* random) {
  MERIDIAN_CHECK(options_.host_clocks.empty() ||
                 static_cast<int64_t>(options_.host_clocks.size()) == options_.nodes);
  nodes_.resize(options_.nodes);
  for (int64_t n = 0; n < options_.nodes; ++n) {
    ClusterNode& node = nodes_[n];
    if (!options_.host_clocks.empty()) {
      node.host = options_.host_clocks[n];
    } else if (n > 0) {
      node.host.offset_ps = Draw(-options_.max_skew_ns, options_.max_skew_ns, random) * kPsPerNs;
      node.host.drift_ppb = Draw(-options_.max_drift_ppb, options_.max_drift_ppb, random);
      node.host.wander_ps = RandomWander(options_.max_wander_ppb, end_ps_, random);
    }
    // Against true time, the tracer has its host's drift and its own; both are small.
    node.tracer.drift_ppb = node.host.drift_ppb + Draw(-options_.max_tracer_drift_ppb,
                                                       options_.max_tracer_drift_ppb, random);
    node.boot_ps = kUptimePs + n * 3600 * kPsPerSecond;
  }
}

void SyntheticCluster::ReadClocksAtStart() {
  const int64_t last = std::max<int64_t>(1, options_.nodes - 1);
  for (int64_t n = 0; n < options_.nodes; ++n) {
    ClusterNode& node = nodes_[n];
    node.session_start_ps = options_.session_spread_ns * kPsPerNs / last * n;
    node.tracer_start_ps = node.session_start_ps + kTracerDelayPs;
    node.start_walltime_ns = options_.start_ns + FloorToNs(HostPs(n, node.tracer_start_ps));
    node.start_gpu_ns = FloorToNs(TracerPs(n, node.tracer_start_ps));
  }
}

void SyntheticCluster::DoWork(std::mt19937_64* random) {
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    end_bias_ns_.push_back(Draw(0, options_.max_end_bias_ns, random));
  }
  work_.resize(options_.steps * options_.collectives.size() * ranks());
  std::vector<int64_t> ready_ps(ranks(), options_.warm_up_ns * kPsPerNs);
  for (int64_t step = 0; step < options_.steps; ++step) {
    for (size_t c = 0; c < options_.collectives.size(); ++c) {
      for (int64_t rank = 0; rank < ranks(); ++rank) {
        ClusterWork& work = MutableWork(step, c, rank);
        work.compute_start_ps = ready_ps[rank];
        work.start_ps =
            ready_ps[rank] +
            (options_.compute_ns + Draw(0, options_.compute_jitter_ns, random)) * kPsPerNs;
      }
      if (c == 0) {
        for (const Straggler& straggler : options_.stragglers) {
          if (step % straggler.every != 0) continue;
          MutableWork(step, c, straggler.rank).start_ps += straggler.delay_ns * kPsPerNs;
        }
      }
      Communicate(step, c, random);
      for (int64_t rank = 0; rank < ranks(); ++rank) ready_ps[rank] = Work(step, c, rank).end_ps;
    }
    for (int64_t& ready : ready_ps) ready += options_.rest_ns * kPsPerNs;
  }
  end_ps_ = *std::max_element(ready_ps.begin(), ready_ps.end());
}

void SyntheticCluster::Communicate(int64_t step, size_t collective, std::mt19937_64* random) {
  const CollectiveKind kind = options_.collectives[collective].kind;
  const IdGroups& groups = groups_[collective];
  for (size_t g = 0; g < groups.size(); ++g) {
    const absl::Span<const int64_t> group = groups[g];
    const auto start_ps = [&](size_t member) {
      return Work(step, collective, group[member]).start_ps;
    };
    int64_t last_start_ps = start_ps(0);
    for (size_t m = 1; m < group.size(); ++m) {
      last_start_ps = std::max(last_start_ps, start_ps(m));
    }
    for (size_t m = 0; m < group.size(); ++m) {
      int64_t awaited_ps = last_start_ps;
      if (kind == CollectiveKind::kCollectivePermute) {
        awaited_ps = start_ps((m + group.size() - 1) % group.size());
      } else if (kind == CollectiveKind::kCollectiveBroadcast) {
        awaited_ps = start_ps(0);
      } else if (kind == CollectiveKind::kCollectiveReduce && m != 0) {
        awaited_ps = start_ps(m);
      }
      MutableWork(step, collective, group[m]).end_ps =
          std::max(awaited_ps, start_ps(m)) + (options_.transfer_ns + end_bias_ns_[group[m]] +
                                               Draw(0, options_.end_jitter_ns, random)) *
                                                  kPsPerNs;
    }
  }
}

}  // namespace meridian
