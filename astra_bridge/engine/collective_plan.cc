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

int32_t Log2(int32_t power_of_two) { return __builtin_ctz(static_cast<unsigned>(power_of_two)); }

// A dimension of the logical topology, as the algorithms span it.
struct LogicalDimension {
  CollectiveAlgorithm algorithm;
  int32_t size = 0;
  int32_t stride = 0;
};

class Planner {
 public:
  Planner(const CollectiveRequest& request, const Topology& topology, const SystemConfig& system)
      : request_(request), topology_(topology), system_(system) {}

  absl::StatusOr<CollectivePlan> Plan() {
    RETURN_IF_ERROR(SplitIntoChunks());
    RETURN_IF_ERROR(SetDimensions());
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
    return absl::InvalidArgumentError(absl::StrCat(CollectiveKindName(request_.op), ": ", reason));
  }

  absl::Status KeyError(absl::string_view reason) const {
    return absl::InvalidArgumentError(
        absl::StrCat(system_.source, system_.source.empty() ? "" : ": ",
                     CollectiveKindName(request_.op), "-implementation: ", reason));
  }

  absl::Status SplitIntoChunks() {
    int64_t bytes = request_.bytes;
    plan_.chunk_bytes = bytes / system_.preferred_dataset_splits;
    if (request_.op == CollectiveKind::kAllGather) {
      if (plan_.chunk_bytes == 0) {
        return Error(absl::StrCat("comm_size ", bytes, " is less than preferred-dataset-splits ",
                                  system_.preferred_dataset_splits,
                                  "; no chunk would have a byte"));
      }
    } else if (plan_.chunk_bytes < topology_.npus()) {
      plan_.chunk_bytes = topology_.npus();
      bytes = plan_.chunk_bytes * system_.preferred_dataset_splits;
    }
    const int64_t chunks = (bytes + plan_.chunk_bytes - 1) / plan_.chunk_bytes;
    if (chunks > kMaxChunksOfAllRanks / topology_.npus()) {
      return absl::InvalidArgumentError(
          absl::StrCat(system_.source, system_.source.empty() ? "" : ": ",
                       "preferred-dataset-splits: ", system_.preferred_dataset_splits,
                       " chunks are too many for ", topology_.npus(), " ranks"));
    }
    plan_.chunks = static_cast<int32_t>(chunks);
    return absl::OkStatus();
  }

  absl::Status SetDimensions() {
    const absl::Span<const CollectiveAlgorithm> algorithms = request_.algorithms;
    if (algorithms.empty()) return KeyError("missing, but the workload has this collective");
    if (algorithms.size() > static_cast<size_t>(topology_.dimension_count())) {
      return KeyError(absl::StrCat("has ", algorithms.size(), " entries, but the network has ",
                                   topology_.dimension_count(), " dimensions"));
    }
    if (request_.group_size > 0) {
      LogicalDimension& ring = dimensions_.emplace_back();
      // The dimensions do not matter to a group; AstraSim then takes a ring.
      if (algorithms.size() == 1) ring.algorithm = algorithms[0];
      ring.size = request_.group_size;
      return absl::OkStatus();
    }
    for (int32_t d = 0; d < static_cast<int32_t>(algorithms.size()); ++d) {
      LogicalDimension& dimension = dimensions_.emplace_back();
      dimension.algorithm = algorithms[d];
      if (algorithms[d].over_all_ranks) {
        dimension.size = topology_.npus();
        dimension.stride = 1;
        break;
      }
      dimension.size = topology_.dimension(d).npus;
      dimension.stride = topology_.stride(d);
    }
    return absl::OkStatus();
  }

  bool IsInvolved(int32_t dimension) const {
    return request_.group_size > 0 || (request_.involved_dimensions >> dimension & 1) != 0;
  }

  absl::Status AddPhases() {
    const int32_t count = static_cast<int32_t>(dimensions_.size());
    int64_t bytes = plan_.chunk_bytes;
    if (request_.op == CollectiveKind::kAllReduce &&
        system_.collective_optimization == CollectiveOptimization::kLocalBandwidthAware) {
      int32_t last = count - 1;
      while (last >= 0 && !IsInvolved(last)) --last;
      for (int32_t d = 0; d < last; ++d) {
        RETURN_IF_ERROR(AddPhase(CollectiveKind::kReduceScatter, d, 1, &bytes));
      }
      if (last >= 0) RETURN_IF_ERROR(AddPhase(CollectiveKind::kAllReduce, last, 1, &bytes));
      for (int32_t d = last - 1; d >= 0; --d) {
        RETURN_IF_ERROR(AddPhase(CollectiveKind::kAllGather, d, -1, &bytes));
      }
      return absl::OkStatus();
    }
    for (int32_t d = 0; d < count; ++d) {
      const int32_t dimension = request_.op == CollectiveKind::kAllGather ? count - 1 - d : d;
      RETURN_IF_ERROR(AddPhase(request_.op, dimension, 1, &bytes));
    }
    return absl::OkStatus();
  }

  // Adds a phase on *bytes, which become what a member holds afterwards. Not if the dimension is
  // not involved.
  absl::Status AddPhase(CollectiveKind op, int32_t d, int32_t direction, int64_t* bytes) {
    if (!IsInvolved(d)) return absl::OkStatus();
    const LogicalDimension& dimension = dimensions_[d];
    CollectivePhase phase;
    phase.kind = dimension.algorithm.kind;
    phase.op = op;
    phase.dimension = d;
    phase.size = dimension.size;
    phase.stride = dimension.stride;
    phase.direction = direction;
    phase.data_bytes = *bytes;
    phase.endpoint_delay_ns =
        request_.group_size > 0 ? kGroupEndpointDelayNs : system_.endpoint_delay_ns;
    RETURN_IF_ERROR(SetMessages(dimension.algorithm.window, &phase));
    if (phase.kind != Kind::kDoubleBinaryTree) {
      if (op == CollectiveKind::kAllGather) *bytes *= dimension.size;
      if (op == CollectiveKind::kReduceScatter) *bytes /= dimension.size;
    }
    if (*bytes > kMaxPhaseBytes) {
      return Error(absl::StrCat("comm_size ", request_.bytes, " grows beyond ", kMaxPhaseBytes,
                                " bytes on the way"));
    }
    plan_.phases.push_back(phase);
    return absl::OkStatus();
  }

  absl::Status SetMessages(int32_t window, CollectivePhase* phase) const {
    const int64_t n = phase->size;
    int64_t messages = phase->op == CollectiveKind::kAllReduce ? 2 * (n - 1) : n - 1;
    phase->message_bytes =
        phase->op == CollectiveKind::kAllGather ? phase->data_bytes : phase->data_bytes / n;
    switch (phase->kind) {
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
        RETURN_IF_ERROR(CheckPowerOfTwo("halvingDoubling", *phase));
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
      if (phase.kind != Kind::kDoubleBinaryTree) continue;
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
    for (int32_t d = 0; d < static_cast<int32_t>(dimensions_.size()); ++d) {
      if (IsInvolved(d)) tied *= dimensions_[d].size;
    }
    // The product is larger when one of the dimensions is that of all ranks.
    return tied >= topology_.npus();
  }

  const CollectiveRequest& request_;
  const Topology& topology_;
  const SystemConfig& system_;
  CollectivePlan plan_;
  std::vector<LogicalDimension> dimensions_;
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
