#include "xla_profiler/collectives/host_executions.h"

#include <algorithm>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/sorted.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

// Walks the spans of one line from outer to inner and keeps those that are open. Known writers put
// them in that order; the spans of a line that has another are sorted first.
class HostLineReader {
 public:
  HostLineReader(const HostExecutions::Also* also, HostExecutions* executions)
      : also_(also), executions_(executions) {
    if (also_ != nullptr) selection_ = selection_ | also_->stats;
  }

  absl::Status Read(const XLineVisitor& line) {
    open_.clear();
    in_order_ = true;
    // What is found is kept only when the whole line is known to be in order.
    const size_t launches = executions_->launches_.size();
    const size_t contexts = executions_->contexts_.size();
    const uint32_t number = number_;
    RETURN_IF_ERROR(line.ForEachEvent(selection_, [&](const XEventVisitor& event) {
      if (also_ != nullptr) also_->visit(line, line_number_, event);
      if (event.IsAggregatedEvent() || !in_order_) return;
      const HostSpan span = ReadSpan(event);
      in_order_ = open_.empty() || !(span.span < open_.back().span);
      Push(span);
    }));
    ++line_number_;
    if (in_order_) return absl::OkStatus();
    executions_->launches_.resize(launches);
    executions_->contexts_.resize(contexts);
    number_ = number;
    return ReadSorted(line);
  }

  // Ends the reading. Driver API lines may repeat an id, outside of any execution: of launches of one
  // id the first counts that has a run, else the last.
  void Finish() {
    std::vector<Launch>& launches = executions_->launches_;
    const auto has_smaller_id = [](const Launch& a, const Launch& b) {
      return a.correlation_id < b.correlation_id;
    };
    StableSortUnlessSorted(&launches, has_smaller_id);
    size_t kept = 0;
    for (const Launch& launch : launches) {
      if (kept == 0 || launches[kept - 1].correlation_id != launch.correlation_id) {
        launches[kept++] = launch;
      } else if (!executions_->contexts_[launches[kept - 1].context].run_id.has_value()) {
        launches[kept - 1] = launch;
      }
    }
    launches.resize(kept);
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
    StableSortUnlessSorted(&spans,
                           [](const HostSpan& a, const HostSpan& b) { return a.span < b.span; });
    open_.clear();
    for (const HostSpan& span : spans) Push(span);
    return absl::OkStatus();
  }

  // Closes what ended before this span and opens it.
  void Push(const HostSpan& span) {
    while (!open_.empty() && !open_.back().span.Includes(span.span)) open_.pop_back();
    const uint32_t around = open_.empty() ? 0 : open_.back().context;
    open_.push_back({span.span, ContextOf(span, around), ++number_, span.IsExecution()});
    if (!span.correlation_id.has_value()) return;
    Launch& launch = executions_->launches_.emplace_back();
    launch.correlation_id = static_cast<uint64_t>(*span.correlation_id);
    launch.context = open_.back().context;
    if (open_.size() > 1 && !open_[open_.size() - 2].is_execution) {
      launch.thunk = open_[open_.size() - 2].number;
    }
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

  StatSelection selection_{StatType::kRunId, StatType::kReplica, StatType::kPartition,
                           StatType::kStepNum, StatType::kCorrelationId};
  const HostExecutions::Also* also_;
  HostExecutions* executions_;
  uint32_t line_number_ = 0;
  uint32_t number_ = 0;
  // The spans of the line at hand that are open, outermost first.
  std::vector<Open> open_;
  bool in_order_ = true;
};

std::optional<HostLaunch> HostExecutions::FindLaunch(uint64_t correlation_id, size_t* hint) const {
  const auto is_at = [&](size_t i) {
    return i < launches_.size() && launches_[i].correlation_id == correlation_id;
  };
  if (!is_at(*hint) && !is_at(++*hint)) {
    *hint = std::lower_bound(launches_.begin(), launches_.end(), correlation_id,
                             [](const Launch& a, uint64_t id) { return a.correlation_id < id; }) -
            launches_.begin();
    if (!is_at(*hint)) return std::nullopt;
  }
  const Launch& found = launches_[*hint];
  HostLaunch launch{contexts_[found.context], std::nullopt};
  if (found.thunk != 0) launch.thunk = found.thunk;
  return launch;
}

absl::StatusOr<HostExecutions> HostExecutions::Read(const XPlaneVisitor& host_plane,
                                                    const Also* also) {
  HostExecutions executions;
  HostLineReader reader(also, &executions);
  RETURN_IF_ERROR(
      host_plane.ForEachLine([&](const XLineVisitor& line) { return reader.Read(line); }));
  reader.Finish();
  return executions;
}

}  // namespace meridian
