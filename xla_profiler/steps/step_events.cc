#include "xla_profiler/steps/step_events.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

// As in "CommonPjRtLoadedExecutable::Execute (jit_step)".
constexpr absl::string_view kExecuteInfix = "LoadedExecutable::Execute (";

absl::string_view EventName(const XEventVisitor& event) { return event.Name(); }

// Device events of module runs are named "jit_step(<fingerprint>)".
absl::string_view NameOfModuleRun(const XEventVisitor& event) {
  return event.Name().substr(0, event.Name().find('('));
}

// Returns the module that a host event says its run_id is of, or empty.
absl::string_view ModuleOf(const XEventVisitor& event) {
  const absl::string_view name = event.Name();
  const size_t infix = name.find(kExecuteInfix);
  if (infix != absl::string_view::npos) {
    return absl::StripSuffix(name.substr(infix + kExecuteInfix.size()), ")");
  }
  const XStatVisitor* module = event.GetStat(StatType::kHloModule);
  return module == nullptr ? absl::string_view() : module->StrOrRefValue();
}

// Which events of a profile are the steps of a source.
struct StepRule {
  StepSource source;
  bool on_device;
  // Only lines of that name count; empty for all.
  absl::string_view line_name;
  // The stat that holds the step's number; nullopt when the event's name is the number.
  std::optional<StatType> number_stat;
  // Returns the step's name; empty for an event that is no step.
  absl::string_view (*name_of)(const XEventVisitor&);
};

constexpr StepRule kRules[] = {
    {StepSource::kAnnotation, false, "", StatType::kStepNum, EventName},
    {StepSource::kStepsLine, true, kStepsLineName, std::nullopt, EventName},
    {StepSource::kDeviceModule, true, kXlaModulesLineName, StatType::kRunId, NameOfModuleRun},
    {StepSource::kHostModule, false, "", StatType::kRunId, ModuleOf},
};

std::optional<int64_t> NumberOf(const StepRule& rule, const XEventVisitor& event) {
  if (rule.number_stat.has_value()) {
    const XStatVisitor* stat = event.GetStat(*rule.number_stat);
    return stat == nullptr ? std::nullopt : stat->IntOrUintValue();
  }
  int64_t number = 0;
  const bool is_number =
      absl::c_all_of(event.Name(), absl::ascii_isdigit) && absl::SimpleAtoi(event.Name(), &number);
  return is_number ? std::optional<int64_t>(number) : std::nullopt;
}

// Adds the event's span if it is a step's. Events that an event table would have no row for are
// not.
void AddSpan(const StepRule& rule, const XLineVisitor& line, const XEventVisitor& event,
             std::vector<StepEvent>* spans) {
  const std::optional<int64_t> number = NumberOf(rule, event);
  if (!number.has_value() || event.IsAggregatedEvent() || event.DurationPs() < 0) return;
  const absl::string_view name = rule.name_of(event);
  if (rule.source == StepSource::kHostModule && name.empty()) return;
  const absl::int128 wide_ps = absl::int128(line.TimestampNs()) * kPsPerNs + event.OffsetPs();
  const std::optional<int64_t> start_ps = NarrowToInt64(wide_ps);
  const std::optional<int64_t> end_ps = NarrowToInt64(wide_ps + event.DurationPs());
  if (!start_ps.has_value() || !end_ps.has_value()) return;
  spans->push_back({*number, std::string(name), *start_ps, *end_ps, rule.source});
}

// Makes one step of the spans of one name and number that overlap, or of all of them.
std::vector<StepEvent> Join(std::vector<StepEvent> spans, bool only_overlapping) {
  absl::c_sort(spans, [](const StepEvent& a, const StepEvent& b) {
    return std::tie(a.name, a.number, a.start_ps) < std::tie(b.name, b.number, b.start_ps);
  });
  std::vector<StepEvent> steps;
  for (StepEvent& span : spans) {
    if (!steps.empty() && span.number == steps.back().number && span.name == steps.back().name &&
        (!only_overlapping || span.start_ps < steps.back().end_ps)) {
      steps.back().end_ps = std::max(steps.back().end_ps, span.end_ps);
    } else {
      steps.push_back(std::move(span));
    }
  }
  absl::c_sort(steps, [](const StepEvent& a, const StepEvent& b) {
    return std::tie(a.start_ps, a.end_ps, a.number, a.name) <
           std::tie(b.start_ps, b.end_ps, b.number, b.name);
  });
  return steps;
}

// Metadata tells without a look at the events.
bool HasStat(const XPlaneVisitor& plane, StatType type) {
  return absl::c_any_of(plane.StatMetadata(),
                        [&](const XStatMetadata& stat) { return stat.type == type; });
}

absl::StatusOr<std::vector<StepEvent>> FindSteps(const XSpaceReader& reader, const StepRule& rule) {
  std::vector<StepEvent> spans;
  const StatSelection stats({StatType::kHloModule, rule.number_stat.value_or(StatType::kStepNum)});
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    if (IsDevicePlane(plane.Name()) != rule.on_device ||
        (!rule.on_device && !HasStat(plane, *rule.number_stat)) ||
        (rule.source == StepSource::kDeviceModule && !spans.empty())) {
      return absl::OkStatus();
    }
    return plane.ForEachLine([&](const XLineVisitor& line) {
      if (!rule.line_name.empty() && line.Name() != rule.line_name) return absl::OkStatus();
      return line.ForEachEvent(
          stats, [&](const XEventVisitor& event) { AddSpan(rule, line, event, &spans); });
    });
  }));
  // The instructions of a host's run stand one after the other.
  return Join(std::move(spans), rule.source != StepSource::kHostModule);
}

}  // namespace

absl::StatusOr<std::vector<StepEvent>> FindXSpaceSteps(const XSpaceReader& reader) {
  std::vector<StepEvent> steps;
  for (const StepRule& rule : kRules) {
    ASSIGN_OR_RETURN(steps, FindSteps(reader, rule));
    if (!steps.empty()) break;
  }
  return steps;
}

const StepEvent* StepAt(absl::Span<const StepEvent> steps, int64_t time_ps) {
  const auto next = absl::c_upper_bound(
      steps, time_ps, [](int64_t time, const StepEvent& step) { return time < step.start_ps; });
  if (next == steps.begin()) return nullptr;
  const StepEvent& step = *std::prev(next);
  return time_ps < step.end_ps ? &step : nullptr;
}

}  // namespace meridian
