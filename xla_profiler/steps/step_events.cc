#include "xla_profiler/steps/step_events.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/int64_range.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr absl::string_view kProfilerStepPrefix = "ProfilerStep#";
// As in "CommonPjRtLoadedExecutable::Execute (jit_step)".
constexpr absl::string_view kExecuteInfix = "LoadedExecutable::Execute (";

// Returns the number that the text's digits, and nothing else, make.
std::optional<int64_t> ParseNumber(absl::string_view text) {
  int64_t number = 0;
  if (!absl::c_all_of(text, absl::ascii_isdigit) || !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> GetNumber(const XEventVisitor& event, StatType type) {
  const XStatVisitor* stat = event.GetStat(type);
  return stat == nullptr ? std::nullopt : stat->IntOrUintValue();
}

bool IsDevicePlane(const XPlaneVisitor& plane) {
  return absl::StartsWith(plane.Name(), kDevicePlanePrefix);
}

// Metadata tells without a look at the events.
bool HasStat(const XPlaneVisitor& plane, StatType type) {
  return absl::c_any_of(plane.StatMetadata(),
                        [&](const XStatMetadata& stat) { return stat.type == type; });
}

// Returns a step over the event's span; nullopt where an event table would have no row.
std::optional<StepEvent> MakeStep(const XLineVisitor& line, const XEventVisitor& event,
                                  int64_t number, absl::string_view name, StepSource source) {
  if (event.IsAggregatedEvent() || event.DurationPs() < 0) return std::nullopt;
  const absl::int128 wide_ps = absl::int128(line.TimestampNs()) * kPsPerNs + event.OffsetPs();
  const std::optional<int64_t> start_ps = NarrowToInt64(wide_ps);
  const std::optional<int64_t> end_ps = NarrowToInt64(wide_ps + event.DurationPs());
  if (!start_ps.has_value() || !end_ps.has_value()) return std::nullopt;
  return StepEvent{number, std::string(name), *start_ps, *end_ps, source};
}

void Extend(const StepEvent& other, StepEvent* step) {
  step->start_ps = std::min(step->start_ps, other.start_ps);
  step->end_ps = std::max(step->end_ps, other.end_ps);
}

std::vector<StepEvent> InOrderOfStarts(std::vector<StepEvent> steps) {
  absl::c_sort(steps, [](const StepEvent& a, const StepEvent& b) {
    return std::tie(a.start_ps, a.end_ps, a.number, a.name) <
           std::tie(b.start_ps, b.end_ps, b.number, b.name);
  });
  return steps;
}

std::vector<StepEvent> JoinOverlapping(std::vector<StepEvent> spans) {
  absl::c_sort(spans, [](const StepEvent& a, const StepEvent& b) {
    return std::tie(a.name, a.number, a.start_ps) < std::tie(b.name, b.number, b.start_ps);
  });
  std::vector<StepEvent> steps;
  for (StepEvent& span : spans) {
    if (!steps.empty() && span.number == steps.back().number && span.name == steps.back().name &&
        span.start_ps < steps.back().end_ps) {
      Extend(span, &steps.back());
    } else {
      steps.push_back(std::move(span));
    }
  }
  return InOrderOfStarts(std::move(steps));
}

// Returns the module that the event says its run_id is of, or empty.
absl::string_view ModuleOf(const XEventVisitor& event) {
  const absl::string_view name = event.Name();
  const size_t infix = name.find(kExecuteInfix);
  if (infix != absl::string_view::npos) {
    return absl::StripSuffix(name.substr(infix + kExecuteInfix.size()), ")");
  }
  const XStatVisitor* module = event.GetStat(StatType::kHloModule);
  return module == nullptr ? absl::string_view() : module->StrOrRefValue();
}

// Adds the runs on a device's line; events are named "jit_step(<fingerprint>)".
absl::Status AddModuleRuns(const XLineVisitor& line, std::vector<StepEvent>* runs) {
  return line.ForEachEvent([&](const XEventVisitor& event) {
    const std::optional<int64_t> run_id = GetNumber(event, StatType::kRunId);
    if (!run_id.has_value()) return;
    const absl::string_view module = event.Name().substr(0, event.Name().find('('));
    std::optional<StepEvent> run =
        MakeStep(line, event, *run_id, module, StepSource::kDeviceModule);
    if (run.has_value()) runs->push_back(*std::move(run));
  });
}

}  // namespace

absl::string_view StepSourceName(StepSource source) {
  switch (source) {
    case StepSource::kAnnotation:
      return "annotation";
    case StepSource::kStepsLine:
      return "steps line";
    case StepSource::kDeviceModule:
      return "device module";
    case StepSource::kHostModule:
      return "host module";
    case StepSource::kProfilerStep:
      return "profiler step";
  }
  return "";
}

absl::StatusOr<std::vector<StepEvent>> FindAnnotatedSteps(const XSpaceReader& reader) {
  std::vector<StepEvent> spans;
  const auto add_line = [&](const XLineVisitor& line) {
    return line.ForEachEvent([&](const XEventVisitor& event) {
      const std::optional<int64_t> number = GetNumber(event, StatType::kStepNum);
      if (!number.has_value()) return;
      std::optional<StepEvent> span =
          MakeStep(line, event, *number, event.Name(), StepSource::kAnnotation);
      if (span.has_value()) spans.push_back(*std::move(span));
    });
  };
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    if (IsDevicePlane(plane) || !HasStat(plane, StatType::kStepNum)) return absl::OkStatus();
    return plane.ForEachLine(add_line);
  }));
  return JoinOverlapping(std::move(spans));
}

