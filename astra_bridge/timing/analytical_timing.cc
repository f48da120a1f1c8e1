#include "astra_bridge/timing/analytical_timing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/timing/edge_workload.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Algorithm = CollectiveAlgorithm::Kind;

// Returns how long one message takes that has the network to itself: hops * latency + bytes /
// bandwidth of the lowest dimension in which the two devices differ, which is all that AstraSim
// charges.
double MessageDelayNs(const NetworkConfig& network, int32_t from, int32_t to, double bytes) {
  for (const NetworkDimension& dimension : network.dimensions) {
    const int32_t hops = HopsBetween(dimension, from % dimension.npus, to % dimension.npus);
    if (hops > 0) return hops * dimension.latency_ns + bytes / dimension.bytes_per_ns;
    from /= dimension.npus;
    to /= dimension.npus;
  }
  return 0;
}

// How long a phase takes on a network.
class PhaseCost {
 public:
  PhaseCost(const NetworkConfig& network, const PhaseOutline& phase, std::vector<int32_t> members)
      : network_(network), phase_(phase), members_(std::move(members)), n_(members_.size()) {}

  // Returns how long a phase takes that begins with so many bytes per rank.
  absl::StatusOr<double> Ns(double bytes) const {
    ASSIGN_OR_RETURN(const std::vector<Step> steps, StepsOf(bytes));
    const double delay = static_cast<double>(phase_.endpoint_delay_ns);
    double ns = delay;
    for (const Step& step : steps) ns += step.times * (StepNs(step) + delay);
    return ns;
  }

 private:
  // Messages that all members send at once to those so many places ahead, and how often they do.
  struct Step {
    double times;
    size_t places;
    double bytes;
  };

  absl::StatusOr<std::vector<Step>> StepsOf(double bytes) const {
    const double n = static_cast<double>(n_);
    const double ways = phase_.op == CollectiveKind::kAllReduce ? 2 : 1;
    const double message = phase_.op == CollectiveKind::kAllGather ? bytes : bytes / n;
    std::vector<Step> steps;
    switch (phase_.algorithm.kind) {
      case Algorithm::kRing:
        if (phase_.op == CollectiveKind::kAllToAll) return {{{n * (n - 1) / 2, 1, message}}};
        return {{{ways * (n - 1), 1, message}}};
      case Algorithm::kDirect:
        return {{{ways * DirectTurns(), 0, message}}};
      case Algorithm::kHalvingDoubling:
        RETURN_IF_ERROR(CheckPowerOfTwo());
        if (phase_.op == CollectiveKind::kAllToAll) {
          return absl::InvalidArgumentError("halvingDoubling has no all-to-all");
        }
        // Peers are 1, 2, 4, .. places apart, messages a half, a quarter, .. of the bytes; an
        // all-reduce then goes back the way it came. An all-gather starts far away with all it has.
        if (phase_.op == CollectiveKind::kAllGather) bytes *= n;
        for (size_t places = 1; places < n_; places *= 2)
          steps.push_back({ways, places, bytes /= 2});
        return steps;
      case Algorithm::kDoubleBinaryTree:
        RETURN_IF_ERROR(CheckPowerOfTwo());
        // The leaves are one place apart from their parents, these two, and so on up to the root.
        for (size_t places = 1; places < n_; places *= 2) steps.push_back({2, places, bytes});
        return steps;
    }
    return steps;
  }

  // A window makes the messages take turns.
  double DirectTurns() const {
    const size_t all = n_ - 1;
    const size_t wanted = static_cast<size_t>(phase_.algorithm.window);
    const size_t window = wanted == 0 ? all : std::min(wanted, all);
    return static_cast<double>((all + window - 1) / window);
  }

  absl::Status CheckPowerOfTwo() const {
    if ((n_ & (n_ - 1)) == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(CollectiveAlgorithmName(phase_.algorithm),
                                                   " needs a number of ranks that is a power of "
                                                   "two, not ",
                                                   n_));
  }

