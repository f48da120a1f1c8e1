#include "astra_bridge/engine/collective_plan.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Kind = CollectiveAlgorithm::Kind;

// AstraSim gives members of groups this delay, whatever the configuration says.
constexpr int64_t kGroupEndpointDelayNs = 10;

// Times of larger messages might not fit into 64 bits. The number of ranks is below 2^21, so that
// one more all-gather does not overflow.
constexpr int64_t kMaxPhaseBytes = int64_t{1} << 42;

// Chunks of one collective on all ranks together; each takes a little memory.
constexpr int64_t kMaxChunksOfAllRanks = int64_t{1} << 28;

bool IsPowerOfTwo(int32_t number) { return (number & (number - 1)) == 0; }

int32_t Log2(int32_t number) { return 31 - __builtin_clz(static_cast<unsigned>(number)); }

// Returns whether all members have a partner that has them as its partner at each distance of a
// halving-doubling all-gather: size / 2, half of that, cut off, and so on. Sizes that are no power of
// two may be such, e.g. 6 with distances 3 and 1.
bool PairsUp(int32_t size) {
  for (int32_t distance = size / 2; distance > 0; distance /= 2) {
    if (size % (2 * distance) != 0) return false;
  }
  return true;
}

// Returns the phases in their order, without dimensions that are not involved and without their
// messages. There are at most as many algorithms as dimensions of the network.
std::vector<CollectivePhase> OutlinePhases(const CollectiveRequest& request,
                                           absl::Span<const NetworkDimension> network,
                                           const SystemConfig& system) {
  CollectivePhase phase;
  phase.op = request.op;
  if (request.group_size > 0) {
    // The dimensions do not matter to a group; AstraSim then takes a ring.
    if (request.algorithms.size() == 1) phase.algorithm = request.algorithms[0];
    phase.size = request.group_size;
    phase.endpoint_delay_ns = kGroupEndpointDelayNs;
    return {phase};
  }
  phase.endpoint_delay_ns = system.endpoint_delay_ns;
  std::vector<CollectivePhase> phases;
  int32_t stride = 1;
  for (size_t d = 0; d < request.algorithms.size(); ++d) {
    phase.algorithm = request.algorithms[d];
    phase.dimension = static_cast<int32_t>(d);
    phase.size = network[d].npus;
    phase.stride = stride;
    stride *= phase.size;
    if (phase.algorithm.over_all_ranks) {
      phase.size = 1;
      for (const NetworkDimension& dimension : network) phase.size *= dimension.npus;
      phase.stride = 1;
    }
    if ((request.involved_dimensions >> d & 1) != 0) phases.push_back(phase);
    if (phase.algorithm.over_all_ranks) break;
  }
  if (request.op == CollectiveKind::kAllGather) std::reverse(phases.begin(), phases.end());
  if (request.op == CollectiveKind::kAllReduce &&
      system.collective_optimization == CollectiveOptimization::kLocalBandwidthAware) {
    for (size_t i = phases.empty() ? 0 : phases.size() - 1; i-- > 0;) {
      phases[i].op = CollectiveKind::kReduceScatter;
      CollectivePhase back = phases[i];
      back.op = CollectiveKind::kAllGather;
      back.direction = -1;
      phases.push_back(back);
    }
  }
  return phases;
}

class Planner {
 public:
  Planner(const CollectiveRequest& request, const Topology& topology, const SystemConfig& system)
      : request_(request), topology_(topology), system_(system) {}

  absl::StatusOr<CollectivePlan> Plan() {
    RETURN_IF_ERROR(SplitIntoChunks());
    RETURN_IF_ERROR(AddPhases());
    if (plan_.phases.empty()) {
      return Error("involved_dim leaves no dimension of the network to communicate in");
    }
    NumberTrees();
    plan_.ties_all_members = TiesAllMembers();
    return std::move(plan_);
  }

 private:
  absl::Status Error(absl::string_view reason) const {
    return InvalidArgument(CollectiveKindName(request_.op), ": ", reason);
  }