absl::StatusOr<std::vector<StepEvent>> FindStepsLines(const XSpaceReader& reader) {
  std::vector<StepEvent> spans;
  const auto add_line = [&](const XLineVisitor& line) {
    if (line.Name() != kStepsLineName) return absl::OkStatus();
    return line.ForEachEvent([&](const XEventVisitor& event) {
      const std::optional<int64_t> number = ParseNumber(event.Name());
      if (!number.has_value()) return;
      std::optional<StepEvent> span =
          MakeStep(line, event, *number, event.Name(), StepSource::kStepsLine);
      if (span.has_value()) spans.push_back(*std::move(span));
    });
  };
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    return IsDevicePlane(plane) ? plane.ForEachLine(add_line) : absl::OkStatus();
  }));
  return JoinOverlapping(std::move(spans));
}

absl::StatusOr<std::vector<StepEvent>> FindDeviceModuleRuns(const XSpaceReader& reader) {
  std::vector<StepEvent> runs;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    if (!runs.empty() || !IsDevicePlane(plane)) return absl::OkStatus();
    return plane.ForEachLine([&](const XLineVisitor& line) {
      return line.Name() == kXlaModulesLineName ? AddModuleRuns(line, &runs) : absl::OkStatus();
    });
  }));
  return JoinOverlapping(std::move(runs));
}

absl::StatusOr<std::vector<StepEvent>> FindHostModuleRuns(const XSpaceReader& reader) {
  // By run_id, not by overlap: the instructions of a run stand one after the other.
  absl::flat_hash_map<std::pair<int64_t, std::string>, StepEvent> runs;
  const auto add_line = [&](const XLineVisitor& line) {
    return line.ForEachEvent([&](const XEventVisitor& event) {
      const std::optional<int64_t> run_id = GetNumber(event, StatType::kRunId);
      if (!run_id.has_value()) return;
      const absl::string_view module = ModuleOf(event);
      if (module.empty()) return;
      const std::optional<StepEvent> span =
          MakeStep(line, event, *run_id, module, StepSource::kHostModule);
      if (!span.has_value()) return;
      Extend(*span, &runs.try_emplace({*run_id, span->name}, *span).first->second);
    });
  };
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    if (IsDevicePlane(plane) || !HasStat(plane, StatType::kRunId)) return absl::OkStatus();
    return plane.ForEachLine(add_line);
  }));
  std::vector<StepEvent> steps;
  steps.reserve(runs.size());
  for (auto& [key, run] : runs) steps.push_back(std::move(run));
  return InOrderOfStarts(std::move(steps));
}

std::vector<StepEvent> FindProfilerSteps(const EventTable& table) {
  std::vector<StepEvent> spans;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) != EventCategory::kStep ||
        table.track(table.track_id(row)).kind != TrackKind::kHost) {
      continue;
    }
    absl::string_view text = table.name(row);
    if (!absl::ConsumePrefix(&text, kProfilerStepPrefix)) continue;
    const std::optional<int64_t> number = ParseNumber(text);
    if (!number.has_value()) continue;
    spans.push_back({*number, std::string(table.name(row)), table.start_ps(row), table.end_ps(row),
                     StepSource::kProfilerStep});
  }
  return JoinOverlapping(std::move(spans));
}

absl::StatusOr<StepEvents> FindXSpaceSteps(const XSpaceReader& reader) {
  struct Choice {
    absl::StatusOr<std::vector<StepEvent>> (*find)(const XSpaceReader&);
    absl::string_view taken;
    absl::string_view missing;
  };
  constexpr Choice kChoices[] = {
      {FindAnnotatedSteps, "host events with step_num were taken", "no host event has step_num"},
      {FindStepsLines, "the Steps lines of devices were taken", "no device has a Steps line"},
      {FindDeviceModuleRuns, "the first device's module runs were taken",
       "no device's XLA Modules line has run ids"},
      {FindHostModuleRuns, "the host's module runs were taken",
       "no host event tells run_id and module"},
  };
  std::vector<absl::string_view> reasons;
  for (const Choice& choice : kChoices) {
    ASSIGN_OR_RETURN(std::vector<StepEvent> steps, choice.find(reader));
    reasons.push_back(steps.empty() ? choice.missing : choice.taken);
    if (!steps.empty()) return StepEvents{std::move(steps), absl::StrJoin(reasons, "; ")};
  }
  return StepEvents{{}, absl::StrJoin(reasons, "; ")};
}

StepEvents FindTraceJsonSteps(const EventTable& table) {
  std::vector<StepEvent> steps = FindProfilerSteps(table);
  std::string reason = absl::StrCat(steps.empty() ? "no host annotation is named " : "annotations ",
                                    kProfilerStepPrefix, "<n>", steps.empty() ? "" : " were taken");
  return {std::move(steps), std::move(reason)};
}

}  // namespace meridian
