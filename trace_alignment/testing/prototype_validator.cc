#include "trace_alignment/testing/prototype_validator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

struct Span {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

// By name, in the order of starts.
using SpansByName = std::map<std::string, std::vector<Span>>;

bool ContainsAny(absl::string_view text, const std::vector<absl::string_view>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](absl::string_view part) { return absl::StrContains(text, part); });
}

absl::StatusOr<SpansByName> NamedSpans(const XSpaceReader& reader, const RunClock& run) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create(reader.name(), info, std::nullopt));
  SpansByName spans;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) -> absl::Status {
    if (!absl::StartsWith(plane.Name(), kGpuPlanePrefix)) return absl::OkStatus();
    return plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t base_ns, clock.LineBaseNs(line.Header()));
      return line.ForEachEvent([&](const XEventVisitor& event) -> absl::Status {
        const XStatVisitor* stat = event.GetEventOrMetadataStat(StatType::kHloOp);
        const std::string op = stat == nullptr ? std::string() : std::string(stat->StrOrRefValue());
        if (!ContainsAny(event.Name(), {"rccl", "nccl", "all-reduce", "all-gather"}) &&
            !ContainsAny(op, {"reduce", "gather", "scatter", "all-to-all", "send", "recv"})) {
          return absl::OkStatus();
        }
        ASSIGN_OR_RETURN(const int64_t start_ps, run.ToRunPs(base_ns, event.OffsetPs()));
        spans[op.empty() ? std::string(event.Name()) : op].push_back(
            {start_ps, start_ps + event.DurationPs()});
        return absl::OkStatus();
      });
    });
  }));
  for (auto& [name, of_name] : spans) {
    std::stable_sort(of_name.begin(), of_name.end(),
                     [](const Span& a, const Span& b) { return a.start_ps < b.start_ps; });
  }
  return spans;
}

}  // namespace

absl::StatusOr<PrototypeVerdict> JudgeAsPrototype(const std::vector<XSpaceReader>& profiles) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(profiles[0]));
  const RunClock run(info.profile_start_ns.value_or(0));
  std::vector<SpansByName> nodes;
  for (const XSpaceReader& profile : profiles) {
    ASSIGN_OR_RETURN(SpansByName spans, NamedSpans(profile, run));
    nodes.push_back(std::move(spans));
  }
  PrototypeVerdict verdict;
  for (const auto& [name, spans] : nodes[0]) {
    for (size_t i = 0; i < spans.size(); ++i) {
      Span overlap = spans[i];
      bool on_all = true;
      for (SpansByName& node : nodes) {
        const std::vector<Span>& others = node[name];
        on_all = on_all && i < others.size();
        if (!on_all) break;
        overlap.start_ps = std::max(overlap.start_ps, others[i].start_ps);
        overlap.end_ps = std::min(overlap.end_ps, others[i].end_ps);
      }
      if (!on_all) continue;
      ++verdict.compared;
      if (overlap.start_ps >= overlap.end_ps) ++verdict.violations;
    }
  }
  return verdict;
}

}  // namespace meridian
