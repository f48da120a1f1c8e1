#include "astra_bridge/corrections/corrected_workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload_check.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Bytes aim so much below what they are to last, since the engine cuts times off and splits bytes.
constexpr double kAim = 0.999;

class Corrector {
 public:
  Corrector(const Workload& workload, const NetworkConfig& network, const SystemConfig& system,
            Congestion congestion, const Corrections& corrections, const TransferFactor& factor)
      : workload_(workload),
        network_(network),
        system_(system),
        congestion_(congestion),
        corrections_(corrections),
        factor_(factor),
        topology_(network) {}

  // Corrects a node of the rank.
  absl::Status Correct(int32_t rank, WorkloadNode* node) {
    if (node->type == WorkloadNodeType::kCompute || node->bytes == 0 ||
        (node->type == WorkloadNodeType::kCollective &&
         node->op == CollectiveKind::kCollectiveBroadcast)) {
      return absl::OkStatus();
    }
    // The simulation tells what is no group.
    if (node->type == WorkloadNodeType::kCollective && node->group != kWorldGroup &&
        workload_.groups.count(node->group) == 0) {
      return absl::OkStatus();
    }
    // A receive is the message that it waits for.
    const bool receives = node->type == WorkloadNodeType::kReceive;
    WorkloadNode moved = *node;
    std::vector<int32_t> ranks = {rank, node->peer};
    if (receives) {
      moved.type = WorkloadNodeType::kSend;
      moved.peer = rank;
      std::swap(ranks[0], ranks[1]);
    } else if (node->type == WorkloadNodeType::kCollective) {
      ranks.clear();
      if (node->group != kWorldGroup) ranks = workload_.groups.at(node->group);
    }
    const Shape shape(moved.type, moved.op, moved.bytes, PlaceOf(moved, ranks), moved.algorithms,
                      moved.involved_dimensions);
    auto known = known_.find(shape);
    if (known == known_.end()) {
      ASSIGN_OR_RETURN(const WorkloadNode corrected, Fit(moved, ranks));
      known = known_.emplace(shape, corrected).first;
    }
    node->bytes = known->second.bytes;
    if (receives) return absl::OkStatus();
    node->overhead_ns = known->second.overhead_ns;
    node->fixed_ns = known->second.fixed_ns;
    return absl::OkStatus();
  }

 private:
  // All that the times of a transfer depend on: type, collective, bytes, place, algorithms and
  // involved dimensions.
  using Shape = std::tuple<WorkloadNodeType, CollectiveKind, int64_t, size_t, int32_t, uint64_t>;

  // Returns a number for how the ranks lie to each other: blocks of a network look the same from all
  // of their ranks, but links do not. `ranks` is empty for all.
  size_t PlaceOf(const WorkloadNode& node, absl::Span<const int32_t> ranks) {
    const bool is_send = node.type == WorkloadNodeType::kSend;
    const std::pair<int32_t, int32_t> name(is_send ? ranks[0] : -1 - node.group, node.peer);
    const auto [place, is_new] = place_of_.try_emplace(name, 0);
    if (!is_new) return place->second;
    std::vector<int32_t> offsets;
    for (const int32_t rank : ranks) {
      for (int32_t d = 0; d < topology_.dimension_count(); ++d) {
        const int32_t first = network_.has_links() ? 0 : topology_.Coordinate(ranks[0], d);
        offsets.push_back(topology_.Coordinate(rank, d) - first);
      }
    }
    return place->second = places_.try_emplace(std::move(offsets), places_.size()).first->second;
  }

  // Returns how long the transfer takes alone when it moves so many bytes.
  absl::StatusOr<double> AloneNs(WorkloadNode node, absl::Span<const int32_t> ranks,
                                 int64_t bytes) const {
    node.bytes = bytes;
    node.delay_ns = 0;
    Workload alone;
    alone.ranks.resize(workload_.ranks.size());
    alone.algorithms = workload_.algorithms;
    const auto add = [&](int32_t rank) {
      alone.ranks[rank].source = workload_.ranks[rank].source;
      alone.ranks[rank].Add(node);
    };
    if (node.type == WorkloadNodeType::kSend) {
      add(ranks[0]);
      node.type = WorkloadNodeType::kReceive;
      node.peer = ranks[0];
      add(ranks[1]);
    } else if (ranks.empty()) {
      for (size_t rank = 0; rank < alone.ranks.size(); ++rank) add(static_cast<int32_t>(rank));
    } else {
      alone.groups[node.group].assign(ranks.begin(), ranks.end());
      for (const int32_t rank : ranks) add(rank);
    }
    SimulationOptions options;
    options.congestion = congestion_;
    ASSIGN_OR_RETURN(const SimulationResult result, Simulate(alone, network_, system_, options));
    return static_cast<double>(result.makespan_ns());
  }