  // Returns the slowest message of a step. Of messages to all, for which places is 0, the farthest
  // is half a ring away, or next to it in a part of a ring.
  double StepNs(const Step& step) const {
    if (step.places == 0) {
      return std::max(StepNs({1, 1, step.bytes}),
                      StepNs({1, std::max<size_t>(n_ / 2, 1), step.bytes}));
    }
    double slowest = 0;
    for (size_t i = 0; i < n_; ++i) {
      slowest = std::max(slowest, MessageDelayNs(network_, members_[i],
                                                 members_[(i + step.places) % n_], step.bytes));
    }
    return slowest;
  }

  const NetworkConfig& network_;
  const PhaseOutline& phase_;
  // The members, in the order of the logical ring.
  const std::vector<int32_t> members_;
  const size_t n_;
};

// Returns the ranks that exchange messages in one phase, in the order of the logical ring. Blocks
// of a dimension are alike, so one of them stands for all.
std::vector<int32_t> MembersOf(const PhaseOutline& phase, const CommEdge& edge) {
  if (phase.stride == 0) return edge.participants;
  std::vector<int32_t> members;
  for (int32_t i = 0; i < phase.size; ++i) members.push_back(i * phase.stride);
  return members;
}

double BytesAfter(const PhaseOutline& phase, double bytes) {
  if (phase.op == CollectiveKind::kAllGather) return bytes * phase.size;
  if (phase.op == CollectiveKind::kReduceScatter) return bytes / phase.size;
  return bytes;
}

absl::StatusOr<double> IsolatedNs(const Fabric& fabric, const CommEdge& edge) {
  if (edge.kind == CollectiveKind::kPointToPoint) {
    return MessageDelayNs(fabric.network, edge.participants[0], edge.participants[1],
                          static_cast<double>(edge.bytes));
  }
  ASSIGN_OR_RETURN(const std::vector<CollectiveAlgorithm> algorithms, EdgeAlgorithms(edge, fabric));
  CollectiveRequest request;
  request.op = edge.kind;
  request.bytes = edge.bytes;
  request.algorithms = algorithms;
  if (!IsWorld(edge, fabric)) {
    request.group_size = static_cast<int32_t>(edge.participants.size());
  } else if (const auto one = std::find_if(
                 algorithms.begin(), algorithms.end(),
                 [](const CollectiveAlgorithm& algorithm) { return algorithm.over_all_ranks; });
             one != algorithms.end()) {
    request.algorithms = absl::MakeConstSpan(&*one, 1);
  }
  const CollectiveChunks chunks = ChunksOf(request, fabric.network.npus(), fabric.system);
  std::vector<double> dimension_ns(fabric.network.dimensions.size());
  double chunk_ns = 0;
  double bytes = static_cast<double>(chunks.bytes);
  for (const PhaseOutline& phase :
       OutlinePhases(request, fabric.network.dimensions, fabric.system)) {
    ASSIGN_OR_RETURN(const double phase_ns,
                     PhaseCost(fabric.network, phase, MembersOf(phase, edge)).Ns(bytes));
    chunk_ns += phase_ns;
    dimension_ns[phase.dimension] += phase_ns;
    bytes = BytesAfter(phase, bytes);
  }
  // Chunks follow each other through the phases; the busiest dimension sets the pace. Those that
  // run at once take one turn.
  const int64_t active = std::max<int64_t>(1, fabric.system.active_chunks_per_dimension);
  const int64_t turns = (chunks.count + active - 1) / active;
  const double pace = *std::max_element(dimension_ns.begin(), dimension_ns.end());
  return chunk_ns + static_cast<double>(turns - 1) * pace;
}

}  // namespace

FabricTiming::Times AnalyticalTiming::TogetherNs(const Fabric& fabric,
                                                 absl::Span<const CommEdge> edges,
                                                 absl::Span<const double> isolated_ns) {
  if (!isolated_ns.empty()) return std::vector<double>(isolated_ns.begin(), isolated_ns.end());
  ASSIGN_OR_RETURN(const double ns, IsolatedNs(fabric, edges[0]));
  return std::vector<double>{ns};
}

}  // namespace meridian
