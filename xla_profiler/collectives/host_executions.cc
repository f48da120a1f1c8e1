#include "xla_profiler/collectives/host_executions.h"

#include <algorithm>
#include <vector>

#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/xplane/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// A host event with what it says about the work inside it.
struct HostSpan {
  Timespan span;
  std::optional<int64_t> run_id;
  std::optional<int64_t> replica;
  std::optional<int64_t> partition;
  std::optional<int64_t> step;
  std::optional<uint64_t> correlation_id;
};

std::optional<int64_t> IntStat(const XEventVisitor& event, StatType type) {
  const XStatVisitor* stat = event.GetEventOrMetadataStat(type);
  return stat == nullptr ? std::nullopt : stat->IntOrUintValue();
}

HostSpan ReadSpan(const XEventVisitor& event) {
  HostSpan span;
  span.span = Timespan(event.OffsetPs(), std::max<int64_t>(0, event.DurationPs()));
  if (event.Stats().empty() && event.Metadata().stats.empty()) return span;
  span.run_id = IntStat(event, StatType::kRunId);
  span.replica = IntStat(event, StatType::kReplica);
  span.partition = IntStat(event, StatType::kPartition);
  span.step = IntStat(event, StatType::kStepNum);
  span.correlation_id = IntStat(event, StatType::kCorrelationId);
  return span;
}

// Walks the spans of one line from outer to inner and keeps those that are open.
class SpanStack {
 public:
  // Closes what ended before this span and opens it.
  void Push(const HostSpan& span, uint64_t number) {
    while (!open_.empty() && !open_.back().span.Includes(span.span)) open_.pop_back();
    Open open{span.span,
              span.run_id,
              span.replica,
              span.partition,
              span.step,
              number,
              span.run_id.has_value() || span.replica.has_value() || span.step.has_value()};
    if (!open_.empty()) {
      const Open& parent = open_.back();
      if (!open.run_id.has_value()) open.run_id = parent.run_id;
      if (!open.replica.has_value()) open.replica = parent.replica;
      if (!open.partition.has_value()) open.partition = parent.partition;
      if (!open.step.has_value()) open.step = parent.step;
    }
    open_.push_back(open);
  }

  // What is known about the span pushed last.
  HostLaunch Innermost() const {
    const Open& inner = open_.back();
    HostLaunch launch{inner.run_id, inner.replica, inner.partition, inner.step, std::nullopt};
    if (open_.size() > 1 && !open_[open_.size() - 2].is_execution) {
      launch.thunk = open_[open_.size() - 2].number;
    }
    return launch;
  }

 private:
  struct Open {
    Timespan span;
    std::optional<int64_t> run_id;
    std::optional<int64_t> replica;
    std::optional<int64_t> partition;
    std::optional<int64_t> step;
    uint64_t number;
    // Says itself which run, replica or step it is, and so encloses thunks.
    bool is_execution;
  };

  std::vector<Open> open_;
};

}  // namespace

absl::StatusOr<HostExecutions> HostExecutions::Read(const XPlaneVisitor& host_plane) {
  HostExecutions executions;
  uint64_t number = 0;
  std::vector<HostSpan> spans;
  RETURN_IF_ERROR(host_plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
    spans.clear();
    spans.reserve(line.NumEvents());
    bool launches = false;
    RETURN_IF_ERROR(line.ForEachEvent([&](const XEventVisitor& event) {
      if (event.IsAggregatedEvent()) return;
      spans.push_back(ReadSpan(event));
      launches = launches || spans.back().correlation_id.has_value();
    }));
    if (!launches) return absl::OkStatus();
    std::stable_sort(spans.begin(), spans.end(),
                     [](const HostSpan& a, const HostSpan& b) { return a.span < b.span; });
    SpanStack stack;
    for (const HostSpan& span : spans) {
      stack.Push(span, ++number);
      if (span.correlation_id.has_value()) {
        // Driver API lines may repeat the id, outside of any execution.
        const HostLaunch launch = stack.Innermost();
        const auto [it, inserted] = executions.launches_.emplace(*span.correlation_id, launch);
        if (!inserted && !it->second.run_id.has_value()) it->second = launch;
      }
    }
    return absl::OkStatus();
  }));
  return executions;
}

}  // namespace meridian