  // Returns the node with bytes, overhead and fixed time that make it last what is corrected.
  absl::StatusOr<WorkloadNode> Fit(WorkloadNode node, absl::Span<const int32_t> ranks) const {
    const bool is_send = node.type == WorkloadNodeType::kSend;
    const size_t members = ranks.empty() ? workload_.ranks.size() : ranks.size();
    // A message alone goes one way.
    const TransferTraits traits = {is_send ? CollectiveKind::kPointToPoint : node.op, node.bytes,
                                   static_cast<double>(members), is_send};
    if (members < 2 || (!corrections_.Has(traits.kind) && !factor_)) return node;
    ASSIGN_OR_RETURN(const double engine_ns, AloneNs(node, ranks, node.bytes));
    const double corrected_ns = std::min(
        std::round(corrections_.CorrectedNs(traits, engine_ns) * (factor_ ? factor_(traits) : 1)),
        static_cast<double>(kMaxDurationNs));
    const double ratio = corrected_ns / std::max(engine_ns + corrections_.overhead_ns, 1.0);
    const double bytes = static_cast<double>(node.bytes);
    double fitted = ratio * bytes;
    if (ratio < 1) {
      // Latency does not shrink with bytes: a line through two sizes says how many are left.
      const int64_t other = node.bytes > kLargeBytes ? node.bytes / 2 : 2 * node.bytes;
      ASSIGN_OR_RETURN(const double other_ns, AloneNs(node, ranks, other));
      fitted = bytes + (kAim * ratio - 1) * engine_ns * (static_cast<double>(other) - bytes) /
                           (other_ns - engine_ns);
    }
    // All-gathers grow on their way.
    const double grows = traits.kind == CollectiveKind::kAllGather ? traits.ranks : 1;
    if (fitted >= system_.preferred_dataset_splits && fitted * grows <= kMaxMessageBytes) {
      const int64_t whole = static_cast<int64_t>(fitted);
      ASSIGN_OR_RETURN(const double fitted_ns, AloneNs(node, ranks, whole));
      if (fitted_ns <= corrected_ns) {
        node.bytes = whole;
        node.overhead_ns = std::llround(corrected_ns - fitted_ns);
        return node;
      }
    }
    node.fixed_ns = std::llround(corrected_ns);
    return node;
  }

  const Workload& workload_;
  const NetworkConfig& network_;
  const SystemConfig& system_;
  const Congestion congestion_;
  const Corrections& corrections_;
  const TransferFactor& factor_;
  const Topology topology_;
  // Numbers of places: by the ends of a message or the group, and by coordinates.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> place_of_;
  absl::flat_hash_map<std::vector<int32_t>, size_t> places_;
  absl::flat_hash_map<Shape, WorkloadNode> known_;
};

}  // namespace

absl::StatusOr<Workload> CorrectWorkload(const Workload& workload, const NetworkConfig& network,
                                         const SystemConfig& system, Congestion congestion,
                                         const Corrections& corrections,
                                         const TransferFactor& factor) {
  Workload corrected = workload;
  if (system.replay_only) return corrected;
  if (workload.has_custom()) {
    return InvalidArgument(system.source,
                           ": custom collectives: corrections are of the algorithms "
                           "that were measured; simulate without a calibration");
  }
  RETURN_IF_ERROR(CheckWorkload(workload, network, system, SimulationOptions()));
  RETURN_IF_ERROR(GroupTable::Create(workload).status());
  Corrector corrector(workload, network, system, congestion, corrections, factor);
  for (size_t rank = 0; rank < corrected.ranks.size(); ++rank) {
    for (WorkloadNode& node : corrected.ranks[rank].mutable_nodes()) {
      RETURN_IF_ERROR(corrector.Correct(static_cast<int32_t>(rank), &node));
    }
  }
  return corrected;
}

}  // namespace meridian