  absl::Status KeyError(absl::string_view reason) const {
    return InvalidArgument(system_.source, system_.source.empty() ? "" : ": ",
                           CollectiveKindName(request_.op), "-implementation: ", reason);
  }

  absl::Status SplitIntoChunks() {
    const int32_t splits = system_.preferred_dataset_splits;
    if (request_.op == CollectiveKind::kAllGather && request_.bytes < splits) {
      return Error(absl::StrCat("comm_size ", request_.bytes,
                                " is less than preferred-dataset-splits ", splits,
                                "; no chunk would have a byte"));
    }
    int64_t bytes = request_.bytes;
    plan_.chunk_bytes = std::max<int64_t>(1, bytes / splits);
    if (request_.op != CollectiveKind::kAllGather && plan_.chunk_bytes < topology_.npus()) {
      plan_.chunk_bytes = topology_.npus();
      bytes = plan_.chunk_bytes * splits;
    }
    const int64_t chunks = (bytes + plan_.chunk_bytes - 1) / plan_.chunk_bytes;
    if (chunks > kMaxChunksOfAllRanks / topology_.npus()) {
      return InvalidArgument(system_.source, system_.source.empty() ? "" : ": ",
                             "preferred-dataset-splits: ", splits, " chunks are too many for ",
                             topology_.npus(), " ranks");
    }
    plan_.chunks = static_cast<int32_t>(chunks);
    return absl::OkStatus();
  }

  absl::Status AddPhases() {
    const size_t algorithms = request_.algorithms.size();
    if (algorithms == 0) return KeyError("missing, but the workload has this collective");
    if (algorithms > topology_.dimensions().size()) {
      return KeyError(absl::StrCat("has ", algorithms, " entries, but the network has ",
                                   topology_.dimension_count(), " dimensions"));
    }
    int64_t bytes = plan_.chunk_bytes;
    for (CollectivePhase& phase : OutlinePhases(request_, topology_.dimensions(), system_)) {
      RETURN_IF_ERROR(AddPhase(&phase, &bytes));
    }
    return absl::OkStatus();
  }

  // Adds a phase on *bytes, which become what a member holds afterwards.
  absl::Status AddPhase(CollectivePhase* phase, int64_t* bytes) {
    phase->data_bytes = *bytes;
    RETURN_IF_ERROR(SetMessages(phase));
    if (phase->algorithm.kind != Kind::kDoubleBinaryTree) {
      if (phase->op == CollectiveKind::kAllGather) *bytes *= phase->size;
      if (phase->op == CollectiveKind::kReduceScatter) *bytes /= phase->size;
    }
    if (*bytes > kMaxPhaseBytes) {
      return Error(absl::StrCat("comm_size ", request_.bytes, " grows beyond ", kMaxPhaseBytes,
                                " bytes on the way"));
    }
    plan_.phases.push_back(*phase);
    return absl::OkStatus();
  }

  absl::Status SetMessages(CollectivePhase* phase) const {
    const int32_t window = phase->algorithm.window;
    const int64_t n = phase->size;
    int64_t messages = phase->op == CollectiveKind::kAllReduce ? 2 * (n - 1) : n - 1;
    phase->message_bytes =
        phase->op == CollectiveKind::kAllGather ? phase->data_bytes : phase->data_bytes / n;
    switch (phase->algorithm.kind) {
      case Kind::kRing:
        if (phase->op == CollectiveKind::kAllToAll) messages = n * (n - 1) / 2;
        phase->reduced_run = n - 1;
        break;
      case Kind::kDirect:
        phase->parallel =
            static_cast<int32_t>(window == 0 ? n - 1 : std::min<int64_t>(window, n - 1));
        phase->reduced_run = (request_.group_size > 0 ? n - 1 : 1) * phase->parallel;
        break;
      case Kind::kHalvingDoubling:
        if (phase->op != CollectiveKind::kAllGather || !PairsUp(phase->size)) {
          RETURN_IF_ERROR(CheckPowerOfTwo("halvingDoubling", *phase));
        }
        if (phase->op == CollectiveKind::kAllToAll) {
          return KeyError("halvingDoubling cannot do an all-to-all");
        }
        messages =
            phase->op == CollectiveKind::kAllReduce ? 2 * Log2(phase->size) : Log2(phase->size);
        phase->reduced_run = Log2(phase->size) - 1;
        if (phase->op != CollectiveKind::kAllGather) phase->message_bytes = phase->data_bytes / 2;
        break;
      case Kind::kDoubleBinaryTree:
        RETURN_IF_ERROR(CheckPowerOfTwo("doubleBinaryTree", *phase));
        if (request_.group_size > 0) {
          return KeyError("doubleBinaryTree works for all ranks only, not in a group");
        }
        phase->message_bytes = phase->data_bytes;
        break;
    }
    if (messages > std::numeric_limits<int32_t>::max()) {
      return KeyError(absl::StrCat("a ring all-to-all among ", n, " ranks has too many messages"));
    }
    phase->messages = static_cast<int32_t>(messages);
    return absl::OkStatus();
  }

