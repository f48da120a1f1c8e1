#include "xla_profiler/collectives/host_executions.h"

#include <algorithm>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

// Walks the spans of one line from outer to inner and keeps those that are open. Known writers put
// them in that order; the spans of a line that has another are sorted first.
class HostLineReader {
 public:
  explicit HostLineReader(HostExecutions* executions)
      : selection_({StatType::kRunId, StatType::kReplica, StatType::kPartition, StatType::kStepNum,
                    StatType::kCorrelationId}),
        executions_(executions) {}

  absl::Status Read(const XLineVisitor& line) {
    open_.clear();
    in_order_ = true;
    // Launches are kept only when the whole line is known to be in order.
    found_.clear();
    const size_t contexts = executions_->contexts_.size();
    const uint32_t number = number_;
    RETURN_IF_ERROR(line.ForEachEvent(selection_, [this](const XEventVisitor& event) {
      if (event.IsAggregatedEvent() || !in_order_) return;
      const HostSpan span = ReadSpan(event);
      in_order_ = open_.empty() || !(span.span < open_.back().span);
      Push(span);
    }));
    if (!in_order_) {
      executions_->contexts_.resize(contexts);
      number_ = number;
      RETURN_IF_ERROR(ReadSorted(line));
    }
    for (const auto& [correlation_id, launch] : found_) Keep(correlation_id, launch);
    return absl::OkStatus();
  }

 private:
  using Launch = HostExecutions::Launch;

  // A host event with what it says about the work inside it.
  struct HostSpan {
    Timespan span;
    LaunchContext says;
    std::optional<int64_t> correlation_id;

    // Says itself which run, replica or step it is, and so encloses thunks.
    bool IsExecution() const {
      return says.run_id.has_value() || says.replica.has_value() || says.step.has_value();
    }
  };

  struct Open {
    Timespan span;
    uint32_t context = 0;
    uint32_t number = 0;
    bool is_execution = false;
  };

  static HostSpan ReadSpan(const XEventVisitor& event) {
    HostSpan span;
    span.span = Timespan(event.OffsetPs(), std::max<int64_t>(0, event.DurationPs()));
    if (event.Stats().empty() && event.Metadata().stats.empty()) return span;
    const std::pair<StatType, std::optional<int64_t>*> wanted[] = {
        {StatType::kRunId, &span.says.run_id},
        {StatType::kReplica, &span.says.replica},
        {StatType::kPartition, &span.says.partition},
        {StatType::kStepNum, &span.says.step},
        {StatType::kCorrelationId, &span.correlation_id}};
    const auto read = [&](const XStatVisitor& stat) {
      for (const auto& [type, value] : wanted) {
        // An event's own stats come first and win.
        if (stat.Type() == type && !value->has_value()) *value = stat.IntOrUintValue();
      }
    };
    for (const XStatVisitor& stat : event.Stats()) read(stat);
    for (const XStatVisitor& stat : event.Metadata().stats) read(stat);
    return span;
  }

  absl::Status ReadSorted(const XLineVisitor& line) {
    std::vector<HostSpan> spans;
    spans.reserve(line.NumEvents());
    RETURN_IF_ERROR(line.ForEachEvent(selection_, [&](const XEventVisitor& event) {
      if (!event.IsAggregatedEvent()) spans.push_back(ReadSpan(event));
    }));
    std::stable_sort(spans.begin(), spans.end(),
                     [](const HostSpan& a, const HostSpan& b) { return a.span < b.span; });
    open_.clear();
    found_.clear();
    for (const HostSpan& span : spans) Push(span);
    return absl::OkStatus();
  }

  // Closes what ended before this span and opens it.
  void Push(const HostSpan& span) {
    while (!open_.empty() && !open_.back().span.Includes(span.span)) open_.pop_back();
    const uint32_t around = open_.empty() ? 0 : open_.back().context;
    open_.push_back({span.span, ContextOf(span, around), ++number_, span.IsExecution()});
    if (!span.correlation_id.has_value()) return;
    Launch launch;
    launch.context = open_.back().context;
    if (open_.size() > 1 && !open_[open_.size() - 2].is_execution) {
      launch.thunk = open_[open_.size() - 2].number;
    }
    found_.emplace_back(static_cast<uint64_t>(*span.correlation_id), launch);
  }

  // What the span says, and of the rest what those around it say.
  uint32_t ContextOf(const HostSpan& span, uint32_t around) {
    if (!span.IsExecution() && !span.says.partition.has_value()) return around;
    LaunchContext context = executions_->contexts_[around];
    if (span.says.run_id.has_value()) context.run_id = span.says.run_id;
    if (span.says.replica.has_value()) context.replica = span.says.replica;
    if (span.says.partition.has_value()) context.partition = span.says.partition;
    if (span.says.step.has_value()) context.step = span.says.step;
    executions_->contexts_.push_back(context);
    return static_cast<uint32_t>(executions_->contexts_.size() - 1);
  }

  // Driver API lines may repeat the id, outside of any execution.
  void Keep(uint64_t correlation_id, const Launch& launch) {
    const auto [it, inserted] = executions_->launches_.emplace(correlation_id, launch);
    const bool known = executions_->contexts_[it->second.context].run_id.has_value();
    if (!inserted && !known) it->second = launch;
  }

  const StatSelection selection_;
  HostExecutions* executions_;
  uint32_t number_ = 0;
  // The spans of the line at hand that are open, outermost first, and its launches so far by
  // correlation id.
  std::vector<Open> open_;
  std::vector<std::pair<uint64_t, Launch>> found_;
  bool in_order_ = true;
};

std::optional<HostLaunch> HostExecutions::FindLaunch(uint64_t correlation_id) const {
  const auto it = launches_.find(correlation_id);
  if (it == launches_.end()) return std::nullopt;
  HostLaunch launch{contexts_[it->second.context], std::nullopt};
  if (it->second.thunk != 0) launch.thunk = it->second.thunk;
  return launch;
}

absl::StatusOr<HostExecutions> HostExecutions::Read(const XPlaneVisitor& host_plane) {
  HostExecutions executions;
  HostLineReader reader(&executions);
  RETURN_IF_ERROR(
      host_plane.ForEachLine([&](const XLineVisitor& line) { return reader.Read(line); }));
  return executions;
}

}  // namespace meridian
