#include "astra_bridge/engine/plan_cache.h"

#include <utility>

#include "xla_profiler/base/status_macros.h"

namespace meridian {

int32_t MemberAhead(const CollectivePhase& phase, int32_t member, int32_t steps) {
  const int32_t stride = phase.stride == 0 ? 1 : phase.stride;
  const int32_t position = member / stride % phase.size;
  const int32_t ahead = ((position + steps) % phase.size + phase.size) % phase.size;
  return member + (ahead - position) * stride;
}

PlanCache::PlanCache(const Workload& workload, const GroupTable& groups, const Topology& topology,
                     const SystemConfig& system, const LinkNetwork& network)
    : workload_(workload),
      groups_(groups),
      topology_(topology),
      system_(system),
      network_(network) {}

absl::StatusOr<PlanCache::Entry*> PlanCache::Find(const CollectiveShape& shape) {
  const auto known = entries_.find(shape);
  if (known != entries_.end()) return known->second.get();
  CollectiveRequest request;
  request.op = shape.op;
  request.bytes = shape.bytes;
  request.group_size = static_cast<int32_t>(groups_.groups()[shape.group].members.size());
  request.algorithms = shape.algorithms == kSystemAlgorithms
                           ? system_.algorithms_of(shape.op)
                           : workload_.algorithms[shape.algorithms];
  request.involved_dimensions = shape.involved_dimensions;
  auto entry = std::make_unique<Entry>();
  entry->shape = shape;
  ASSIGN_OR_RETURN(entry->plan, PlanCollective(request, topology_, system_));
  return entries_.emplace(shape, std::move(entry)).first->second.get();
}

std::optional<LockstepResult> PlanCache::Lockstep(Entry* entry) const {
  if (entry->lockstep.has_value()) return *entry->lockstep;
  entry->lockstep.emplace();
  const CollectivePlan& plan = entry->plan;
  if (plan.phases.size() > 1 || plan.phases[0].kind != CollectiveAlgorithm::Kind::kRing) {
    return std::nullopt;
  }
  if (const std::optional<RingStep> step = FindRingStep(*entry)) {
    entry->lockstep = RunRingInLockstep(plan, *step, system_.active_chunks_per_dimension,
                                        system_.local_memory_bandwidth);
  }
  return *entry->lockstep;
}

std::optional<RingStep> PlanCache::FindRingStep(const Entry& entry) const {
  const CollectivePhase& phase = entry.plan.phases[0];
  const uint32_t group = entry.shape.group;
  std::optional<RingStep> common;
  for (int32_t member = 0; member < groups_.size(group); ++member) {
    const int32_t next = MemberAhead(phase, member, phase.direction);
    const std::optional<RingStep> step =
        StepBetween(groups_.rank(group, member), groups_.rank(group, next), phase.message_bytes);
    if (!step.has_value()) return std::nullopt;
    if (common.has_value() && !(*step == *common)) return std::nullopt;
    common = step;
  }
  return common;
}

std::optional<RingStep> PlanCache::StepBetween(int32_t source, int32_t destination,
                                               int64_t bytes) const {
  RingStep step;
  if (!network_.is_aware()) {
    step.crossing_ns = network_.UncongestedNs(source, destination, bytes);
    return step;
  }
  const int32_t dimension = topology_.FirstDifference(source, destination);
  const int32_t from = topology_.Coordinate(source, dimension);
  const int32_t to = topology_.Coordinate(destination, dimension);
  if (source + (to - from) * topology_.stride(dimension) != destination) return std::nullopt;
  const NetworkDimension& block = topology_.dimension(dimension);
  step.links = topology_.Hops(dimension, from, to);
  // Further along a ring the ways of several members overlap.
  if (step.links > 1 && block.shape != BlockShape::kSwitch) return std::nullopt;
  const LinkTimes times = LinkTimesOf(block, bytes);
  step.crossing_ns = times.crossing_ns;
  step.sending_ns = times.sending_ns;
  return step;
}

}  // namespace meridian