  absl::Status CheckPowerOfTwo(absl::string_view algorithm, const CollectivePhase& phase) const {
    if (IsPowerOfTwo(phase.size)) return absl::OkStatus();
    const std::string who = request_.group_size > 0 ? std::string("the group has ")
                            : phase.stride == 1 && phase.size == topology_.npus()
                                ? std::string("there are ")
                                : absl::StrCat("dimension ", phase.dimension, " has ");
    return KeyError(
        absl::StrCat(algorithm, " needs a power of two of ranks, but ", who, phase.size));
  }

  // AstraSim alternates between the two trees of a dimension as it creates phases.
  void NumberTrees() {
    for (CollectivePhase& phase : plan_.phases) {
      if (phase.algorithm.kind != Kind::kDoubleBinaryTree) continue;
      for (const CollectivePhase& other : plan_.phases) {
        if (other.dimension != phase.dimension) continue;
        if (&other < &phase) ++phase.tree_offset;
        ++phase.trees_per_chunk;
      }
    }
  }

  // Each phase ties together the members of its rings, whatever the algorithm.
  bool TiesAllMembers() const {
    if (request_.group_size > 0) return true;
    int64_t tied = 1;
    for (const CollectivePhase& phase : plan_.phases) {
      // A dimension that is gone through twice ties the same members.
      if (phase.direction > 0) tied *= phase.size;
    }
    // The product is larger when one of the dimensions is that of all ranks.
    return tied >= topology_.npus();
  }

  const CollectiveRequest& request_;
  const Topology& topology_;
  const SystemConfig& system_;
  CollectivePlan plan_;
};

}  // namespace

absl::StatusOr<CollectivePlan> PlanCollective(const CollectiveRequest& request,
                                              const Topology& topology,
                                              const SystemConfig& system) {
  return Planner(request, topology, system).Plan();
}

int64_t ReductionNs(int64_t bytes, double local_memory_bandwidth) {
  if (local_memory_bandwidth == 0) return 0;
  return 3 *
         static_cast<int64_t>(static_cast<double>(bytes) / (local_memory_bandwidth * 1e9) * 1e9);
}

TreePlace PlaceInTree(int32_t position, int32_t size, bool root_is_highest) {
  // All but the root form a perfect tree with labels 1 .. size - 1: the height of a label is its
  // number of trailing zeros.
  const int32_t shift = root_is_highest ? 1 : 0;
  const int32_t root = root_is_highest ? size - 1 : 0;
  const int32_t top = size / 2;
  TreePlace place;
  if (position == root) {
    (root_is_highest ? place.left_child : place.right_child) = top - shift;
    return place;
  }
  const int32_t label = position + shift;
  const int32_t bit = label & -label;
  place.parent = label == top ? root : ((label & ~bit) | (bit << 1)) - shift;
  if (bit > 1) {
    place.left_child = label - bit / 2 - shift;
    place.right_child = label + bit / 2 - shift;
  }
  return place;
}

}  // namespace meridian
